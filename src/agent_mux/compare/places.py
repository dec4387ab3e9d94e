"""Where a comparison keeps its files, and what surrounds an agent in its workspace."""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent_mux._util.files import make_directory
from agent_mux.compare.records import OutsideAccess
from agent_mux.compare.removal import remove_directory
from agent_mux.compare.request import ComparisonRequest
from agent_mux.compare.store import COMPARISONS
from agent_mux.run.plan import RunPlan

WORKSPACES = "workspaces"
"""The directory of the workspaces in the global directory."""


class Places:
    """The folder and the workspaces of one comparison. All methods block."""

    def __init__(self, config_dir: Path, identifier: str, request: ComparisonRequest) -> None:
        """Name the places; nothing is created."""
        self.folder = config_dir / COMPARISONS / identifier
        self._workspaces = config_dir / WORKSPACES
        self._identifier = identifier
        self._request = request

    def new_workspace(self) -> Path:
        """Return a path for a workspace or a checkout, which no agent can guess. Its parent exists."""
        make_directory(self._workspaces)
        return self._workspaces / f"{self._identifier}-{secrets.token_hex(8)}"

    def clean(self) -> None:
        """Remove workspaces that a killed process has left behind."""
        for path in self._workspaces.glob(f"{self._identifier}-*"):
            remove_directory(path)

    def journal(self, trial: str, attempt: int) -> Path:
        """Return the path of the recording of an attempt. Its parent exists."""
        return self._of_trial(trial) / f"attempt-{attempt}.journal"

    def patch(self, trial: str) -> Path:
        """Return the path of the patch of a trial. Its parent exists."""
        return self._of_trial(trial) / "changes.patch"

    def _of_trial(self, trial: str) -> Path:
        path = self.folder / "trials" / trial
        make_directory(path)
        return path

    @contextmanager
    def surroundings(self, workspace: Path) -> Iterator[dict[str, str]]:
        """Yield the variables that a trial has for itself, and remove what they name at the end."""
        scratch = workspace.with_name(f"{workspace.name}-tmp")
        make_directory(scratch)
        try:
            yield {"TMPDIR": str(scratch)}
        finally:
            remove_directory(scratch)

    def isolate(self, plan: RunPlan, workspace: Path) -> tuple[RunPlan, bool, str]:
        """Return a plan whose agent cannot reach solutions, whether that is possible, and else why not."""
        return plan, False, "not isolated"

    def accesses(self, calls: Sequence[tuple[str, Any]], workspace: Path) -> tuple[OutsideAccess, ...]:
        """Return the accesses among tool calls to places that could show a solution."""
        return ()
