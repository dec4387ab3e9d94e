"""Which active run of this machine uses a stored session."""

from pathlib import Path

from agent_mux.client.local_runs import LocalRuns
from agent_mux.sdk.registry import AdapterRegistry


class ActiveSessions:
    """Finds the runs that use a session, by the control sockets of the runs."""

    def __init__(self, config_dir: Path, adapters: AdapterRegistry) -> None:
        """Create the finder without reading anything."""
        self._runs = LocalRuns(config_dir, adapters)

    def find_run(self, agent: str, native_id: str) -> str | None:
        """Return the id of an active run that uses the agent's session; None: there is none."""
        active = self._runs.list(agent=agent, state="alive", limit=None)
        return next((run.run_id for run in active if run.session_id == native_id), None)
