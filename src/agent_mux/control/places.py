"""Where the control sockets of runs are: one file for each run, in a directory that only its owner can enter.

    <runtime directory>/<home>/<run id>.sock

The runtime directory is `$AGENT_MUX_RUNTIME_DIR`; otherwise the first of these that can be used: `agent-mux` in
`$XDG_RUNTIME_DIR`, `agent-mux` in `/run/user/<uid>`, `/tmp/agent-mux-<uid>`. Shells of the same user may have different
environments, so sockets are searched in all of them. `<home>` is a hash of agent-mux's global directory: `amux runs`
lists the runs whose recordings are in that directory.
"""

import errno
import hashlib
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MAX_SOCKET_PATH = 103
"""Bytes in the path of a socket, without the final zero: 103 on macOS, 107 on Linux."""
SUFFIX = ".sock"
_NEW = ".new"
"""Suffix of a socket that does not accept connections yet."""
_DESCRIPTORS = Path("/proc/self/fd")
_OTHERS = 0o077
_CONNECT_TIMEOUT = 1.0  # seconds; a local socket accepts or refuses at once


def runtime_directories() -> list[Path]:
    """Return the directories in which sockets may be, in order of preference. None of them has to exist."""
    named = os.environ.get("AGENT_MUX_RUNTIME_DIR")
    if named:
        return [Path(named).absolute()]
    uid = os.geteuid()
    bases = [Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{uid}"), Path(f"/run/user/{uid}")]
    usable = [base / "agent-mux" for base in dict.fromkeys(bases) if base.is_absolute() and base.is_dir()]
    return [*usable, Path(f"/tmp/agent-mux-{uid}")]  # noqa: S108  # checked: its owner, its mode, and that it is not a link


def home_name(config_dir: Path) -> str:
    """Return the name of the directory with the sockets of runs that are recorded in `config_dir`."""
    return hashlib.sha256(os.fsencode(os.path.realpath(config_dir))).hexdigest()[:12]


def make_home(config_dir: Path) -> Path:
    """Create the directory for new sockets, with mode 0700. Raises `OSError` if no directory can be used."""
    reasons = []
    for runtime in runtime_directories():
        home = runtime / home_name(config_dir)
        longest = home / ("0" * 26 + SUFFIX + _NEW)
        if _is_too_long(longest) and not _DESCRIPTORS.is_dir():
            reasons.append(f"{runtime} is too long for a socket")
            continue
        try:
            _make_private(runtime)
            _make_private(home)
        except OSError as error:
            reasons.append(f"{error.filename or runtime}: {error.strerror}")
            continue
        return home
    raise OSError(errno.ENOENT, "no usable runtime directory: " + "; ".join(reasons))


def listen(config_dir: Path, run_id: str) -> tuple[socket.socket, Path]:
    """Return a listening socket with mode 0600, and its path. Raises `OSError`.

    The socket gets its name when it accepts connections: a named socket that refuses them is stale.
    """
    for attempt in range(3):
        home = make_home(config_dir)
        path = home / (run_id + SUFFIX)
        new = path.with_name(path.name + _NEW)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with suppress(FileNotFoundError):
                new.unlink()
            with _address(new) as address:
                listener.bind(address)
            new.chmod(0o600)
            listener.listen(16)
            listener.setblocking(False)
            new.rename(path)
        except FileNotFoundError:  # another run ended and removed the empty directory
            listener.close()
            if attempt == 2:
                raise
        except BaseException:
            listener.close()
            raise
        else:
            return listener, path
    raise AssertionError("unreachable")


def remove(path: Path) -> None:
    """Remove a socket, and the directories around it if they are empty now."""
    with suppress(OSError):
        path.unlink()
    for directory in (path.parent, path.parent.parent):
        with suppress(OSError):
            directory.rmdir()


def sockets(config_dir: Path) -> Iterator[Path]:
    """Yield the paths of all sockets of a global directory, live or stale."""
    for runtime in runtime_directories():
        home = runtime / home_name(config_dir)
        if _is_private(runtime) and _is_private(home):
            with suppress(OSError):
                yield from sorted(home.glob(f"*{SUFFIX}"))


def find_socket(config_dir: Path, run_id: str) -> Path | None:
    """Return the path of a run's socket, live or stale; None if there is none."""
    return next((path for path in sockets(config_dir) if path.name == run_id + SUFFIX), None)


def connect(path: Path, timeout: float = _CONNECT_TIMEOUT) -> socket.socket | None:
    """Connect to a socket. Returns None, and removes the file, if its run was killed. Raises `OSError`."""
    peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        peer.settimeout(timeout)
        with _address(path) as address:
            peer.connect(address)
    except (ConnectionRefusedError, FileNotFoundError):
        peer.close()
        remove(path)
        return None
    except BaseException:
        peer.close()
        raise
    return peer


@contextmanager
def _address(path: Path) -> Iterator[str]:
    """Provide the address of a socket: its path, or, if that is too long, a path by the descriptor of its directory."""
    if not _is_too_long(path):
        yield str(path)
        return
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"{_DESCRIPTORS}/{directory}/{path.name}"
    finally:
        os.close(directory)


def _is_too_long(path: Path) -> bool:
    return len(os.fsencode(path)) > MAX_SOCKET_PATH


def _make_private(directory: Path) -> None:
    with suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    status = os.lstat(directory)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise OSError(errno.EPERM, "it belongs to another user or is not a directory", str(directory))
    if status.st_mode & _OTHERS:
        directory.chmod(0o700)


def _is_private(directory: Path) -> bool:
    """Return whether a directory exists, belongs to us and cannot be entered by others."""
    try:
        status = os.lstat(directory)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & _OTHERS
