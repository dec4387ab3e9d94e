"""A client whose runs work at a service (`amux serve`): the interface of `AgentMux`, over HTTP.

Creating a client needs the extra `remote`. `mux` starts runs, `run` is their handle, `stream` receives their events,
`publisher` passes the events to local readers and callbacks, `connection` sends requests, `responses` decodes answers
and errors, `lazy_httpx` imports httpx on first use.
"""

from agent_mux.client.remote.mux import RemoteMux
from agent_mux.client.remote.run import RemoteRun

__all__ = ["RemoteMux", "RemoteRun"]
