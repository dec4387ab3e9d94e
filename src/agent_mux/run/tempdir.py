"""The temp directory of a run: its own, 0700, gone at the end."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def private_files(directory: Path, files: Mapping[str, str]) -> Iterator[None]:
    """Make the directory with these files (0600) in it, and remove it at the end, whatever the agent put there."""
    directory.mkdir(mode=0o700)
    try:
        for name, content in files.items():
            path = directory / name
            path.touch(mode=0o600)
            path.write_text(content, encoding="utf-8")
        yield
    finally:
        shutil.rmtree(directory, ignore_errors=True)
