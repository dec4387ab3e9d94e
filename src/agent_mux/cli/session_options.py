"""Options and helpers of the commands that read stored sessions."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from agent_mux.cli.command_output import ServiceEndpoint
    from agent_mux.client.remote.sessions import RemoteSessions
    from agent_mux.sessions.client import Sessions
    from agent_mux.sessions.library import SkippedFile
    from agent_mux.sessions.summary import SessionFilter


Agent = Annotated[
    str | None,
    typer.Option("--agent", "-a", help="Only sessions of this agent.", show_default=False),
]
Model = Annotated[str | None, typer.Option("--model", "-m", help="Only sessions with this model.", show_default=False)]
Since = Annotated[
    str | None,
    typer.Option(
        "--since", metavar="TIME", help="Only sessions changed since (2026-11-21, or 7d).", show_default=False
    ),
]
Until = Annotated[
    str | None,
    typer.Option(
        "--until", metavar="TIME", help="Only sessions changed before (format as --since).", show_default=False
    ),
]
Cwd = Annotated[
    Path | None, typer.Option("--cwd", help="Only sessions in this directory or below.", show_default=False)
]
Tags = Annotated[
    list[str] | None,
    typer.Option(
        "--tag", metavar="TAG", help="Only runs with this tag (repeat to require several).", show_default=False
    ),
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=0, help="Maximum number of results (0 = all).")]


class ListOrder(StrEnum):
    """The direction of a sorted list."""

    desc = "desc"
    asc = "asc"


Direction = Annotated[
    ListOrder, typer.Option("--order", help="desc: largest or latest first; asc: smallest or oldest first.")
]
Directory = Annotated[
    Path | None,
    typer.Option("--dir", help="Read a copy of the agent's directory (needs --agent).", show_default=False),
]
SessionId = Annotated[
    str,
    typer.Argument(metavar="SESSION", help="Session id, <agent>:<id>, or a unique id prefix.", show_default=False),
]


@contextmanager
def open_sessions(
    config_dir: Path | None, project_dir: Path | None = None, service: "ServiceEndpoint | None" = None
) -> "Iterator[Sessions | RemoteSessions]":
    """Open the stored sessions of all agents and show progress; print skipped files as warnings at the end.

    With `service`, the sessions are those of its machine.
    """
    from agent_mux.cli.terminal import progress

    if service is not None:
        with progress("querying the service"):
            yield service.client().sessions
        return
    from agent_mux._util.paths import config_dir as default_config_dir
    from agent_mux.sessions.cache import SUMMARIES
    from agent_mux.sessions.client import Sessions
    from agent_mux.sessions.tags import SessionTags

    place = config_dir or default_config_dir()
    skipped: list[SkippedFile] = []
    tags = SessionTags(place, project_dir)
    try:
        with progress("reading sessions") as shown:
            yield Sessions(
                cache=place / SUMMARIES,
                tags=tags,
                on_read=lambda _: shown.tick(),
                on_skipped=skipped.append,
            )
    finally:
        warn_of_skipped(skipped)


MAX_WARNINGS = 10  # files that cannot be read; `--json` names all


def warn_of_skipped(skipped: "Iterable[SkippedFile]") -> None:
    """Print which files cannot be read, each once, and how many more there are."""
    from agent_mux.cli.terminal import one_line

    files = list(dict.fromkeys(skipped))
    sys.stderr.writelines(f"warning: {one_line(str(one), 1000)}\n" for one in files[:MAX_WARNINGS])
    if len(files) > MAX_WARNINGS:
        more = len(files) - MAX_WARNINGS
        sys.stderr.write(f"warning: {more} more files are skipped; `amux sessions list --json` names them\n")


def session_filter(
    *,
    agent: str | None,
    directory: Path | None = None,
    model: str | None = None,
    since: str | None = None,
    until: str | None = None,
    tags: list[str] | None = None,
    cwd: Path | None = None,
) -> "SessionFilter":
    """Build the filter for the given flags. Raise VALIDATION_ERROR for unusable ones."""
    from agent_mux.cli.errors import usage_error
    from agent_mux.cli.inputs import parse_time
    from agent_mux.sessions.summary import SessionFilter

    if directory is not None and agent is None:
        raise usage_error("--dir needs --agent")
    if directory is not None and not directory.is_dir():
        raise usage_error(f"--dir {directory} is not a directory; name an existing one")
    return SessionFilter(
        agent=agent,
        directory=directory,
        model=model,
        since=parse_time(since, "--since"),
        until=parse_time(until, "--until"),
        tags=tuple(tags or ()),
        cwd=None if cwd is None else str(cwd.absolute()),
    )
