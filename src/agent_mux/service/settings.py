"""What a service is to do. `amux serve` fills it in; tests and embedders do it themselves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8642


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
    keep_days: float | None = None
    """Runs that ended longer ago are forgotten, with their journals. None: none is, whatever its age."""
    keep_runs: int | None = None
    """How many runs that are over are kept: those that ended last. None: all."""
    keep_bytes: int | None = None
    """How large the journals of the runs that are over may be, together. None: as large as the disk."""
    allow_private_webhooks: bool = False
    """Receivers of webhooks may be on this machine, and in networks that are not the Internet."""

    @property
    def directory(self) -> Path:
        """What the service keeps: its database, its identity, its lock."""
        return self.config_dir / "service"
