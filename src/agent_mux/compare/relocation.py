"""Adapt files that contain the path of their directory to a copy: scripts of virtual environments, for example.

Only text files that git ignores are adapted, because a change of another one would be part of a patch.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

MAX_TEXT = 1 << 20  # bytes; larger files are not scripts


def files_with_path(top: Path, ignored: Iterable[str]) -> list[str]:
    """Return the ignored text files that contain the path of their directory. Blocking.

    Args:
        top: The directory.
        ignored: Ignored files, and directories with a final `/`, relative to it.
    """
    wanted = os.fsencode(top)
    return [path for path in _files(top, ignored) if _contains(top / path, wanted)]


def relocate(old: Path, new: Path, paths: Iterable[str]) -> None:
    """Replace the path of a directory by that of its copy in files of the copy. Blocking. Raises `OSError`."""
    before, after = os.fsencode(old), os.fsencode(new)
    for path in paths:
        file = new / path
        state = file.stat()
        if not os.access(file, os.W_OK):
            file.chmod(state.st_mode | 0o200)
        file.write_bytes(file.read_bytes().replace(before, after))
        file.chmod(state.st_mode & 0o7777)
        os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))


def _files(top: Path, ignored: Iterable[str]) -> Iterator[str]:
    for path in ignored:
        if not path.endswith("/"):
            yield path
            continue
        for place, _, names in os.walk(top / path):
            for name in names:
                yield os.path.relpath(f"{place}/{name}", top)


def _contains(path: Path, wanted: bytes) -> bool:
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_TEXT:
            return False
        content = path.read_bytes()
    except OSError:
        return False
    return wanted in content and b"\0" not in content
