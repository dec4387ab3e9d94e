"""What a client of a service has besides runs: what the service tells of its machine.

As `agent_mux.client.namespaces`: blocking, without any `async with`, and imported when it is first asked for.
"""

from typing import TYPE_CHECKING

from agent_mux.client.remote.connection import Line

if TYPE_CHECKING:
    from agent_mux.client.remote.resources import RemoteAdapters, RemoteDetector, RemoteModels, RemoteProfiles
    from agent_mux.client.remote.runs import RemoteRuns
    from agent_mux.client.remote.sessions import RemoteSessions


class RemoteNamespaces:
    """The part of a client that starts nothing."""

    _line: Line
    _detector: "RemoteDetector | None" = None

    @property
    def sessions(self) -> "RemoteSessions":
        """What the agents stored there of their sessions."""
        from agent_mux.client.remote.sessions import RemoteSessions  # noqa: PLC0415  # a run does without, here and below

        return RemoteSessions(self._line)

    @property
    def runs(self) -> "RemoteRuns":
        """The runs that the service remembers, whoever started them."""
        from agent_mux.client.remote.runs import RemoteRuns  # noqa: PLC0415

        return RemoteRuns(self._line)

    @property
    def models(self) -> "RemoteModels":
        """What is known there of the agents' models."""
        from agent_mux.client.remote.resources import RemoteModels  # noqa: PLC0415

        return RemoteModels(self._line)

    @property
    def profiles(self) -> "RemoteProfiles":
        """Options of runs under a name."""
        from agent_mux.client.remote.resources import RemoteProfiles  # noqa: PLC0415

        return RemoteProfiles(self._line)

    @property
    def adapters(self) -> "RemoteAdapters":
        """The agents that the service can drive."""
        from agent_mux.client.remote.resources import RemoteAdapters  # noqa: PLC0415

        return RemoteAdapters(self._line)

    @property
    def detector(self) -> "RemoteDetector":
        """Which of them are installed there."""
        from agent_mux.client.remote.resources import RemoteDetector  # noqa: PLC0415

        self._detector = self._detector or RemoteDetector(self._line)
        return self._detector
