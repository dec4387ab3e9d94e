"""A file is written whole or not at all: into a new file beside it, which then takes its name."""

import itertools
import os
import stat
from contextlib import suppress

from agent_loop.workspace.resolving import Place

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
PERMISSIONS = 0o777
"""What is kept of the mode. A set-user-id bit is not: the content is another one now."""
_numbers = itertools.count()


def replace_file(place: Place, data: bytes, before: os.stat_result | None) -> None:
    """Let the file at `place` hold `data`. `before`: what is there now. Raises `OSError`, and leaves nothing behind."""
    descriptor, temporary = _beside(place, 0o666 if before is None else 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if before is not None:
                _take_over(descriptor, before)
            os.fsync(descriptor)
        os.rename(temporary, place.name, src_dir_fd=place.directory, dst_dir_fd=place.directory)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=place.directory)
        raise


def _beside(place: Place, mode: int) -> tuple[int, str]:
    """A new, empty file in the same directory; the umask takes its part of `mode`."""
    while True:
        name = f".agent-loop-{os.getpid()}-{next(_numbers)}.tmp"
        with suppress(FileExistsError):
            return os.open(name, NEW_FILE, mode, dir_fd=place.directory), name


def _take_over(descriptor: int, before: os.stat_result) -> None:
    """Owner (where we may) and permissions of the file that is replaced."""
    with suppress(PermissionError):
        os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode) & PERMISSIONS)
