"""Plugins of the agents, managed by the agents' own commands. Source: run API, section 7."""
