"""Which active run of this machine uses a stored session."""

from collections.abc import Callable, Iterable
from pathlib import Path

from agent_mux.client.local_runs import LocalRuns
from agent_mux.run.base import TERMINAL_STATES, Run
from agent_mux.sdk.registry import AdapterRegistry


class ActiveSessions:
    """Finds the runs that use a session: those of the client, and others by their control sockets."""

    def __init__(
        self, config_dir: Path, adapters: AdapterRegistry, own: Callable[[], Iterable[Run]] = lambda: ()
    ) -> None:
        """Create the finder without reading anything. `own`: returns the active runs of the client.

        Runs of a service have no control sockets.
        """
        self._runs = LocalRuns(config_dir, adapters)
        self._own = own

    def find_run(self, agent: str, native_id: str) -> str | None:
        """Return the id of an active run that uses the agent's session; None: there is none."""
        for run in self._own():
            if run.agent == agent and run.session_id == native_id and run.state not in TERMINAL_STATES:
                return run.run_id
        active = self._runs.list(agent=agent, state="alive", limit=None)
        return next((run.run_id for run in active if run.session_id == native_id), None)
