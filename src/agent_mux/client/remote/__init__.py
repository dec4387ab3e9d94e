"""A client whose runs work at a service (`amux serve`): the interface of `AgentMux`, over HTTP.

Needs the extra `remote`. `mux` starts runs, `run` is their handle, `stream` receives their events, `publisher` passes
the events to local readers and callbacks, `connection` sends requests, `responses` decodes answers and errors.
"""

try:
    import httpx  # noqa: F401  # all of this needs it
except ImportError as error:
    from agent_mux.errors import AgentMuxError

    missing = "the remote client needs the extra: pip install 'agent-mux[remote]'"
    raise AgentMuxError("UNAVAILABLE", missing) from error

from agent_mux.client.remote.mux import RemoteMux
from agent_mux.client.remote.run import RemoteRun

__all__ = ["RemoteMux", "RemoteRun"]
