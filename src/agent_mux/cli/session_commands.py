"""`amux sessions`: list, show, search, export, compare and follow the agents' stored sessions."""

import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from enum import StrEnum
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_mux.cli.decorators import with_common_flags, with_service_flags
from agent_mux.cli.options import Compact, ConfigDir, ProjectDir
from agent_mux.cli.run_commands import fork, resume
from agent_mux.cli.session_options import (
    Agent,
    Cwd,
    Direction,
    Directory,
    Limit,
    ListOrder,
    Model,
    SessionId,
    Since,
    Tags,
    Until,
    open_sessions,
    session_filter,
    warn_of_skipped,
)
from agent_mux.cli.terminal import is_terminal, local_minute, one_line, palette_for

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_mux.cli.views import View
    from agent_mux.events import AgentEvent
    from agent_mux.sdk.session_changes import RewindScope
    from agent_mux.sessions.conversation import SessionMessage
    from agent_mux.sessions.queries import SessionDiff


_SESSION_COLUMNS = ("session", "changed", "turns", "cost", "model", "tags", "directory", "title")
sessions = typer.Typer(help="Stored sessions of the agents.", no_args_is_help=True)
sessions.command("resume")(resume)
sessions.command("fork")(fork)


class SessionOrder(StrEnum):
    """Sort orders of `sessions list`: by last change, cost or number of turns."""

    date = "date"
    cost = "cost"
    turns = "turns"


class HitOrder(StrEnum):
    """Sort orders of `sessions search`: by number of hits, last change or cost."""

    relevance = "relevance"
    date = "date"
    cost = "cost"


class ExportFormat(StrEnum):
    """Document formats of `sessions export`."""

    json = "json"
    jsonl = "jsonl"
    markdown = "markdown"
    html = "html"


OutputPath = Annotated[
    Path | None, typer.Option("--output", "-o", help="Write to this file, which must not exist.", show_default=False)
]


@sessions.command("list")
@with_common_flags
@with_service_flags
def list_sessions(
    context: typer.Context,
    agent: Agent = None,
    model: Model = None,
    since: Since = None,
    until: Until = None,
    tag: Tags = None,
    cwd: Cwd = None,
    sort: Annotated[SessionOrder, typer.Option("--sort", help="Sort order.")] = SessionOrder.date,
    order: Direction = ListOrder.desc,
    limit: Limit = 100,
    directory: Directory = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """List the sessions of one agent or of all agents.

    Files that cannot be read as a session are warnings on standard error, and `skipped` in the output of --json.
    """
    from agent_mux.cli.command_output import json_envelope, print_rows

    which = session_filter(agent=agent, directory=directory, model=model, since=since, until=until, tags=tag, cwd=cwd)
    with open_sessions(config_dir, project_dir, context.obj.service) as library:
        found = library.list(which, sort=sort.value, order=order.value, limit=limit or None)
    if context.obj.service is not None:
        warn_of_skipped(found.skipped)
    if context.obj.json:
        skipped = {"skipped": _to_builtins(found.skipped)} if found.skipped else {}
        sys.stdout.write(json_envelope([_to_builtins(summary) for summary in found], **skipped) + "\n")
        return 0
    rows = [_session_row(summary) for summary in found]
    print_rows(rows, _SESSION_COLUMNS, context.obj, empty="no stored session matches")
    return 0


@sessions.command("show")
@with_common_flags
@with_service_flags
def show_session(
    context: typer.Context,
    session: SessionId,
    agent: Agent = None,
    events: Annotated[
        bool, typer.Option("--events", help="Print as events, one JSON line each.", show_default=False)
    ] = False,
    compact: Compact = False,
    directory: Directory = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Show a session: prompts, answers and tool calls."""
    where = session_filter(agent=agent, directory=directory)
    if events:
        with open_sessions(config_dir, project_dir, context.obj.service) as library:
            stream = library.events(session, where)
            first_event = list(islice(stream, 1))
        return _print_events(chain(first_event, stream), compact=compact)
    from agent_mux.cli.command_output import json_envelope
    from agent_mux.cli.terminal import is_terminal, sanitize
    from agent_mux.sessions.export import export

    with open_sessions(config_dir, project_dir, context.obj.service) as library:
        found = library.get(session, where)
    if context.obj.json:
        sys.stdout.write(json_envelope(_to_builtins(found)) + "\n")
        return 0
    text = export(found, "markdown")
    sys.stdout.write(sanitize(text) if is_terminal(sys.stdout) else text)
    return 0


@sessions.command("search")
@with_common_flags
@with_service_flags
def search_sessions(
    context: typer.Context,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Text to find (case-insensitive).", show_default=False)],
    agent: Agent = None,
    model: Model = None,
    since: Since = None,
    until: Until = None,
    tag: Tags = None,
    cwd: Cwd = None,
    sort: Annotated[HitOrder, typer.Option("--sort", help="Sort order.")] = HitOrder.relevance,
    order: Direction = ListOrder.desc,
    limit: Limit = 50,
    directory: Directory = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Search sessions by messages, tool inputs and tool results."""
    from agent_mux.cli.command_output import print_rows
    from agent_mux.cli.errors import usage_error

    if not text.strip():
        raise usage_error("search text is empty; give the words to search for")
    which = session_filter(agent=agent, directory=directory, model=model, since=since, until=until, tags=tag, cwd=cwd)
    with open_sessions(config_dir, project_dir, context.obj.service) as library:
        hits = library.search(text, which, sort=sort.value, order=order.value, limit=limit or None)
    rows = [
        {
            "session": hit.session.id,
            "changed": local_minute(hit.session.updated_at),
            "found": hit.count,
            "where": hit.excerpt,
        }
        for hit in hits
    ]
    shown = [_to_builtins(hit) for hit in hits] if context.obj.json else rows
    print_rows(shown, ("session", "changed", "found", "where"), context.obj, empty="no matches")
    return 0


@sessions.command("export")
@with_common_flags
@with_service_flags
def export_session(
    context: typer.Context,
    session: SessionId,
    form: Annotated[
        ExportFormat | None,
        typer.Option("--format", "-f", help="Document format (default markdown; with --json: json)."),
    ] = None,
    output: OutputPath = None,
    agent: Agent = None,
    directory: Directory = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Export a session as JSON, JSON lines, Markdown or a single HTML file."""
    from agent_mux.cli.command_output import print_result

    chosen = _export_format(form, prints_json=context.obj.json and output is None)
    wanted = session_filter(agent=agent, directory=directory)
    with open_sessions(config_dir, project_dir, context.obj.service) as library:
        text = library.export(session, chosen.value, wanted)
    if output is None:
        sys.stdout.write(text)
        return 0
    _write_document(text, output)
    return print_result(context.obj, f"wrote {output}", {"path": str(output)})


def _export_format(form: ExportFormat | None, *, prints_json: bool) -> ExportFormat:
    """Return the format of an exported document. Raise a usage error if standard output must be JSON and it is not."""
    from agent_mux.cli.errors import usage_error

    if form is None:
        return ExportFormat.json if prints_json else ExportFormat.markdown
    if prints_json and form not in {ExportFormat.json, ExportFormat.jsonl}:
        raise usage_error(
            f"--format {form} on standard output cannot be combined with --json; add --output FILE, or omit one of them"
        )
    return form


@sessions.command("diff")
@with_common_flags
def diff_sessions(
    context: typer.Context,
    first: Annotated[str, typer.Argument(metavar="FIRST", help="Session, as for `show`.", show_default=False)],
    second: Annotated[str, typer.Argument(metavar="SECOND", help="Session, as for `show`.", show_default=False)],
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Compare two sessions, such as a fork and its origin; exit 1 if they differ."""
    from agent_mux.cli import exit_codes
    from agent_mux.cli.command_output import json_envelope

    with open_sessions(config_dir, project_dir) as library:
        found = library.diff(first, second)
    if context.obj.json:
        sys.stdout.write(json_envelope(_to_builtins(found)) + "\n")
    else:
        sys.stdout.writelines(_diff_lines(found, no_color=context.obj.no_color))
    return exit_codes.OK if found.is_same else exit_codes.GENERAL


@sessions.command("watch")
@with_common_flags
def tail_session(
    context: typer.Context,
    session: Annotated[
        str | None,
        typer.Argument(metavar="[SESSION]", help="Session, as for `show` (default: the latest).", show_default=False),
    ] = None,
    agent: Agent = None,
    cwd: Cwd = None,
    all_of_it: Annotated[
        bool, typer.Option("--all", help="Print the existing events first.", show_default=False)
    ] = False,
    compact: Compact = False,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Follow a session while its agent works and print its events as they are stored. Stop with Ctrl-C."""
    import anyio

    printer = _EventPrinter(as_json=context.obj.json, compact=compact, no_color=context.obj.no_color)
    wanted = session_filter(agent=agent, cwd=cwd)
    with open_sessions(config_dir, project_dir) as library:
        if session is None:
            summary = library.latest(wanted)
            sys.stderr.write(f"following {one_line(summary.id, 200)}: {one_line(summary.title, 100)}\n")
            session = summary.id
        events = library.watch(session, wanted, from_start=all_of_it)

    anyio.run(_follow, events, printer)
    return 0


async def _follow(events: "AsyncIterator[AgentEvent]", printer: "_EventPrinter") -> None:
    """Print events until Ctrl-C. Raise `BrokenPipeError` when the reader of standard output is gone."""
    import anyio

    from agent_mux.cli.output import leave_without_reader
    from agent_mux.cli.run_driver import ending_signals

    async def leave_on_ctrl_c(scope: anyio.CancelScope) -> None:
        async for _ in signals:
            scope.cancel()

    # A receiver instead of `KeyboardInterrupt`, which would be raised anywhere in the event loop.
    interruptions = {signal.SIGINT} & set(ending_signals())
    with anyio.open_signal_receiver(*interruptions) as signals:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(leave_without_reader)
            tasks.start_soon(leave_on_ctrl_c, tasks.cancel_scope)
            async for event in events:
                printer.show(event)
            tasks.cancel_scope.cancel()


@sessions.command("tag")
@with_common_flags
def tag_session(
    context: typer.Context,
    session: SessionId,
    tags: Annotated[
        list[str] | None, typer.Argument(metavar="[TAG]...", help="Tags to add.", show_default=False)
    ] = None,
    remove: Annotated[
        list[str] | None,
        typer.Option("--remove", metavar="TAG", help="Tag to remove (repeatable).", show_default=False),
    ] = None,
    agent: Agent = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Add tags to a session of any agent, or show them. They are kept by amux."""
    from agent_mux.cli.command_output import json_envelope

    with open_sessions(config_dir, project_dir) as library:
        found = library.find(session, session_filter(agent=agent)).summary
        given = library.tag(found.id, add=tags or (), remove=remove or ()) if tags or remove else found.tags
    if context.obj.json:
        sys.stdout.write(json_envelope({"session": found.id, "tags": list(given)}) + "\n")
    else:
        sys.stdout.write(f"{one_line(', '.join(given), 1000)}\n" if given else "")
    return 0


@sessions.command("rename")
@with_common_flags
@with_service_flags
def rename_session(
    context: typer.Context,
    session: SessionId,
    title: Annotated[str, typer.Argument(metavar="TITLE", help="New title.", show_default=False)],
    agent: Agent = None,
    config_dir: ConfigDir = None,
) -> int:
    """Set the title of a session with its agent's own command."""
    from agent_mux.cli.command_output import print_result

    with open_sessions(config_dir, None, context.obj.service) as library:
        found = library.rename(session, title, session_filter(agent=agent))
    return print_result(context.obj, f"renamed {found.id}", {"session": found.id, "title": found.title})


@sessions.command("delete")
@with_common_flags
@with_service_flags
def delete_session(
    context: typer.Context,
    session: SessionId,
    agent: Agent = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.", show_default=False)] = False,
    config_dir: ConfigDir = None,
) -> int:
    """Delete a session permanently with its agent's own command."""
    from agent_mux.cli.command_output import print_note, print_result

    with open_sessions(config_dir, None, context.obj.service) as library:
        found = library.deletable(session, session_filter(agent=agent))
    question = f"Delete {one_line(found.id, 200)} ({one_line(found.title, 60)})?"
    if not yes and not _confirm(question, f"--yes deletes {found.id}"):
        print_note("nothing was deleted")
        return 0
    with open_sessions(config_dir, None, context.obj.service) as library:
        library.delete(found.id)
    return print_result(context.obj, f"deleted {found.id}", {"session": found.id})


@sessions.command("checkpoints")
@with_common_flags
@with_service_flags
def list_checkpoints(
    context: typer.Context,
    session: SessionId,
    agent: Agent = None,
    config_dir: ConfigDir = None,
) -> int:
    """List the checkpoints of a session: the states before its prompts."""
    from agent_mux.cli.command_output import print_rows

    with open_sessions(config_dir, None, context.obj.service) as library:
        found = library.checkpoints(session, session_filter(agent=agent))
    if context.obj.json:
        rows = [_to_builtins(one) for one in found]
    else:
        rows = [
            {
                "checkpoint": one.id,
                "sent": None if one.at is None else local_minute(one.at),
                "files": "yes" if one.has_files else "no",
                "prompt": one_line(one.prompt, 60),
            }
            for one in found
        ]
    print_rows(rows, ("checkpoint", "sent", "files", "prompt"), context.obj, empty="the session has no checkpoint")
    return 0


@sessions.command("rewind")
@with_common_flags
@with_service_flags
def rewind_session(
    context: typer.Context,
    session: SessionId,
    checkpoint: Annotated[
        str, typer.Argument(metavar="CHECKPOINT", help="Id from `checkpoints`, or its beginning.", show_default=False)
    ],
    agent: Agent = None,
    files: Annotated[
        bool, typer.Option("--files", help="Restore only the files that the agent edited.", show_default=False)
    ] = False,
    conversation: Annotated[
        bool, typer.Option("--conversation", help="Rewind only the conversation.", show_default=False)
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.", show_default=False)] = False,
    config_dir: ConfigDir = None,
) -> int:
    """Rewind a session to the state before a prompt, with its agent's own command.

    Restored files lose every change since then. Default: conversation and files, as far as the agent has both.
    """
    from agent_mux.cli.command_output import print_note, print_result
    from agent_mux.cli.errors import usage_error

    if files and conversation:
        raise usage_error("--files cannot be combined with --conversation; without both, both are rewound")
    scope: RewindScope | None = "files" if files else "conversation" if conversation else None
    with open_sessions(config_dir, None, context.obj.service) as library:
        plan = library.plan_rewind(session, checkpoint, session_filter(agent=agent), scope=scope)
    what = "conversation and files" if plan.changed == "both" else plan.changed
    question = f"Rewind the {what} of {one_line(plan.session, 200)} to before {one_line(plan.checkpoint.prompt, 60)!r}?"
    if not yes and not _confirm(question, f"--yes rewinds the {what} of {plan.session}"):
        print_note("nothing was rewound")
        return 0
    with open_sessions(config_dir, None, context.obj.service) as library:
        done = library.rewind(plan.session, plan.checkpoint.id, scope=plan.changed)
    into = f" as the new session {done.session}" if done.is_new else ""
    return print_result(context.obj, f"rewound the {what} of {plan.session}{into}", _to_builtins(done))


@sessions.command("names")
@with_common_flags
def list_names(
    context: typer.Context,
    agent: Annotated[
        str | None, typer.Option("--agent", "-a", help="Only sessions of this agent.", show_default=False)
    ] = None,
    cwd: Annotated[Path | None, typer.Option("--cwd", help="Only names of this directory.", show_default=False)] = None,
    remove: Annotated[
        str | None,
        typer.Option("--remove", metavar="NAME", help="Remove this name; its session is kept.", show_default=False),
    ] = None,
    config_dir: ConfigDir = None,
) -> int:
    """List the session names of `amux run --session-name`, or remove one."""
    from agent_mux.cli.command_output import print_rows
    from agent_mux.cli.errors import usage_error

    if cwd is not None and not cwd.is_dir():
        raise usage_error(f"--cwd {cwd} is not a directory; name an existing one")
    with open_sessions(config_dir) as library:
        if remove is None:
            found = library.names(agent=agent, directory=cwd)
        else:
            found = library.forget_name(remove, agent=agent, directory=cwd or Path.cwd())
    rows = [_to_builtins(one) for one in found]
    if not context.obj.json:
        rows = [{**row, "session": row["sessionId"], "used": local_minute(row["updatedAt"])} for row in rows]
    print_rows(rows, ("name", "agent", "directory", "session", "used"), context.obj, empty="no session has a name")
    return 0


def _confirm(question: str, without_terminal: str) -> bool:
    """Ask on the terminal; raise a usage error if there is none."""
    from agent_mux.cli.errors import usage_error

    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise usage_error(f"no terminal to ask on; {without_terminal}")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _print_events(events: "Iterable[AgentEvent]", *, compact: bool) -> int:

    printer = _EventPrinter(as_json=True, compact=compact, no_color=True)
    for event in events:
        printer.show(event)
    return 0


def _session_row(summary: Any) -> dict[str, Any]:
    from agent_mux.cli.command_output import Dollars
    from agent_mux.cli.terminal import one_line

    cost = summary.cost
    return {
        "session": summary.id,
        "changed": local_minute(summary.updated_at),
        "turns": summary.turn_count,
        "cost": None if cost.source == "unknown" else Dollars(cost.total_usd),
        "model": ", ".join(summary.models),
        "tags": one_line(", ".join(summary.tags), 50),
        "directory": summary.cwd,
        "title": one_line(summary.title, 50),
    }


def _to_builtins(value: Any) -> Any:
    import msgspec

    return msgspec.to_builtins(value)


def _write_document(text: str, output: Path) -> None:
    from agent_mux.cli.errors import usage_error

    try:
        descriptor = os.open(
            output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600
        )  # readable by its owner only: it contains prompts
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise usage_error(f"{output} already exists; choose another name, or remove it") from error
    except OSError as error:
        raise usage_error(f"cannot write {output}: {error.strerror or error}; choose another file") from error


LONGEST_DIFF_LINE = 160  # characters of a message in a comparison


class _EventPrinter:
    """Prints events as they arrive: JSON lines, or the same view as of a run."""

    def __init__(self, *, as_json: bool, compact: bool, no_color: bool) -> None:
        from agent_mux.cli.request import screen_for
        from agent_mux.cli.views import HumanView, JsonView

        self._view: View = JsonView(compact=compact) if as_json else HumanView(screen_for(no_color=no_color))

    def show(self, event: "AgentEvent") -> None:
        """Print one event without buffering."""
        for stream, text in self._view.show(event):
            out = sys.stderr if stream == "err" else sys.stdout
            out.write(text)
            out.flush()


def _diff_lines(diff: "SessionDiff", *, no_color: bool) -> Iterator[str]:
    """Format the messages that only one of two sessions has."""
    palette = palette_for(sys.stdout, no_color=no_color)
    yield palette.bold(f"--- {diff.first.id}") + "\n" + palette.bold(f"+++ {diff.second.id}") + "\n"
    yield palette.dim(f"{diff.common} messages in common at the start") + "\n"
    for change in diff.changes:
        yield palette.accent(f"@@ message {change.at} @@") + "\n"
        for message in change.removed:
            yield from (palette.bad(f"- {line}") + "\n" for line in _message_lines(message))
        for message in change.added:
            yield from (palette.good(f"+ {line}") + "\n" for line in _message_lines(message))


def _message_lines(message: "SessionMessage") -> Iterator[str]:
    width = LONGEST_DIFF_LINE if is_terminal(sys.stdout) else 10 * LONGEST_DIFF_LINE
    if message.text:
        yield f"{message.role}: {one_line(message.text, width)}"
    for tool in message.tools:
        yield f"{message.role} calls {one_line(f'{tool.name} {tool.input}', width)}"
