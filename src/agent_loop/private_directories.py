"""Directories that only the current user can enter, whatever the umask."""

from pathlib import Path

PRIVATE_DIRECTORY = 0o700


def make_private_directory(path: Path) -> None:
    """Create a directory and its missing parents with mode 0700. Raises `OSError`.

    `Path.mkdir` gives missing parents the mode of the umask instead.
    """
    if not path.is_dir():
        make_private_directory(path.parent)
        path.mkdir(mode=PRIVATE_DIRECTORY, exist_ok=True)
