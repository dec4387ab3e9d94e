"""`amux runs`: list, show, watch and control runs, in whatever process of this machine or at a service they work."""

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_mux.cli.decorators import with_common_flags, with_service_flags
from agent_mux.cli.options import ConfigDir
from agent_mux.cli.run_selection import OptionalRunId, RunId

if TYPE_CHECKING:
    from agent_mux.cli.command_output import Invocation
    from agent_mux.client.local_runs import RunRecord

runs = typer.Typer(help="Runs in other shells, detached runs, and recorded ones.", no_args_is_help=True)
_COLUMNS = ("run", "agent", "state", "started", "cost", "waits", "directory", "prompt")
Message = Annotated[str, typer.Argument(metavar="TEXT", help="Message for the agent.", show_default=False)]


@runs.command("list")
@with_common_flags
@with_service_flags
def list_runs(
    context: typer.Context,
    agent: Annotated[str | None, typer.Option("--agent", "-a", help="Only this agent.", show_default=False)] = None,
    state: Annotated[
        list[str] | None,
        typer.Option("--state", metavar="STATE", help="alive, over, or a state (repeatable).", show_default=False),
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="Only runs with this tag (repeatable).", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="Maximum number of runs (0 = all).")] = 20,
    config_dir: ConfigDir = None,
) -> int:
    """List runs, latest first: active ones of any shell, and recorded ones."""
    import msgspec

    from agent_mux.cli.command_output import print_json, print_rows
    from agent_mux.cli.run_selection import local_runs

    invocation: Invocation = context.obj
    which: Any = {"agent": agent, "state": _states(state), "tags": tag or (), "limit": limit or None}
    service = invocation.service
    found: Any = local_runs(config_dir).list(**which) if service is None else service.client().runs.list(**which)
    plain = [_present(msgspec.to_builtins(one)) for one in found]
    if invocation.json:
        print_json(plain)
        return 0
    print_rows([_row(one) for one in plain], _COLUMNS, invocation, empty="no run matches")
    return 0


def _states(given: list[str] | None) -> Any:
    from typing import get_args

    from agent_mux.cli.errors import usage_error
    from agent_mux.run.base import RunState

    allowed = ("alive", "over", *get_args(RunState))
    for state in given or ():
        if state not in allowed:
            raise usage_error(f"--state expects one of {', '.join(allowed)}; got {state!r}")
    return given or ()


def _row(run: dict[str, Any]) -> dict[str, Any]:
    started = run.get("startedAt") or run.get("createdAt")
    moment = datetime.fromtimestamp(started / 1000, UTC).astimezone() if started else None
    state = run.get("state") or "ended"
    return {
        "run": run["runId"],
        "agent": run["agent"],
        "state": run.get("exitReason") or state,
        "started": None if moment is None else moment.strftime("%m-%d %H:%M"),
        "cost": run.get("costUsd"),
        "waits": "; ".join(one["description"] for one in run.get("pending", ()))[:40],
        "directory": run.get("cwd"),
        "prompt": " ".join(run.get("prompt", "").split())[:40],
    }


def _present(plain: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in plain.items() if value not in (None, "", [], ())}


@runs.command("show")
@with_common_flags
def show_run(context: typer.Context, run: OptionalRunId = None, config_dir: ConfigDir = None) -> int:
    """Show one run: its state, what it waits for, and its result."""
    import msgspec

    from agent_mux.cli.command_output import print_json
    from agent_mux.cli.run_selection import find_local

    known, record = find_local(run, config_dir)
    result = known.result(record) if record.exit_reason is not None else None
    plain = _present(msgspec.to_builtins(record))
    if context.obj.json:
        print_json({**plain, **({} if result is None else {"result": result.to_dict()})})
        return 0
    _print_record(record, plain)
    if result is not None:
        files = ", ".join(file.path for file in result.changed_files)
        _print_fields({"changed files": files, "error": None if result.error is None else result.error.message})
        if result.text:
            _print_text(result.text)
    return 0


def _print_record(record: "RunRecord", plain: dict[str, Any]) -> None:
    row = _row(plain)
    _print_fields(
        {
            "run": record.run_id,
            "agent": record.agent,
            "model": record.model,
            "state": row["state"],
            "started": row["started"],
            "duration": None if record.duration_ms is None else f"{record.duration_ms / 1000:.1f} s",
            "turns": record.turn_count,
            "cost": None if record.cost_usd is None else f"${record.cost_usd:.4f}",
            "session": record.session_id,
            "directory": record.cwd,
            "tags": ", ".join(record.tags),
            "prompt": record.prompt,
            "process": record.pid,
            "journal": record.journal,
            "note": record.problem,
        }
    )
    for pending in record.pending:
        _print_fields({"waits for": f"{pending.description}  [{pending.id}]"})
        _print_fields({"answer": f"amux runs answer {record.run_id} yes|no|TEXT"})


def _print_fields(fields: dict[str, Any]) -> None:
    from agent_mux.cli.terminal import one_line

    for name, value in fields.items():
        if value not in (None, ""):
            sys.stdout.write(f"{name:<14}{one_line(str(value), 2000)}\n")


def _print_text(text: str) -> None:
    from agent_mux.cli.terminal import sanitize

    sys.stdout.write("\n" + sanitize(text).removesuffix("\n") + "\n")


@runs.command("watch")
@with_common_flags
@with_service_flags
def watch(context: typer.Context, run: OptionalRunId = None, config_dir: ConfigDir = None) -> int:
    """Watch a run from its beginning, and answer its requests at the terminal.

    Ctrl-C stops watching; the run continues. The exit code is that of the run.
    """
    from agent_mux.cli.run_watcher import watch_run

    return watch_run(context.obj, run, config_dir)


@runs.command("answer")
@with_common_flags
@with_service_flags
def answer(
    context: typer.Context,
    run: RunId,
    text: Annotated[str, typer.Argument(metavar="ANSWER", help="yes, always, no, the number of an option, or a text.")],
    reason: Annotated[str | None, typer.Option("--reason", help="Why: sent with a no.", show_default=False)] = None,
    interaction: Annotated[
        str | None, typer.Option("--id", help="The request (default: the oldest one).", show_default=False)
    ] = None,
    config_dir: ConfigDir = None,
) -> int:
    """Answer an approval or a question of a run."""
    from agent_mux.cli.run_answers import command_for

    service = context.obj.service
    return _send(context, run, command_for(run, text, reason, interaction, service, config_dir), config_dir)


def _send(context: typer.Context, run: str, command: dict[str, Any], config_dir: Any) -> int:
    from agent_mux.cli.command_output import print_result
    from agent_mux.cli.run_selection import send

    done = send(run, command, context.obj.service, config_dir)
    return print_result(context.obj, f"{done['delivery']}: {command['type']} to {done['agent']} {done['runId']}", done)


@runs.command("steer")
@with_common_flags
@with_service_flags
def steer(context: typer.Context, run: RunId, text: Message, config_dir: ConfigDir = None) -> int:
    """Send a message into the running turn."""
    return _send(context, run, {"type": "steer", "text": text}, config_dir)


@runs.command("queue")
@with_common_flags
@with_service_flags
def queue(context: typer.Context, run: RunId, text: Message, config_dir: ConfigDir = None) -> int:
    """Queue a prompt, which begins a turn after all others."""
    return _send(context, run, {"type": "queue", "text": text}, config_dir)


@runs.command("interrupt")
@with_common_flags
@with_service_flags
def interrupt(context: typer.Context, run: RunId, config_dir: ConfigDir = None) -> int:
    """Stop the running turn."""
    return _send(context, run, {"type": "interrupt"}, config_dir)


@runs.command("abort")
@with_common_flags
@with_service_flags
def abort(context: typer.Context, run: RunId, config_dir: ConfigDir = None) -> int:
    """End a run, and wait until none of its processes is left."""
    return _send(context, run, {"type": "abort"}, config_dir)


@runs.command("diff")
@with_common_flags
@with_service_flags
def diff(context: typer.Context, run: OptionalRunId = None, config_dir: ConfigDir = None) -> int:
    """Print the changes of a run as a unified diff, as its agent reported them.

    With --server, the diff is what git compares in the working directory of the run.
    """
    from agent_mux.cli.run_changes import print_changes

    return print_changes(context.obj, run, config_dir)


@runs.command("prune")
@with_common_flags
def prune(
    context: typer.Context,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="AGE", help="Older than this (12h, 30d).", show_default=False)
    ] = None,
    keep: Annotated[
        int | None, typer.Option("--keep", min=0, help="Keep only the N most recent runs.", show_default=False)
    ] = None,
    max_size: Annotated[
        float | None,
        typer.Option("--max-size", metavar="MB", min=0, help="Keep at most this many MB.", show_default=False),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Delete nothing.", show_default=False)] = False,
    config_dir: ConfigDir = None,
) -> int:
    """Delete recordings of finished runs. Active runs are kept."""
    import msgspec

    from agent_mux.cli.command_output import print_result
    from agent_mux.cli.errors import usage_error
    from agent_mux.cli.inputs import parse_duration
    from agent_mux.cli.run_selection import local_runs

    if older_than is None and keep is None and max_size is None:
        raise usage_error("nothing to delete: give --older-than, --keep or --max-size")
    age = None if older_than is None else parse_duration(older_than, "--older-than").total_seconds()
    max_bytes = None if max_size is None else round(max_size * 1_000_000)
    chosen = local_runs(config_dir).prune(older_than=age, keep=keep, max_bytes=max_bytes, dry_run=dry_run)
    size = sum(one.bytes for one in chosen) / 1_000_000
    verb = "would delete" if dry_run else "deleted"
    number = f"{len(chosen)} recording{'' if len(chosen) == 1 else 's'}"
    return print_result(context.obj, f"{verb} {number} ({size:.1f} MB)", [msgspec.to_builtins(one) for one in chosen])
