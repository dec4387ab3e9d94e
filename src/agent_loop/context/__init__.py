"""Keeping what is sent within the context window."""
