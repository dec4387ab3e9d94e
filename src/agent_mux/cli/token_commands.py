"""`amux tokens`: access tokens of the service."""

import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from agent_mux.cli.command_output import Invocation
from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.options import ConfigDir
from agent_mux.cli.serve_command import DatabaseUrl
from agent_mux.cli.terminal import local_minute

if TYPE_CHECKING:
    from agent_mux.service.security.keyring import Keyring
    from agent_mux.service.security.tokens import Token
    from agent_mux.service.store.tokens import TokenRow


token = typer.Typer(help="Access tokens of the service (`amux serve`).", no_args_is_help=True)
_COLUMNS = (
    "name",
    "id",
    "scopes",
    "state",
    "created",
    "expires",
    "lastUsed",
    "previousUntil",
    "requestsPerMinute",
    "runsPerMinute",
)
_Result = TypeVar("_Result")


class TokenScope(StrEnum):
    """The scopes of a token. Each includes those before it."""

    read = "read"
    run = "run"
    admin = "admin"


RequestLimit = Annotated[
    int | None,
    typer.Option(
        "--requests-per-minute",
        metavar="N",
        min=0,
        max=1_000_000,
        help="Rate limit (0 = none; default: that of the service).",
        show_default=False,
    ),
]
RunLimit = Annotated[
    int | None,
    typer.Option(
        "--runs-per-minute",
        metavar="N",
        min=0,
        max=1_000_000,
        help="Limit of started runs (0 = none; default: that of the service).",
        show_default=False,
    ),
]
TokenName = Annotated[str, typer.Argument(metavar="NAME", help="Token name.", show_default=False)]


@token.command("create")
@with_common_flags
def create_token(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new token.", show_default=False)],
    scope: Annotated[
        list[TokenScope],
        typer.Option(
            "--scope",
            help="read: read everything; run: also start and control runs; admin: everything.",
            show_default=False,
        ),
    ],
    expires: Annotated[
        str | None,
        typer.Option(
            "--expires",
            metavar="TIME",
            help="Lifetime, such as 90d (m, h, d, w; default: never expires).",
            show_default=False,
        ),
    ] = None,
    requests_per_minute: RequestLimit = None,
    runs_per_minute: RunLimit = None,
    database: DatabaseUrl = None,
    config_dir: ConfigDir = None,
) -> int:
    """Create a token and print it once. It cannot be shown again.

    A token that may start runs is equivalent to a shell of the user who runs the service.
    """
    from agent_mux.cli.inputs import parse_duration

    until = None if expires is None else _to_ms(datetime.now(UTC) + parse_duration(expires, "--expires"))
    scopes = [one.value for one in scope]

    def create(keyring: "Keyring") -> "Awaitable[Token]":
        from agent_mux.service.security.tokens import RateLimits

        return keyring.create(name, scopes, expires_at=until, limits=RateLimits(requests_per_minute, runs_per_minute))

    made = _with_keyring(database, config_dir, create)
    return _print_token(made, name, context.obj)


@token.command("rotate")
@with_common_flags
def rotate_token(
    context: typer.Context,
    name: TokenName,
    grace: Annotated[
        str, typer.Option("--grace", metavar="TIME", help="How long the old secret stays valid (0m = revoke now).")
    ] = "24h",
    database: DatabaseUrl = None,
    config_dir: ConfigDir = None,
) -> int:
    """Replace the secret of a token and print the new one once."""
    from agent_mux.cli.inputs import parse_duration

    grace_ms = parse_duration(grace, "--grace") // timedelta(milliseconds=1)
    made = _with_keyring(database, config_dir, lambda keyring: keyring.rotate(name, grace_ms=grace_ms))
    return _print_token(made, name, context.obj)


@token.command("list")
@with_common_flags
def list_tokens(context: typer.Context, database: DatabaseUrl = None, config_dir: ConfigDir = None) -> int:
    """List the tokens and their states, without secrets."""
    from agent_mux.cli.command_output import print_rows

    found = _with_keyring(database, config_dir, lambda keyring: keyring.list())
    rows = [_token_row(row, is_json=context.obj.json) for row in found]
    print_rows(rows, _COLUMNS, context.obj, empty="no tokens; create one with `amux tokens create`")
    return 0


@token.command("revoke")
@with_common_flags
def revoke_token(
    context: typer.Context,
    name: TokenName,
    forget: Annotated[
        bool,
        typer.Option(
            "--forget",
            help="Also remove it from the list, so that its name is free.",
            show_default=False,
        ),
    ] = False,
    database: DatabaseUrl = None,
    config_dir: ConfigDir = None,
) -> int:
    """Revoke a token. Running services apply this within a second."""
    from agent_mux.cli.command_output import print_result

    _with_keyring(database, config_dir, lambda keyring: keyring.forget(name) if forget else keyring.revoke(name))
    return print_result(
        context.obj, f"{name} is {'forgotten' if forget else 'revoked'}", {"name": name, "forgotten": forget}
    )


@token.command("allow-none")
@with_common_flags
def allow_no_token(context: typer.Context, database: DatabaseUrl = None, config_dir: ConfigDir = None) -> int:
    """Let a service without any token admit local users again, from its next start.

    A service that once had a token needs one even if its database was removed or exchanged. This command ends that.
    Tokens that still exist have to be forgotten first (`amux tokens revoke NAME --forget`).
    """
    from agent_mux.cli.command_output import print_result

    _with_keyring(database, config_dir, lambda keyring: keyring.allow_none())
    return print_result(context.obj, "no token is needed from the next start of the service", {"needsToken": False})


def _with_keyring(
    database: str | None, config_dir: Path | None, do: "Callable[[Keyring], Awaitable[_Result]]"
) -> _Result:
    """Call `do` with the keyring in the database that a service with the same flags uses."""
    from agent_mux.cli.serve_command import require_extra, with_database

    require_extra("amux tokens")
    from agent_mux.service.security.keyring import Keyring
    from agent_mux.service.store.tokens import TokenStore

    return with_database(database, config_dir, lambda found: do(Keyring(TokenStore(found))))


def _print_token(made: "Token", name: str, invocation: Invocation) -> int:
    """Print the token on standard output and nowhere else."""
    from agent_mux.cli.command_output import print_json, print_note

    if invocation.json:
        print_json({"name": name, "id": made.id, "token": str(made)})
    else:
        sys.stdout.write(f"{made}\n")
        print_note(f"This is the token of {name}. It is not shown again; send it as `Authorization: Bearer ...`.")
    return 0


def _token_row(row: "TokenRow", *, is_json: bool) -> dict[str, Any]:
    now = _to_ms(datetime.now(UTC))
    state = "valid" if row.is_valid(now) else "revoked" if row.revoked_at is not None else "expired"
    previous = row.previous_valid_until if row.previous_hash_at(now) else None
    columns = {
        "name": row.name,
        "id": row.id,
        "scopes": row.scopes.split(),
        "state": state,
        "created": _format_time(row.created_at, is_json=is_json),
        "expires": _format_time(row.expires_at, is_json=is_json),
        "lastUsed": _format_time(row.last_used_at, is_json=is_json),
        "previousUntil": _format_time(previous, is_json=is_json),
        "requestsPerMinute": row.requests_per_minute,
        "runsPerMinute": row.runs_per_minute,
    }
    return {name: value for name, value in columns.items() if value is not None}


def _format_time(ms: int | None, *, is_json: bool) -> str | None:
    if ms is None:
        return None
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds") if is_json else local_minute(ms)


def _to_ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
