"""Installing and updating agents by the ways that their makers name. Source: run API, sections 5 and 8."""
