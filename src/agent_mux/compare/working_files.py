"""What a comparison has outside of its folder while it works: workspaces and temporary files.

All are removed at the end. A killed process leaves them behind, and `resume`, `remove` and the start of any comparison
find them: workspaces by their names, which begin with the id of the comparison, and temporary directories by an entry
in the folder, because another process can have another TMPDIR. The entry of the comparison itself is a link, and the
lock of the folder protects it. A trial can be applied while the comparison is active, so the entry of `apply` is a file
with the path, and is locked itself.
"""

import contextlib
import fcntl
import logging
import os
import secrets
import tempfile
import threading
from collections.abc import Container, Iterator
from pathlib import Path

from agent_mux._util.files import make_directory
from agent_mux._util.logs import LOGGER
from agent_mux.compare.ledger import COMPARISONS, ComparisonFolder
from agent_mux.errors import AgentMuxError
from agent_mux.worktrees.removal import remove_directory

WORKSPACES = "workspaces"
"""The directory of the workspaces in the global directory."""
TEMPORARY = "temporary"
"""The link in the folder of a comparison to its temporary directory."""
APPLYING = "applying-"
"""The beginning of the names of files in the folder that contain the path of a temporary directory of `apply`."""


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
                path = _new_temporary(self._identifier)
                try:
                    make_directory(self._link.parent)
                    self._link.unlink(missing_ok=True)
                    self._link.symlink_to(path)  # first, so that a kill leaves no directory without a link
                except OSError as error:
                    raise _cannot_create(path, error) from error
                _make_temporary(path)
                self._temporary = path
            return self._temporary

    @contextlib.contextmanager
    def applying(self) -> Iterator[Path]:
        """Yield a temporary directory in which a trial is applied, and remove it. Raises SPAWN_ERROR, INTERNAL."""
        path = _new_temporary(self._identifier)
        entry = self._link.parent / f"{APPLYING}{secrets.token_hex(4)}"
        try:
            lock = _create_locked(entry, str(path))
        except OSError as error:
            raise _cannot_create(path, error) from error
        try:
            _make_temporary(path)
            yield path
        finally:
            try:
                remove_directory(path)
                entry.unlink(missing_ok=True)
            finally:
                os.close(lock)

    @property
    def is_applying(self) -> bool:
        """Whether a process applies a trial of the comparison."""
        for entry in self._entries():
            with _try_lock(entry) as is_free:
                if not is_free:
                    return True
        return False

    def remove(self, kept: Container[str] = ()) -> None:
        """Remove what is not in use, except workspaces whose paths are in `kept`. Raises `AgentMuxError`."""
        for name in _names(self.workspaces):
            path = self.workspaces / name
            if name.startswith(f"{self._identifier}-") and str(path) not in kept:
                remove_directory(path)
        for entry in self._entries():
            with _try_lock(entry) as is_free:
                if is_free:
                    self._remove_own(Path(entry.read_text(encoding="utf-8")))
                    entry.unlink(missing_ok=True)
        self.remove_temporary()

    def remove_temporary(self) -> None:
        """Remove the temporary directory of this process or of an earlier one. Raises `AgentMuxError`."""
        with self._creating:
            self._temporary = None
            try:
                path = self._link.readlink()
            except OSError:
                return
            self._remove_own(path)
            self._link.unlink(missing_ok=True)

    def _entries(self) -> list[Path]:
        folder = self._link.parent
        return [folder / name for name in _names(folder) if name.startswith(APPLYING)]

    def _remove_own(self, path: Path) -> None:
        if path.name.startswith(f"amux-{self._identifier}-"):  # ours, even if someone changed the entry
            remove_directory(path)


def _new_temporary(identifier: str) -> Path:
    return Path(tempfile.gettempdir()) / f"amux-{identifier}-{secrets.token_hex(4)}"


def _make_temporary(path: Path) -> None:
    try:
        path.mkdir(mode=0o700)
    except OSError as error:
        raise _cannot_create(path, error) from error


def _cannot_create(path: Path, error: OSError) -> AgentMuxError:
    why = f"{path} cannot be created: {error.strerror or error}; free disk space, or set TMPDIR"
    return AgentMuxError("SPAWN_ERROR", why)


def _create_locked(path: Path, content: str) -> int:
    """Create a file that is locked from the moment at which it has its name. Returns its descriptor."""
    created = path.with_name(f".{path.name}")
    descriptor = os.open(created, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, os.fsencode(content))
        created.rename(path)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextlib.contextmanager
def _try_lock(path: Path) -> Iterator[bool]:
    """Hold the lock of a file if no process holds it. Yields whether it is held here."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:  # its process has just ended
        yield False
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(descriptor)


def remove_abandoned(config_dir: Path) -> None:
    """Remove what killed comparisons left behind; workspaces that were kept on request stay. Failures are logged."""
    folders = config_dir / COMPARISONS
    found = {folder for folder in _names(folders) if any(_is_entry(name) for name in _names(folders / folder))}
    found |= {name.partition("-")[0] for name in _names(config_dir / WORKSPACES) if "-" in name}
    for identifier in sorted(found):
        try:
            _remove_if_abandoned(config_dir, identifier)
        except (AgentMuxError, OSError) as error:
            logging.getLogger(LOGGER).warning("files of comparison %s are not removed: %s", identifier, error)


def _names(directory: Path) -> list[str]:
    """Return the names in a directory; none if it cannot be read, for example because it was just removed."""
    try:
        return [path.name for path in directory.iterdir()]
    except OSError:
        return []


def _is_entry(name: str) -> bool:
    return name == TEMPORARY or name.startswith(APPLYING)


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
