"""A client whose runs work at a service (`amux serve`): the interface of `AgentMux`, over HTTP.

Needs the extra `remote`. `mux` starts runs, `run` is what a consumer holds, `following` reads what happens in them,
`telling` and `reading` give it to who listens, `line` asks the service, `problems` are its errors.
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
