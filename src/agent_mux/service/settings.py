""""""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8642


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """What one connection may cost."""

    head_timeout: float = 10.0
    """Seconds for the head of a request: from the connection, or from its first byte."""
    body_timeout: float = 60.0
    """Seconds for a whole body: one of 16 MiB needs 2.3 Mbit/s."""
    largest_body: int = 16 << 20
    """Bytes."""
    connections: int | None = None
    """How many there may be; None: 4096, or what the limit for open files allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
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

    limits: ConnectionLimits = field(default_factory=ConnectionLimits)

    @property
    def directory(self) -> Path:
        """What the service keeps: its database, its identity, its lock."""
        return self.config_dir / "service"
