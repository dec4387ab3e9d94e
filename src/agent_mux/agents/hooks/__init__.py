"""Hooks: what is to happen when an agent does something, wherever it runs. Source: run API, section 7."""
