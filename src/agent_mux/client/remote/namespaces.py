"""The parts of a remote client that start no runs: what the service reports about its machine.

Like `agent_mux.client.namespaces`: all of them block and work outside of `async with`. Each is imported on first use.
"""

from typing import TYPE_CHECKING

from agent_mux.client.remote.connection import ServiceConnection

if TYPE_CHECKING:
    from agent_mux.client.remote.audit import RemoteAudit
    from agent_mux.client.remote.comparisons import RemoteComparisons
    from agent_mux.client.remote.quota import RemoteQuotas
    from agent_mux.client.remote.resources import RemoteAdapters, RemoteDetector, RemoteModels, RemoteProfiles
    from agent_mux.client.remote.run_queries import RemoteRuns
    from agent_mux.client.remote.sessions import RemoteSessions


class RemoteNamespaces:
    """The properties of `RemoteMux` that query the service instead of starting runs."""

    _connection: ServiceConnection
    _detector: "RemoteDetector | None" = None

    @property
    def sessions(self) -> "RemoteSessions":
        """The sessions that agents have stored on the service's machine: list, search, read, export."""
        from agent_mux.client.remote.sessions import RemoteSessions  # noqa: PLC0415  # a run does without, here and below

        return RemoteSessions(self._connection)

    @property
    def quota(self) -> "RemoteQuotas":
        """What is known about quotas on the service's machine."""
        from agent_mux.client.remote.quota import RemoteQuotas  # noqa: PLC0415

        return RemoteQuotas(self._connection)

    @property
    def runs(self) -> "RemoteRuns":
        """The runs that the service has stored, of all clients."""
        from agent_mux.client.remote.run_queries import RemoteRuns  # noqa: PLC0415

        return RemoteRuns(self._connection)

    @property
    def audit(self) -> "RemoteAudit":
        """The service's audit trail: who did what."""
        from agent_mux.client.remote.audit import RemoteAudit  # noqa: PLC0415

        return RemoteAudit(self._connection)

    @property
    def models(self) -> "RemoteModels":
        """The service's model registry: names, context sizes, capabilities and prices."""
        from agent_mux.client.remote.resources import RemoteModels  # noqa: PLC0415

        return RemoteModels(self._connection)

    @property
    def comparisons(self) -> "RemoteComparisons":
        """The comparisons that the service has stored, of all clients."""
        from agent_mux.client.remote.comparisons import RemoteComparisons  # noqa: PLC0415

        return RemoteComparisons(self._connection)

    @property
    def profiles(self) -> "RemoteProfiles":
        """The service's named sets of run options."""
        from agent_mux.client.remote.resources import RemoteProfiles  # noqa: PLC0415

        return RemoteProfiles(self._connection)

    @property
    def adapters(self) -> "RemoteAdapters":
        """The agents that the service can run."""
        from agent_mux.client.remote.resources import RemoteAdapters  # noqa: PLC0415

        return RemoteAdapters(self._connection)

    @property
    def detector(self) -> "RemoteDetector":
        """Detects which agents are installed on the service's machine, and in which versions."""
        from agent_mux.client.remote.resources import RemoteDetector  # noqa: PLC0415

        self._detector = self._detector or RemoteDetector(self._connection)
        return self._detector
