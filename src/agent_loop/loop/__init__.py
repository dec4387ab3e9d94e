"""The engine: turns, tool calls, limits, queues."""
