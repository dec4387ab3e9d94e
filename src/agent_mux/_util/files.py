"""Read, atomically replace, remove and lock files that other programs use too. See docs/spec/run-api.md, section 1.

Writing keeps a file's permissions and follows symbolic links. Lock files are created in our own directory, so that none
remain in the directories of agents.
"""

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from agent_mux._util.paths import cache_dir, config_dir
from agent_mux.errors import AgentMuxError

LOCK_TIMEOUT = 5.0  # seconds
PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700


def read_text(path: Path) -> str | None:
    """Return the text of a file with its line endings unchanged; None when there is no such file.

    Raises CONFIG_ERROR when the file cannot be read or is not UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        message = f"{path} is not UTF-8 (byte {error.start}); correct it or move it away"
        raise AgentMuxError("CONFIG_ERROR", message) from error
    except OSError as error:
        if not os.path.lexists(path):  # with too many open files, the error for a missing file is another
            return None
        raise AgentMuxError("CONFIG_ERROR", f"cannot read {path}: {error.strerror or error}") from error


def write_text(path: Path, text: str, *, private: bool = True) -> None:
    """Replace the content of a file atomically, creating missing directories. Raises CONFIG_ERROR.

    An existing file keeps its permissions. A new file is accessible to its owner only if `private`; otherwise the umask
    determines its permissions (files of a project that are shared with it).
    """
    try:
        _replace(Path(os.path.realpath(path)), text.encode(), private=private)
    except OSError as error:
        raise AgentMuxError("CONFIG_ERROR", f"cannot write {path}: {error.strerror or error}") from error


def remove(path: Path) -> None:
    """Remove a file if it exists; of a symbolic link, only the link. Raises CONFIG_ERROR."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise AgentMuxError("CONFIG_ERROR", f"cannot remove {path}: {error.strerror or error}") from error


@contextlib.contextmanager
def locked(path: Path, *, locks: Path | None = None, timeout: float = LOCK_TIMEOUT) -> Iterator[None]:
    """Hold the advisory lock of a file, which every writer of agent-mux acquires first.

    Args:
        path: The file to be written; it need not exist.
        locks: Directory of the lock files; default: `locks` in our own directory.
        timeout: Seconds to wait for other writers.

    Raises:
        AgentMuxError: CONFIG_LOCK_ERROR after the timeout, CONFIG_ERROR when the lock file cannot be created.
    """
    from filelock import FileLock, Timeout  # noqa: PLC0415  # readers do not need it

    directory = locks if locks is not None else config_dir() / "locks"
    name = hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:32]
    try:
        make_directory(directory)
        lock = FileLock(directory / f"{name}.lock", timeout=timeout, mode=PRIVATE_FILE)
        lock.acquire()
    except Timeout as error:
        message = f"another process has been writing {path} for more than {timeout:g} s; try again"
        raise AgentMuxError("CONFIG_LOCK_ERROR", message) from error
    except OSError as error:
        message = f"cannot create a lock in {directory}: {error.strerror or error}"
        raise AgentMuxError("CONFIG_ERROR", message) from error
    try:
        yield
    finally:
        lock.release()


def make_directory(path: Path, *, private: bool = True) -> None:
    """Create a directory and its missing parents, with mode 0700 if `private`. Raises `OSError`.

    A private one inside of our own directories also closes those to other users, if an earlier version or a umask left
    them open.
    """
    if not path.is_dir():
        make_directory(path.parent, private=private)
        path.mkdir(mode=PRIVATE_DIRECTORY if private else 0o777, exist_ok=True)
    if private:
        for own in (config_dir(), cache_dir()):
            if own == path or own in path.parents:
                _close_to_others(own)


def _close_to_others(directory: Path) -> None:
    with contextlib.suppress(OSError):  # it is the user's, but on a file system without permissions
        status = directory.stat()
        mode = stat.S_IMODE(status.st_mode)
        if mode & 0o077 and status.st_uid == os.geteuid():
            directory.chmod(mode & PRIVATE_DIRECTORY)


def _replace(target: Path, content: bytes, *, private: bool) -> None:
    mode = _mode_of(target, private=private)
    make_directory(target.parent, private=private)
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _mode_of(target: Path, *, private: bool) -> int:
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        return PRIVATE_FILE if private else 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0o077)  # the umask can only be read by setting it
    os.umask(mask)
    return mask
