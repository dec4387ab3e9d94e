"""Directories for the current user only."""

from pathlib import Path

PRIVATE_DIRECTORY = 0o700


def make_private_directory(path: Path) -> None:
    """Create a directory and its missing parents with mode 0700, whatever the umask is. Raises `OSError`.

    `Path.mkdir(parents=True)` creates parents as the umask allows.
    """
    try:
        path.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
    except FileNotFoundError:
        make_private_directory(path.parent)
        path.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
