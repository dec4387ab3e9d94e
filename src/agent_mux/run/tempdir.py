"""The temp directory of a run: its own, 0700, gone at the end."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from agent_mux.errors import AgentMuxError


def temp_dir_of(run_id: str) -> Path:
    """Where the run's files for its agent go; nothing of it is left when the run is over."""
    return Path(tempfile.gettempdir()) / f"agent-mux-{run_id}"


@contextmanager
def private_files(directory: Path, files: Mapping[str, str]) -> Iterator[None]:
    """Make the directory with these files (0600) in it, and remove it at the end, whatever the agent put there."""
    try:
        directory.mkdir(mode=0o700)
    except OSError as error:
        raise _failed(directory, error) from error
    try:
        try:
            for name, content in files.items():
                path = directory / name
                path.touch(mode=0o600)
                path.write_text(content, encoding="utf-8")
        except OSError as error:
            raise _failed(directory, error) from error
        yield
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _failed(directory: Path, error: OSError) -> AgentMuxError:
    words = f"{error.strerror or error} (errno {error.errno})"
    if isinstance(error, FileExistsError):
        why = f"{directory} is there already: another run has this run_id; leave it out, or give another"
    else:
        why = f"its temp directory {directory} cannot be made and filled; make room there, or set TMPDIR"
    return AgentMuxError("SPAWN_ERROR", f"{why} [{words}]")
