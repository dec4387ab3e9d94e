"""`amux audit`: who did what with the service."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.options import ConfigDir
from agent_mux.cli.serve_command import DatabaseUrl

if TYPE_CHECKING:
    from agent_mux.service.store.audit import AuditFilter, AuditRow
    from agent_mux.service.store.database import Database

SECOND = "%Y-%m-%d %H:%M:%S"  # as in other tables, with seconds: the order of entries matters
_COLUMNS = ("time", "action", "actor", "origin", "client", "target", "outcome", "detail")


@with_common_flags
def audit(  # one for each filter
    context: typer.Context,
    action: Annotated[
        list[str] | None,
        typer.Option("--action", metavar="ACTION", help="Only this action (repeatable).", show_default=False),
    ] = None,
    actor: Annotated[
        str | None, typer.Option("--actor", metavar="NAME", help="Only actions with this token.", show_default=False)
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="ID", help="Only this run, webhook, token or profile.", show_default=False),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="Only entries since (2026-11-21, or 7d).", show_default=False),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="Only entries before (format as --since).", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="Maximum number of entries.")] = 50,
    database: DatabaseUrl = None,
    config_dir: ConfigDir = None,
) -> int:
    """Show who did what with the service, latest first.

    Recorded are the start, the control and the deletion of runs, and changes of tokens, webhooks and profiles. The
    command reads the database, so it works while the service is stopped. Clients use GET /v1/audit.
    """
    from agent_mux.cli.command_output import print_rows
    from agent_mux.cli.inputs import parse_time
    from agent_mux.cli.serve_command import require_extra, with_database

    require_extra("amux audit")
    from agent_mux.service.store.audit import AuditFilter, AuditStore

    which = AuditFilter(
        actions=_checked_actions(action or []),
        actor=actor,
        target=target,
        since=_milliseconds(parse_time(since, "--since")),
        until=_milliseconds(parse_time(until, "--until")),
    )

    async def read(opened: "Database", which: "AuditFilter" = which) -> "list[AuditRow]":
        return await AuditStore(opened, None).page(which, limit=limit)

    rows = [_shown(row, is_json=context.obj.json) for row in with_database(database, config_dir, read)]
    print_rows(rows, _COLUMNS, context.obj, empty="no entries")
    return 0


def _checked_actions(names: list[str]) -> tuple[str, ...]:
    """Return the names. Raises VALIDATION_ERROR for unknown ones."""
    from agent_mux.cli.errors import usage_error
    from agent_mux.service.audit.entries import ACTIONS

    for name in names:
        if name not in ACTIONS:
            raise usage_error(f"--action {name!r} is not an action; allowed: {', '.join(ACTIONS)}")
    return tuple(names)


def _milliseconds(time: datetime | None) -> int | None:
    return None if time is None else int(time.timestamp() * 1000)


def _shown(row: "AuditRow", *, is_json: bool) -> dict[str, Any]:
    import msgspec

    detail, time = msgspec.json.decode(row.detail), datetime.fromtimestamp(row.created_at / 1000, UTC)
    columns = {
        "time": time.isoformat(timespec="milliseconds") if is_json else f"{time.astimezone():{SECOND}}",
        "action": row.action,
        "actor": row.actor,
        "tokenId": row.token_id,
        "origin": row.origin,
        "client": row.client,
        "requestId": row.request_id,
        "targetType": row.target_type,
        "target": row.target,
        "detail": detail if is_json else ", ".join(f"{name}={value}" for name, value in detail.items()),
        "outcome": row.outcome,
        "instance": row.instance,
    }
    return {name: value for name, value in columns.items() if value}
