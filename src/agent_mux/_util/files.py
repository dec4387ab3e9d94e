"""Writing files that others read too: whole or not at all, one writer at a time.

A file keeps its permissions, and a symbolic link stays one: what it points to is written. Locks are files in our own
directory, so that nothing is left in those of the agents. Source: run API, section 1 (storage).
"""

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from agent_mux._util.paths import config_dir
from agent_mux.errors import AgentMuxError

LOCK_TIMEOUT = 5.0  # seconds
PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700


def read_text(path: Path) -> str | None:
    """What a file says, line endings as they are; None where there is none.

    Raises CONFIG_ERROR when it cannot be read, or is no text.
    """
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        broken = f"{path} is not UTF-8 (byte {error.start}); correct it or move it away"
        raise AgentMuxError("CONFIG_ERROR", broken) from error
    except OSError as error:
        if not os.path.lexists(path):  # where no more files can be opened, one that is not there is no problem
            return None
        raise AgentMuxError("CONFIG_ERROR", f"cannot read {path}: {error.strerror or error}") from error


def write_text(path: Path, text: str, *, private: bool = True) -> None:
    """Replace what a file says, in one step. Directories that are missing are made.

    What is there keeps its permissions; what is new is for its owner only, or for whom the umask says where it is not
    `private` (files of a project that are shared with it). Raises CONFIG_ERROR.
    """
    try:
        _replace(Path(os.path.realpath(path)), text.encode(), private=private)
    except OSError as error:
        raise AgentMuxError("CONFIG_ERROR", f"cannot write {path}: {error.strerror or error}") from error


def remove(path: Path) -> None:
    """Remove a file; for a symbolic link, the link. Raises CONFIG_ERROR."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise AgentMuxError("CONFIG_ERROR", f"cannot remove {path}: {error.strerror or error}") from error


@contextlib.contextmanager
def locked(path: Path, *, locks: Path | None = None, timeout: float = LOCK_TIMEOUT) -> Iterator[None]:
    """Be the only writer of a file, among those who ask.

    Args:
        path: Of the file that is written; need not be there.
        locks: Where the lock goes; default: `locks` in our own directory.
        timeout: Seconds to wait for others.

    Raises:
        AgentMuxError: CONFIG_LOCK_ERROR when it took longer, CONFIG_ERROR when there can be no lock.
    """
    from filelock import FileLock, Timeout  # noqa: PLC0415  # who only reads does without

    place = locks if locks is not None else config_dir() / "locks"
    name = hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:32]
    try:
        make_directory(place)
        lock = FileLock(place / f"{name}.lock", timeout=timeout, mode=PRIVATE_FILE)
        lock.acquire()
    except Timeout as error:
        waited = f"somebody else is writing {path}, for more than {timeout:g} s; try again"
        raise AgentMuxError("CONFIG_LOCK_ERROR", waited) from error
    except OSError as error:
        raise AgentMuxError("CONFIG_ERROR", f"cannot make a lock in {place}: {error.strerror or error}") from error
    try:
        yield
    finally:
        lock.release()


def make_directory(path: Path, *, private: bool = True) -> None:
    """Make a directory and those above it that are missing. Raises `OSError`."""
    if not path.is_dir():
        make_directory(path.parent, private=private)
        path.mkdir(mode=PRIVATE_DIRECTORY if private else 0o777, exist_ok=True)


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
    mask = os.umask(0o077)  # it cannot be asked for without setting it
    os.umask(mask)
    return mask
