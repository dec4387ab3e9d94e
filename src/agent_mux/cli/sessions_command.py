"""`amux sessions`: what the agents stored of their conversations."""

import os
import sys
from datetime import datetime
from enum import StrEnum
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.elsewhere import can_ask_a_service
from agent_mux.cli.options import Compact, ConfigDir, ProjectDir
from agent_mux.cli.resume_command import fork, resume
from agent_mux.cli.session_options import (
    Agent,
    Cwd,
    Directory,
    Limit,
    Model,
    SessionId,
    Since,
    Tags,
    Until,
    reading,
    wanted_from,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_mux.events import AgentEvent

_COLUMNS = ("session", "changed", "turns", "cost", "model", "tags", "directory", "title")
sessions = typer.Typer(help="The conversations that agents stored.", no_args_is_help=True)
sessions.command("resume")(resume)
sessions.command("fork")(fork)


class Order(StrEnum):
    """What comes first: the latest, the dearest, or the longest."""

    date = "date"
    cost = "cost"
    turns = "turns"


class HitOrder(StrEnum):
    """What comes first: where it was found most often, the latest, or the dearest."""

    relevance = "relevance"
    date = "date"
    cost = "cost"


class Form(StrEnum):
    """Of an export."""

    json = "json"
    jsonl = "jsonl"
    markdown = "markdown"
    html = "html"


Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="Into this file, which must not be there.", show_default=False)
]


@sessions.command("list")
@with_common_flags
@can_ask_a_service
def list_sessions(
    context: typer.Context,
    agent: Agent = None,
    model: Model = None,
    since: Since = None,
    until: Until = None,
    tag: Tags = None,
    cwd: Cwd = None,
    sort: Annotated[Order, typer.Option("--sort", help="What comes first.")] = Order.date,
    limit: Limit = 100,
    directory: Directory = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Show the sessions of an agent, or of all agents: the latest first."""
    from agent_mux.cli.tables import print_rows

    which = wanted_from(agent=agent, directory=directory, model=model, since=since, until=until, tags=tag, cwd=cwd)
    with reading(config_dir, project_dir, context.obj.service) as library:
        found = library.list(which, sort=sort.value, limit=limit or None)
    rows = [_plain(summary) if context.obj.json else _row(summary) for summary in found]
    print_rows(rows, _COLUMNS, context.obj, empty="no sessions are stored")
    return 0


@sessions.command("show")
@with_common_flags
@can_ask_a_service
def show(
    context: typer.Context,
    session: SessionId,
    agent: Agent = None,
    events: Annotated[
        bool, typer.Option("--events", help="As the events of a run, one a line.", show_default=False)
    ] = False,
    compact: Compact = False,
    directory: Directory = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Show a session: what was asked, answered and done."""
    where = wanted_from(agent=agent, directory=directory)
    if events:
        with reading(config_dir, project_dir, context.obj.service) as library:
            told = library.events(session, where)
            begun = list(islice(told, 1))
        return _show_events(chain(begun, told), compact=compact)
    from agent_mux.cli.json_output import envelope
    from agent_mux.cli.terminal import is_terminal, sanitize
    from agent_mux.sessions.exporting import export

    with reading(config_dir, project_dir, context.obj.service) as library:
        found = library.get(session, where)
    if context.obj.json:
        sys.stdout.write(envelope(_plain(found)) + "\n")
        return 0
    text = export(found, "markdown")
    sys.stdout.write(sanitize(text) if is_terminal(sys.stdout) else text)
    return 0


@sessions.command("search")
@with_common_flags
@can_ask_a_service
def search(
    context: typer.Context,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="What was said or done, in any case.", show_default=False)
    ],
    agent: Agent = None,
    model: Model = None,
    since: Since = None,
    until: Until = None,
    tag: Tags = None,
    cwd: Cwd = None,
    sort: Annotated[HitOrder, typer.Option("--sort", help="What comes first.")] = HitOrder.relevance,
    limit: Limit = 50,
    directory: Directory = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Find sessions by what was said in them, or by what tools were given and answered."""
    from agent_mux.cli.errors import bad_input
    from agent_mux.cli.tables import print_rows

    if not text.strip():
        raise bad_input("search for what? The text is empty")
    which = wanted_from(agent=agent, directory=directory, model=model, since=since, until=until, tags=tag, cwd=cwd)
    with reading(config_dir, project_dir, context.obj.service) as library:
        hits = library.search(text, which, sort=sort.value, limit=limit or None)
    rows = [
        {"session": hit.session.id, "changed": _date(hit.session.updated_at), "found": hit.count, "where": hit.excerpt}
        for hit in hits
    ]
    shown = [_plain(hit) for hit in hits] if context.obj.json else rows
    print_rows(shown, ("session", "changed", "found", "where"), context.obj, empty="nowhere")
    return 0


@sessions.command("export")
@with_common_flags
@can_ask_a_service
def export_session(
    context: typer.Context,
    session: SessionId,
    form: Annotated[Form, typer.Option("--format", "-f", help="Of the document.")] = Form.markdown,
    output: Output = None,
    agent: Agent = None,
    directory: Directory = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Write a session as a document: JSON, JSON lines, Markdown, or one HTML file."""
    wanted = wanted_from(agent=agent, directory=directory)
    with reading(config_dir, project_dir, context.obj.service) as library:
        text = library.export(session, form.value, wanted)
    _write(text, output)
    return 0


@sessions.command("diff")
@with_common_flags
def diff_sessions(
    context: typer.Context,
    first: Annotated[str, typer.Argument(metavar="FIRST", help="As for `show`.", show_default=False)],
    second: Annotated[str, typer.Argument(metavar="SECOND", help="As for `show`.", show_default=False)],
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Compare two sessions: exit 1 where they differ. A fork and its origin begin alike."""
    from agent_mux.cli import exit_codes
    from agent_mux.cli.json_output import envelope
    from agent_mux.cli.session_views import diff_lines

    with reading(config_dir, project_dir) as library:
        found = library.diff(first, second)
    if context.obj.json:
        sys.stdout.write(envelope(_plain(found)) + "\n")
    else:
        sys.stdout.writelines(diff_lines(found, no_color=context.obj.no_color))
    return exit_codes.OK if found.is_same else exit_codes.GENERAL


@sessions.command("tail")
@with_common_flags
def tail(
    context: typer.Context,
    session: SessionId,
    agent: Agent = None,
    all_of_it: Annotated[
        bool, typer.Option("--all", help="Begin with what is there already.", show_default=False)
    ] = False,
    compact: Compact = False,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Follow a session while its agent works: its events, as they are stored. Ctrl-C ends it."""
    import anyio

    from agent_mux.cli.session_views import EventPrinter

    printer = EventPrinter(as_json=context.obj.json, compact=compact, no_color=context.obj.no_color)
    with reading(config_dir, project_dir) as library:
        events = library.watch(session, wanted_from(agent=agent), from_start=all_of_it)

    async def follow() -> None:
        async for event in events:
            printer.show(event)

    try:
        anyio.run(follow)
    except KeyboardInterrupt:
        return 0  # the only way out
    return 0


def _show_events(events: "Iterable[AgentEvent]", *, compact: bool) -> int:
    from agent_mux.cli.session_views import EventPrinter

    printer = EventPrinter(as_json=True, compact=compact, no_color=True)
    for event in events:
        printer.show(event)
    return 0


def _row(summary: Any) -> dict[str, Any]:
    from agent_mux.cli.terminal import one_line

    cost = summary.cost
    return {
        "session": summary.id,
        "changed": _date(summary.updated_at),
        "turns": summary.turn_count,
        "cost": None if cost.source == "unknown" else cost.total_usd,
        "model": ", ".join(summary.models),
        "tags": one_line(", ".join(summary.tags), 50),
        "directory": summary.cwd,
        "title": one_line(summary.title, 50),
    }


def _date(at: int) -> str:
    return datetime.fromtimestamp(at / 1000).astimezone().strftime("%Y-%m-%d %H:%M")


def _plain(value: Any) -> Any:
    import msgspec

    return msgspec.to_builtins(value)


def _write(text: str, output: Path | None) -> None:
    from agent_mux.cli.errors import bad_input

    if output is None:
        sys.stdout.write(text)
        return
    try:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)  # it holds prompts
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise bad_input(f"{output} is there already; give another name, or remove it") from error
    except OSError as error:
        raise bad_input(f"cannot write {output}: {error.strerror or error}") from error
