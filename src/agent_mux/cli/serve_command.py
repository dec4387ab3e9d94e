"""`amux serve`, and what it shares with `amux tokens` and `amux audit`.

Only this module, `token_commands` and `audit_command` import the service.
"""

import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from agent_mux.cli.command_output import Invocation
from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.demo_command import RECORDED
from agent_mux.cli.errors import usage_error
from agent_mux.cli.options import ConfigDir, limit_in_seconds, size_in_bytes
from agent_mux.errors import MissingExtraError

if TYPE_CHECKING:
    from agent_mux.service.server import HttpServer
    from agent_mux.service.settings import ServiceSettings
    from agent_mux.service.store.database import Database


_Result = TypeVar("_Result")
DATABASE_VARIABLE = "AGENT_MUX_DATABASE_URL"
_REQUIRED_PACKAGES = (
    "aiosqlite",
    "alembic",
    "httpx",
    "prometheus_client",
    "sqlalchemy",
    "starlette",
    "uvicorn",
    "websockets",
)

DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        help="Database URL without password (postgresql://... or sqlite:///PATH); with a password, set "
        f"${DATABASE_VARIABLE}. Default: a SQLite file.",
        show_default=False,
    ),
]


def require_extra(command: str) -> None:
    """Raise VALIDATION_ERROR if a package that the service requires is missing."""
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in _REQUIRED_PACKAGES):
        raise MissingExtraError(command, "service")


def database_url(url: str | None) -> str | None:
    """Return the database URL; None selects the service's SQLite file.

    Raises VALIDATION_ERROR for a URL with a password: every user of the machine can read command-line arguments.
    """
    from agent_mux.service.store.database import has_password

    if url is not None and has_password(url):
        raise usage_error(
            f"--database contains a password, which other local users can read; set ${DATABASE_VARIABLE} instead"
        )
    return url if url is not None else os.environ.get(DATABASE_VARIABLE) or None


def config_directory(path: Path | None) -> Path:
    """Return the absolute path of the global directory."""
    from agent_mux._util.paths import config_dir

    return (path or config_dir()).absolute()


def with_database(
    database: str | None, config_dir: Path | None, do: "Callable[[Database], Awaitable[_Result]]"
) -> _Result:
    """Call `do` with the database that a service with the same flags uses, whether that service runs or not."""
    import anyio

    from agent_mux.service.service import open_database
    from agent_mux.service.settings import ServiceSettings

    settings = ServiceSettings(config_dir=config_directory(config_dir), database=database_url(database))

    async def work() -> _Result:
        async with open_database(settings) as found:
            return await do(found)

    return anyio.run(work)


class LogLevel(StrEnum):
    """Log levels of the service."""

    debug = "debug"
    info = "info"
    warning = "warning"
    error = "error"


AllowedDirectories = Annotated[
    list[Path] | None,
    typer.Option(
        "--root",
        metavar="DIR",
        help="Allowed directory for runs (repeatable; default: current directory).",
        show_default=False,
    ),
]
AllowedHosts = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        metavar="NAME",
        help="Additional allowed Host name, for a proxy (repeatable); requires a token.",
        show_default=False,
    ),
]
NewDatabase = Annotated[
    bool,
    typer.Option(
        "--new-database",
        help="Begin with a database that has nothing of the earlier runs; their recordings stay.",
        show_default=False,
    ),
]
AllowUnauthenticated = Annotated[
    bool,
    typer.Option(
        "--allow-unauthenticated",
        help="With another --host or --allow-host: let everybody in while no token exists.",
        show_default=False,
    ),
]
MaxRunsPerAgent = Annotated[
    list[str] | None,
    typer.Option(
        "--max-runs-per-agent", metavar="AGENT=N", help="Limit for one agent (repeatable).", show_default=False
    ),
]

Drain = Annotated[
    float,
    typer.Option(
        "--drain",
        metavar="SECONDS",
        parser=limit_in_seconds,
        help="On the first signal, wait for active runs; then abort them (0 = abort at once).",
    ),
]
KeepDays = Annotated[
    float | None,
    typer.Option(
        "--keep-days",
        min=0,
        help="Delete runs (and recordings) and comparisons older than N days. Default: keep.",
        show_default=False,
    ),
]
KeepRuns = Annotated[
    int | None,
    typer.Option(
        "--keep-runs",
        min=0,
        help="Keep only the N most recent finished runs. Default: all.",
        show_default=False,
    ),
]
KeepBytes = Annotated[
    int | None,
    typer.Option(
        "--keep-bytes",
        metavar="BYTES",
        parser=size_in_bytes,
        help="Max total size of finished runs' recordings, also as 20GB. Default: no limit.",
        show_default=False,
    ),
]
KeepComparisons = Annotated[
    int | None,
    typer.Option(
        "--keep-comparisons",
        min=0,
        help="Keep only the N most recent comparisons that are over. Default: all.",
        show_default=False,
    ),
]
KeepAuditDays = Annotated[
    float,
    typer.Option(
        "--keep-audit-days", metavar="N", min=1, max=3650, help="Delete entries of the audit trail older than N days."
    ),
]
RequestsPerMinute = Annotated[
    int,
    typer.Option(
        "--requests-per-minute",
        metavar="N",
        min=0,
        max=1_000_000,
        help="Rate limit of each token without its own (0 = none).",
    ),
]
RunsPerMinute = Annotated[
    int,
    typer.Option(
        "--runs-per-minute", metavar="N", min=0, max=1_000_000, help="Limit of started runs, per token (0 = none)."
    ),
]


@with_common_flags
def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option("--host", help="Bind address; non-loopback requires a token.")] = ("127.0.0.1"),
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="TCP port (0 = any free port).")] = 8642,
    database: DatabaseUrl = None,
    new_database: NewDatabase = False,
    root: AllowedDirectories = None,
    allow_host: AllowedHosts = None,
    allow_unauthenticated: AllowUnauthenticated = False,
    max_runs: Annotated[int, typer.Option("--max-runs", min=0, help="Maximum concurrent runs (0 = unlimited).")] = 8,
    max_runs_per_agent: MaxRunsPerAgent = None,
    queue_limit: Annotated[
        int, typer.Option("--queue-limit", min=0, help="Maximum queued runs (0 = unlimited).")
    ] = 1000,
    requests_per_minute: Annotated[
        int,
        typer.Option(
            "--requests-per-minute", metavar="N", min=0, max=1_000_000, help="Rate limit of a token (0 = none)."
        ),
    ] = 0,
    runs_per_minute: Annotated[
        int,
        typer.Option("--runs-per-minute", metavar="N", min=0, max=1_000_000, help="Limit of started runs (0 = none)."),
    ] = 0,
    drain: Drain = 20,
    keep_days: KeepDays = None,
    keep_runs: KeepRuns = None,
    keep_bytes: KeepBytes = None,
    keep_comparisons: KeepComparisons = None,
    keep_audit_days: Annotated[
        float,
        typer.Option(
            "--keep-audit-days", metavar="N", min=1, max=3650, help="Delete older entries of the audit trail."
        ),
    ] = 365,
    allow_private_webhooks: Annotated[
        bool,
        typer.Option("--allow-private-webhooks", help="Allow webhooks to loopback and private networks."),
    ] = False,
    access_log: Annotated[
        bool | None,
        typer.Option(
            "--access-log/--no-access-log",
            help="Log each request at its end, on standard error. Default: with --log-level info.",
            show_default=False,
        ),
    ] = None,
    log_level: Annotated[LogLevel, typer.Option("--log-level", help="Log level on standard error.")] = LogLevel.warning,
    config_dir: ConfigDir = None,
) -> int:
    """Serve runs over HTTP: start, watch, answer and find them.

    The default address accepts connections from this machine only; with another --host, or --allow-host, every
    request needs a token (`amux tokens create`). Ctrl-C or SIGTERM drains: no new runs, and active ones get --drain
    seconds to end. The second signal aborts them, the third one kills them. Readers receive the last events; the exit
    code is 0.
    """
    import logging
    import math

    from agent_mux.cli.telemetry import logs_for_server

    require_extra("amux serve")
    if not math.isfinite(keep_audit_days):
        raise usage_error(f"--keep-audit-days expects a number, got {keep_audit_days}")
    from agent_mux.service.access_log import access_log as access_log_of_service
    from agent_mux.service.settings import ServiceSettings
    from agent_mux.settings.allowed_directories import AllowedDirectories as Allowed

    invocation: Invocation = context.obj
    settings = ServiceSettings(
        config_dir=config_directory(config_dir),
        host=host,
        port=port,
        database=database_url(database),
        new_database=new_database,
        max_concurrent_runs=max_runs or None,
        max_concurrent_runs_per_agent=parse_agent_limits(max_runs_per_agent or ()),
        queue_limit=queue_limit or None,
        requests_per_minute=requests_per_minute,
        runs_per_minute=runs_per_minute,
        drain=drain,
        keep_days=keep_days,
        keep_runs=keep_runs,
        keep_bytes=keep_bytes,
        keep_comparisons=keep_comparisons,
        keep_audit_days=keep_audit_days,
        roots=Allowed(root or (Path.cwd(),)).directories,
        allowed_hosts=tuple(allow_host or ()),
        allow_unauthenticated=allow_unauthenticated,
        allow_private_webhooks=allow_private_webhooks,
    )
    level = logging.getLevelNamesMapping()[log_level.upper()]
    with logs_for_server(level, debug=invocation.debug), access_log_of_service(enabled=access_log):
        _serve(settings, invocation)
    return 0


def _serve(settings: "ServiceSettings", invocation: Invocation) -> None:
    from agent_mux.service.application import make_application
    from agent_mux.service.server import HttpServer

    server = HttpServer(make_application(settings), settings, on_start=lambda: _announce(server, invocation))
    server.run()


def parse_agent_limits(values: Iterable[str]) -> dict[str, int]:
    """Parse `AGENT=N` values. Raise VALIDATION_ERROR or AGENT_NOT_FOUND for invalid ones."""
    from agent_mux.cli.errors import usage_error
    from agent_mux.sdk.registry import AdapterRegistry

    limits: dict[str, int] = {}
    for one in values:
        agent, _, number = one.partition("=")
        if not (agent and number.isascii() and number.isdigit() and int(number)):
            raise usage_error(f"--max-runs-per-agent expects AGENT=N with N at least 1, got {one!r}")
        limits[AdapterRegistry().get(agent).agent] = int(number)
    return limits


def _announce(server: "HttpServer", invocation: Invocation) -> None:
    """Print the address and first steps on standard error, or one JSON line on standard output."""
    from agent_mux.cli.command_output import json_envelope

    service = server.service
    details = {
        "url": server.url,
        "database": service.database.shown,
        "roots": [str(root) for root in service.settings.roots],
        "needsToken": service.authenticator.requires_token,
    }
    if invocation.json:
        sys.stdout.write(json_envelope(details) + "\n")
        sys.stdout.flush()
        return
    details["isOpenToOthers"] = service.authenticator.is_open_to_others
    sys.stderr.write("\n".join(_announcement_lines(details, invocation)) + "\n")
    sys.stderr.flush()


def _announcement_lines(details: Mapping[str, Any], invocation: Invocation) -> list[str]:
    from agent_mux.cli.terminal import one_line, palette_for, shorten_home

    agent, recording = RECORDED
    url, needs_token = details["url"], details["needsToken"]
    tokens = "required for every request" if needs_token else "not required: every local user has full access"
    if not needs_token and details["isOpenToOthers"]:
        tokens = "not required: EVERYBODY who can connect has full access"
    key = """ -H "Authorization: Bearer $TOKEN\"""" if needs_token else ""
    bold = palette_for(sys.stderr, no_color=invocation.no_color).bold
    return [
        f"listening on {bold(url)}",
        f"  database  {one_line(shorten_home(details['database']), 1000)}",
        f"  roots     {one_line(shorten_home(', '.join(details['roots'])), 1000)}",
        f"  tokens    {tokens} (`amux tokens create`)",
        "Try it with a built-in recording; the response contains the runId for the second command:",
        f"""  curl{key} {url}/v1/runs --json '{{"agent":"{agent}","prompt":"{recording}"}}'""",
        f"  curl{key} -N {url}/v1/runs/RUN_ID/events",
    ]
