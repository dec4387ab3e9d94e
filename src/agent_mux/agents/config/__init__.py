"""The agents' own configuration: read, and changed without losing anything. Source: run API, section 7."""
