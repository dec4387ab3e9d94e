"""Where runs are started: in this process (`AgentMux`), or by a service over HTTP (`RemoteMux`). The same interface.

`RemoteMux` needs the extra `remote`; it is imported when it is first asked for.
"""

from typing import TYPE_CHECKING, Any

from agent_mux.client.local import AgentMux, Observer

if TYPE_CHECKING:
    from agent_mux.client.remote import RemoteMux

__all__ = ["AgentMux", "Observer", "RemoteMux"]


def __getattr__(name: str) -> Any:
    """Import `RemoteMux` when somebody wants it."""
    if name != "RemoteMux":
        raise AttributeError(f"module 'agent_mux.client' has no attribute {name!r}")
    from agent_mux.client.remote import RemoteMux  # noqa: PLC0415  # most programs do without

    return RemoteMux
