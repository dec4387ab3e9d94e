"""Files of a checkout: reading them safely, and the assertions of a check about one of them."""

import os
from pathlib import Path, PurePosixPath

from agent_mux._util.opening import open_regular_file
from agent_mux.compare.checks.context import CheckedTrial
from agent_mux.compare.checks.definitions import FileCheck

MAX_FILE = 16 << 20  # bytes of a file that is searched or parsed


def read_file(checkout: Path, path: str, limit: int = MAX_FILE) -> bytes:
    """Return the content of a regular file of the checkout; symbolic links are not followed.

    Raises:
        OSError: It does not exist or is not a regular file.
        ValueError: It is larger than `limit` bytes.
    """
    with open_regular_file(checkout, PurePosixPath(path)) as (descriptor, size):
        if size > limit:
            raise ValueError(f"it is larger than {limit >> 20} MiB")
        with os.fdopen(os.dup(descriptor), "rb") as file:
            content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"it is larger than {limit >> 20} MiB")
    return content


def reason_of(error: Exception) -> str:
    """Return why a file could not be read or used, without its name."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def problem_of_file(check: FileCheck, trial: CheckedTrial) -> str:
    """Return the first assertion that does not hold, as a sentence; empty if all hold. `matches` is not evaluated."""
    path = trial.checkout / check.file
    if check.absent:
        return f"{check.file} exists" if os.path.lexists(path) else ""
    if check.unchanged and str(PurePosixPath(check.file)) in trial.changed:
        return f"{check.file} was changed"
    is_read = check.contains is not None or check.matches is not None
    if not (is_read or check.exists) or (not is_read and path.is_dir() and not path.is_symlink()):
        return ""
    try:
        content = read_file(trial.checkout, check.file)
    except (OSError, ValueError) as error:
        return f"{check.file} cannot be read: {reason_of(error)}"
    is_found = check.contains is None or check.contains in content.decode("utf-8", "replace")
    return "" if is_found else f"{check.file} does not contain {check.contains!r}"
