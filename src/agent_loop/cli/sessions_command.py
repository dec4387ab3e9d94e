"""`amux-agent sessions`: what can be continued, and what was said in one."""

import os
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import anyio

from agent_loop.cli.fault import Fault
from agent_loop.cli.places import sessions_directory
from agent_loop.errors import SessionError
from agent_loop.messages import AssistantMessage, Message, UserMessage
from agent_loop.sessions.file_store import FileSessionStore
from agent_loop.sessions.session import Session
from agent_mux.telling.inert import one_line, sanitize

WIDTH = 72
"""Columns of what was said."""


def show_sessions(argv: Sequence[str]) -> int:
    """List them, or show one. Raises `Fault`, `SessionError`."""
    if len(argv) > 1 or any(word.startswith("-") for word in argv):
        raise Fault("`amux-agent sessions` takes nothing, or the id of a session")
    store = FileSessionStore(sessions_directory(os.environ))
    for line in anyio.run(_lines, store, argv[0] if argv else None):
        sys.stdout.write(line + "\n")
    sys.stdout.flush()
    return 0


async def _lines(store: FileSessionStore, session_id: str | None) -> list[str]:
    if session_id is not None:
        return list(_conversation(await store.load(session_id)))
    return [await _line(store, each) for each in await store.list_ids()]


async def _line(store: FileSessionStore, session_id: str) -> str:
    try:
        session = await store.load(session_id)
    except SessionError as error:
        return f"{session_id}  {one_line(str(error), WIDTH)}"
    when = datetime.fromtimestamp(session.last_active_at / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    return f"{session_id}  {when}  {one_line(_title(session), WIDTH)}".rstrip()


def _title(session: Session) -> str:
    return next((one.text for one in session.history() if isinstance(one, UserMessage)), "")


def _conversation(session: Session) -> Iterator[str]:
    for message in session.history():
        who = _speaker(message)
        if who:
            yield f"{who} {sanitize(message.text)}".rstrip()


def _speaker(message: Message) -> str:
    match message:
        case UserMessage():
            return ">"
        case AssistantMessage() if message.text:
            return "<"
    return ""
