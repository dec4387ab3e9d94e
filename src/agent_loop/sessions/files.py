"""Writing one file so that it is there whole or not at all, whoever is killed when."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

PRIVATE_FILE = 0o600
PRIVATE_DIRECTORY = 0o700
LATEST_MS = 2**43
"""Of a file's time, about the year 2248: what most file systems can say."""


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Hold the lock file for the block: True; False at once where somebody else does. A killed holder holds no more.

    The lock file stays: taking it away would let two hold "the" lock, each on a file of its own.
    """
    lock = FileLock(path, mode=PRIVATE_FILE)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def replace_file(path: Path, data: bytes, *, modified_ms: int) -> None:
    """Put the data in the place of the file: with its own time, for its owner alone, and on the disk. Raises `OSError`.

    One writer at a time: the unfinished file has a fixed name, so that one a killed writer left is written over.
    """
    unfinished = path.with_name(f".{path.name}.tmp")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        modified_ns = min(max(modified_ms, 0), LATEST_MS) * 1_000_000
        os.utime(descriptor, ns=(modified_ns, modified_ns))
        os.fsync(descriptor)
    unfinished.replace(path)
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """What was renamed or removed in it is so on the disk. Raises `OSError`."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
