"""Who this server is: one process for each directory, known by an id that stays the same.

The runs of a database belong to an instance: only the server that has the journals of a run can show and mend it.


What a service is to do. `amux serve` fills it in; tests and embedders do it themselves.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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


DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8642


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one connection may cost."""

    head_within: float = 10.0
    """Seconds for the head of a request: from the connection, or from its first byte."""
    body_within: float = 60.0
    """Seconds for a whole body: one of 16 MiB needs 2.3 Mbit/s."""
    largest_body: int = 16 << 20
    """Bytes."""
    connections: int | None = None
    """How many there may be; None: 4096, or what the limit for open files allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be chosen."""

    config_dir: Path
    """The global directory: settings, profiles, journals; what the service keeps is below its `service`."""
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    """0: any that is free."""
    database: str | None = None
    """URL of the database; None: a SQLite file in the service's directory."""
    max_concurrent_runs: int | None = 8
    """How many agents work at a time; further runs wait. None: all at once."""
    max_concurrent_runs_per_agent: Mapping[str, int] = field(default_factory=dict)
    """The same for single agents, by name."""
    queue_limit: int | None = 1000
    """How many runs may wait; more are refused."""
    allow_private_webhooks: bool = False
    """Receivers of webhooks may be on this machine, and in networks that are not the Internet."""
    keep_days: float | None = None
    """Runs that ended longer ago are forgotten, with their journals. None: none is, whatever its age."""
    keep_runs: int | None = None
    """How many runs that are over are kept: those that ended last. None: all."""
    keep_bytes: int | None = None
    """How large the journals of the runs that are over may be, together. None: as large as the disk."""
    roots: Sequence[Path] = ()
    """The directories that runs may work in, with all below them; none: the current one."""
    allowed_hosts: Sequence[str] = ()
    """Names besides those of the address itself under which clients may call the service: those of a reverse proxy."""

    limits: Limits = field(default_factory=Limits)

    @property
    def directory(self) -> Path:
        """What the service keeps: its database, its identity, its lock."""
        return self.config_dir / "service"
