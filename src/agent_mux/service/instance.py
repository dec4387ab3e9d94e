"""Who this server is: one process for each directory, known by an id that stays the same.

The runs of a database belong to an instance: only the server that has the journals of a run can show and mend it.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout
from ulid import ULID

from agent_mux._util.files import PRIVATE_FILE, make_directory, read_text, write_text
from agent_mux.errors import AgentMuxError

ID_FILE = "instance-id"
LOCK_FILE = "server.lock"


@contextlib.contextmanager
def only_server(directory: Path) -> Iterator[str]:
    """Be the only server of this directory; gives its id. Raises CONFIG_ERROR when another one runs."""
    try:
        make_directory(directory)
        lock = FileLock(directory / LOCK_FILE, timeout=0, mode=PRIVATE_FILE)
        lock.acquire()
    except Timeout as error:
        other = f"another `amux serve` uses {directory}; stop it, or give this one its own --config-dir"
        raise AgentMuxError("CONFIG_ERROR", other) from error
    except OSError as error:
        raise AgentMuxError("CONFIG_ERROR", f"{directory} cannot be used: {error.strerror or error}") from error
    try:
        yield _id_in(directory / ID_FILE)
    finally:
        lock.release()


def _id_in(path: Path) -> str:
    said = (read_text(path) or "").strip()
    if not said:
        said = str(ULID())
        write_text(path, said + "\n")
    try:
        return str(ULID.from_str(said))
    except ValueError as error:
        raise AgentMuxError("CONFIG_ERROR", f"{path} has no id in it; restore it or remove it") from error
