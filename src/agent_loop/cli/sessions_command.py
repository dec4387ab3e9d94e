"""`amux-agent sessions`: list the stored sessions, or print the conversation of one."""

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import anyio

from agent_loop.cli.home import sessions_directory
from agent_loop.cli.parsing import CommandParser
from agent_loop.cli.printing import print_text
from agent_loop.errors import SessionError
from agent_loop.messages import AssistantMessage, Message, UserMessage
from agent_loop.sessions.file_store import FileSessionStore
from agent_loop.sessions.ids import SUB_AGENT_SUFFIX
from agent_loop.sessions.session import Session
from agent_mux._util.sanitize import one_line, sanitize

WIDTH = 72
"""The width of a session's title in columns."""


def show_sessions(argv: Sequence[str]) -> int:
    """List the sessions, or print one, and return the exit code. Raises `UsageError` and `SessionError`."""
    parser = CommandParser(
        prog="amux-agent sessions", description="List the stored sessions, or print one.", allow_abbrev=False
    )
    parser.add_argument("id", nargs="?", metavar="ID", help="session to print")
    session_id: str | None = parser.parse_args(list(argv)).id
    store = FileSessionStore(sessions_directory(os.environ))
    print_text("".join(f"{line}\n" for line in anyio.run(_lines, store, session_id)))
    return 0


async def _lines(store: FileSessionStore, session_id: str | None) -> list[str]:
    if session_id is not None:
        return list(_conversation_lines(await store.load(session_id)))
    return [await _session_line(store, each) for each in await store.list_ids() if not each.endswith(SUB_AGENT_SUFFIX)]


async def _session_line(store: FileSessionStore, session_id: str) -> str:
    try:
        session = await store.load(session_id)
    except SessionError as error:
        return f"{session_id}  {one_line(str(error), WIDTH)}"
    when = datetime.fromtimestamp(session.last_active_at / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    return f"{session_id}  {when}  {one_line(_title(session), WIDTH)}".rstrip()


def _title(session: Session) -> str:
    return next((message.text for message in session.history() if isinstance(message, UserMessage)), "")


def _conversation_lines(session: Session) -> Iterator[str]:
    for message in session.history():
        marker = _marker(message)
        if marker:
            yield f"{marker} {sanitize(message.text)}".rstrip()


def _marker(message: Message) -> str:
    """Return the marker of the author of a message, empty for messages that are not printed."""
    match message:
        case UserMessage():
            return ">"
        case AssistantMessage() if message.text:
            return "<"
    return ""
