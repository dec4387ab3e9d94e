"""The engine of a run: turns, model calls, tool calls, limits and user input."""
