"""What a comparison has outside of its folder while it works: workspaces and temporary files.

Both are removed at the end. A killed process leaves them behind, and `resume`, `remove` and the start of any comparison
find them: workspaces by their names, which begin with the id of the comparison, and the temporary directory by a link
in the folder, because another process can have another TMPDIR.
"""

import contextlib
import logging
import secrets
import tempfile
import threading
from collections.abc import Container
from pathlib import Path

from agent_mux._util.files import make_directory
from agent_mux._util.logs import LOGGER
from agent_mux.compare.ledger import COMPARISONS, ComparisonFolder
from agent_mux.compare.removal import remove_directory
from agent_mux.errors import AgentMuxError

WORKSPACES = "workspaces"
"""The directory of the workspaces in the global directory."""
TEMPORARY = "temporary"
"""The link in the folder of a comparison to its temporary directory."""


class WorkingFiles:
    """The workspaces and temporary files of one comparison. All methods block."""

    def __init__(self, config_dir: Path, identifier: str) -> None:
        """Name their places; nothing is created."""
        self.workspaces = config_dir / WORKSPACES
        self._identifier = identifier
        self._link = config_dir / COMPARISONS / identifier / TEMPORARY
        self._temporary: Path | None = None
        self._creating = threading.Lock()

    def new_workspace(self) -> Path:
        """Return a path for a workspace or a checkout, which no agent can guess. Its parent exists."""
        make_directory(self.workspaces)
        return self.workspaces / f"{self._identifier}-{secrets.token_hex(8)}"

    def temporary(self) -> Path:
        """Return the directory for temporary files, which exists. Raises SPAWN_ERROR if it cannot be created."""
        with self._creating:
            if self._temporary is None:
                path = Path(tempfile.gettempdir()) / f"amux-{self._identifier}-{secrets.token_hex(4)}"
                try:
                    make_directory(self._link.parent)
                    self._link.unlink(missing_ok=True)
                    self._link.symlink_to(path)  # first, so that a kill leaves no directory without a link
                    path.mkdir(mode=0o700)
                except OSError as error:
                    why = f"{path} cannot be created: {error.strerror or error}; free disk space, or set TMPDIR"
                    raise AgentMuxError("SPAWN_ERROR", why) from error
                self._temporary = path
            return self._temporary

    def remove(self, kept: Container[str] = ()) -> None:
        """Remove what is there, except workspaces whose paths are in `kept`. Raises `AgentMuxError`."""
        for path in self.workspaces.glob(f"{self._identifier}-*"):
            if str(path) not in kept:
                remove_directory(path)
        self.remove_temporary()

    def remove_temporary(self) -> None:
        """Remove the temporary directory of this process or of an earlier one. Raises `AgentMuxError`."""
        with self._creating:
            self._temporary = None
            try:
                path = self._link.readlink()
            except OSError:
                return
            if path.name.startswith(f"amux-{self._identifier}-"):  # ours, even if someone changed the link
                remove_directory(path)
            self._link.unlink(missing_ok=True)


def remove_abandoned(config_dir: Path) -> None:
    """Remove what killed comparisons left behind; workspaces that were kept on request stay. Failures are logged."""
    found = {link.parent.name for link in (config_dir / COMPARISONS).glob(f"*/{TEMPORARY}")}
    found |= {path.name.partition("-")[0] for path in (config_dir / WORKSPACES).glob("*-*")}
    for identifier in sorted(found):
        try:
            _remove_if_abandoned(config_dir, identifier)
        except (AgentMuxError, OSError) as error:
            logging.getLogger(LOGGER).warning("files of comparison %s are not removed: %s", identifier, error)


def _remove_if_abandoned(config_dir: Path, identifier: str) -> None:
    folder, files = ComparisonFolder(config_dir / COMPARISONS / identifier), WorkingFiles(config_dir, identifier)
    if not folder.path.exists():
        files.remove()
        return
    if folder.is_active():
        return
    with contextlib.closing(folder):
        folder.acquire()
        files.remove(folder.comparison().kept_workspaces)
