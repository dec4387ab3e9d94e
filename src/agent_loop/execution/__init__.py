"""Tools that run elsewhere: in a container, or on another host, while model calls and keys stay here."""

from agent_loop.execution.context import ExecutionContext

__all__ = ["ExecutionContext"]
