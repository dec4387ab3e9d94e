"""`amux runs`: list, show, watch and control runs, in whatever process of this machine or at a service they work."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_mux.cli.decorators import with_common_flags, with_service_flags
from agent_mux.cli.options import ConfigDir, size_in_megabytes
from agent_mux.cli.run_selection import OptionalRunId, RunId

if TYPE_CHECKING:
    from agent_mux.cli.command_output import Invocation

runs = typer.Typer(help="Runs in other shells, detached runs, and recorded ones.", no_args_is_help=True)
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
    from agent_mux.cli.command_output import print_json, print_rows
    from agent_mux.cli.run_records import COLUMNS, plain_record, row_of
    from agent_mux.cli.run_selection import local_runs

    invocation: Invocation = context.obj
    which: Any = {"agent": agent, "state": _states(state), "tags": tag or (), "limit": limit or None}
    service = invocation.service
    found: Any = local_runs(config_dir).list(**which) if service is None else service.client().runs.list(**which)
    plain = [plain_record(one) for one in found]
    if invocation.json:
        print_json(plain)
        return 0
    print_rows([row_of(one) for one in plain], COLUMNS, invocation, empty="no run matches")
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


@runs.command("show")
@with_common_flags
@with_service_flags
def show_run(context: typer.Context, run: OptionalRunId = None, config_dir: ConfigDir = None) -> int:
    """Show one run: its state, what it waits for, and its result."""
    from agent_mux.cli.command_output import print_json
    from agent_mux.cli.run_records import print_record
    from agent_mux.cli.run_selection import run_with_result

    service = context.obj.service
    found = run_with_result(run, service, config_dir)
    if context.obj.json:
        print_json(found)
        return 0
    at = "" if service is None else f" --server {service.url}"
    print_record(found, f"amux runs answer {found['runId']} yes|no|TEXT{at}")
    return 0


@runs.command("text")
@with_common_flags
@with_service_flags
def text_of_run(
    context: typer.Context,
    run: OptionalRunId = None,
    offset: Annotated[int, typer.Option("--offset", metavar="BYTE", min=0, help="First byte.")] = 0,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="BYTES", min=0, help="Maximum number of bytes.", show_default=False)
    ] = None,
    config_dir: ConfigDir = None,
) -> int:
    """Print the whole text of the last turn of a run, also where events and the result have its beginning only.

    Offsets and limits count bytes of UTF-8.
    """
    from agent_mux.cli.run_text import print_text

    return print_text(context.obj, run, offset, limit, config_dir)


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
@with_service_flags
def prune(
    context: typer.Context,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="AGE", help="Older than this (12h, 30d).", show_default=False)
    ] = None,
    keep: Annotated[
        int | None, typer.Option("--keep", min=0, help="Keep only the N most recent runs.", show_default=False)
    ] = None,
    max_size: Annotated[
        int | None,
        typer.Option(
            "--max-size",
            metavar="SIZE",
            parser=size_in_megabytes,
            help="Keep at most this much (20GB, 500MiB; a number is MB).",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Delete nothing.", show_default=False)] = False,
    config_dir: ConfigDir = None,
) -> int:
    """Delete recordings of finished runs. Active runs are kept."""
    from agent_mux.cli.run_pruning import prune_runs

    age_keep_size = (older_than, keep, max_size)
    return prune_runs(context.obj, age_keep_size, config_dir, dry_run=dry_run)
