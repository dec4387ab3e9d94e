"""The files of the working directory of a run, read by the paths that clients give."""

import os
from pathlib import Path, PurePosixPath

from agent_mux._util.opening import open_regular_file
from agent_mux.errors import AgentMuxError, FieldError, ValidationError

LONGEST_PATH = 4096  # characters


def checked_path(path: str) -> PurePosixPath:
    """Return a path relative to a directory. Raises `ValidationError` for one that is empty or leads outside."""
    pure = PurePosixPath(path)
    if len(path) > LONGEST_PATH or not pure.parts or pure.is_absolute() or ".." in pure.parts:
        allowed = "a path relative to the working directory of the run, without `..`"
        raise ValidationError([FieldError("path", path[:LONGEST_PATH], allowed)])
    return pure


def read_file(root: Path, path: str, offset: int, limit: int) -> tuple[bytes, int]:
    """Return a part of a file below a directory, and the size of the file. Blocking.

    Raises NOT_FOUND, and `ValidationError` for a path that leads outside.
    """
    pure = checked_path(path)
    try:
        with open_regular_file(root, pure) as (descriptor, size):
            parts: list[bytes] = []
            while limit and (part := os.pread(descriptor, min(limit, 1 << 20), offset)):
                parts.append(part)
                offset, limit = offset + len(part), limit - len(part)
            return b"".join(parts), size
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        message = f"cannot read {pure} in the directory of the run: {reason}; GET /v1/runs/RUN/files lists its files"
        raise AgentMuxError("NOT_FOUND", message) from error
