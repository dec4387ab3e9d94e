"""Options of the service. `amux serve` fills them in from its flags; tests and embedders construct them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agent_mux.sdk.checked import Checked

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8642
DEFAULT_DRAIN = 20.0
"""Seconds. With the default grace period of runs (5) and that of connections (5), the server ends within the 30 seconds
that Kubernetes waits before SIGKILL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits(Checked):
    """Limits on what a connection may cost."""

    head_timeout: float = 10.0
    """Seconds for the head of a request, from the connection or from its first byte."""
    body_timeout: float = 60.0
    """Seconds for a whole body; 16 MiB in that time need 2.3 Mbit/s."""
    largest_body: int = 16 << 20
    """Maximum bytes of a request body."""
    connections: int | None = None
    """Maximum number of connections; None: 4096, or what the limit on open files allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings(Checked):
    """All options of a service."""

    config_dir: Path
    """Global directory: settings, profiles, journals. The service keeps its own files in `service` below it."""
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    """Port to listen on; 0 chooses a free one."""
    database: str | None = None
    """URL of the database; None: a SQLite file in the service's directory."""
    new_database: bool = False
    """Whether the database may have nothing of the runs whose recordings are in the directory."""
    max_concurrent_runs: int | None = 8
    """Maximum number of concurrent runs; further ones wait. None: no limit."""
    max_concurrent_runs_per_agent: Mapping[str, int] = field(default_factory=dict)
    """Maximum number of concurrent runs of single agents, by name."""
    queue_limit: int | None = 1000
    """Maximum number of waiting runs; further ones are refused. None: no limit."""
    requests_per_minute: int = 0
    """Rate limit of each token that has none of its own. 0: no limit."""
    runs_per_minute: int = 0
    """Run starts per minute, in the same way."""
    drain: float = DEFAULT_DRAIN
    """Seconds to wait for active runs to end after the first signal, before they are aborted. 0: abort at once."""
    allow_private_webhooks: bool = False
    """Whether webhooks may point to this machine and to private networks."""
    keep_days: float | None = None
    """Delete runs, with their journals, and comparisons that ended longer ago. None: no limit."""
    keep_runs: int | None = None
    """Keep only the N most recently ended runs. None: all."""
    keep_bytes: int | None = None
    """Maximum total size of ended runs' journals. None: no limit."""
    keep_comparisons: int | None = None
    """Keep only the N most recent comparisons that are not active. None: all."""
    keep_audit_days: float = 365.0
    """Delete entries of the audit trail that are older. It also keeps no more than a million of them."""
    roots: Sequence[Path] = ()
    """Directories that runs may work in, including everything below; empty: the current directory."""
    allowed_hosts: Sequence[str] = ()
    """Additional Host names under which clients reach the service, such as that of a reverse proxy."""
    allow_unauthenticated: bool = False
    """Whether other machines may use the service without a token: on an address other than loopback, or by one of
    `allowed_hosts`. Once a token exists, it is required nevertheless."""

    limits: ConnectionLimits = field(default_factory=ConnectionLimits)

    @property
    def directory(self) -> Path:
        """The service's own directory: database, instance id, lock."""
        return self.config_dir / "service"
