"""The quotas that are known on the machine of a service, over HTTP: the interface of `agent_mux.sessions.quota`."""

from agent_mux.client.remote.connection import ServiceConnection, fetch
from agent_mux.sessions.quota import AgentQuota

_Quotas = list[AgentQuota]


class RemoteQuotas:
    """The quotas known to a service: the interface of `Quotas`. Every call is a blocking request.

    In addition to the errors of `Quotas`, every method raises the error that the service returns, and UNAVAILABLE when
    it cannot be reached.
    """

    def __init__(self, connection: ServiceConnection) -> None:
        """Create the namespace without sending a request."""
        self._connection = connection

    def list(self) -> list[AgentQuota]:
        """Return what is known, by agent. See `Quotas.list`."""
        found: list[AgentQuota] = fetch(self._connection, _Quotas, "quota")
        return found

    def get(self, agent: str) -> AgentQuota | None:
        """Return what is known about an agent; None if nothing is. See `Quotas.get`."""
        found: _Quotas = fetch(self._connection, _Quotas, "quota", agent=agent)
        return next(iter(found), None)
