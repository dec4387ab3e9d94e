"""Where a comparison keeps its files, and what surrounds an agent in its workspace."""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent_mux._util.files import make_directory
from agent_mux.compare.request import ComparisonRequest
from agent_mux.compare.store import COMPARISONS

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
        return self._workspaces / f"{self._identifier}-{random_name()}"

    def clean(self) -> None:
        """Remove workspaces that a killed process has left behind."""
        for path in self._workspaces.glob(f"{self._identifier}-*"):
            shutil.rmtree(path, ignore_errors=True)

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
