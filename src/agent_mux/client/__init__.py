"""Clients that start runs: in this process (`AgentMux`), or at a service over HTTP (`RemoteMux`).

Both have the same interface. `RemoteMux` needs the extra `remote` and is imported on first use.
"""

from typing import TYPE_CHECKING, Any

from agent_mux.client.local import AgentMux, Observer

if TYPE_CHECKING:
    from agent_mux.client.remote import RemoteMux

__all__ = ["AgentMux", "Observer", "RemoteMux"]


def __getattr__(name: str) -> Any:
    """Import `RemoteMux` on first use. Raises `AttributeError` for any other name."""
    if name != "RemoteMux":
        raise AttributeError(f"module 'agent_mux.client' has no attribute {name!r}")
    from agent_mux.client.remote import RemoteMux  # noqa: PLC0415  # most programs do without

    return RemoteMux
