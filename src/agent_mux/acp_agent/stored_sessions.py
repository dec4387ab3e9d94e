"""Stored."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from acp import update_agent_message_text, update_agent_thought_text, update_user_message_text
from acp.schema import ListSessionsResponse, SessionInfo, ToolCallStart

from agent_mux.acp_agent.tools import output_text, text_content, tool_kind, tool_locations, tool_title
from agent_mux.adapter import Codec, CodecContext
from agent_mux.client import AgentMux
from agent_mux.errors import AgentMuxError
from agent_mux.options import RUN_ID
from agent_mux.registry import AdapterRegistry
from agent_mux.run.derive import JournalEvents
from agent_mux.run.plan import find_protocol
from agent_mux.sessions.conversation import Session, SessionMessage, ToolUse
from agent_mux.sessions.filter import SessionFilter
from agent_mux.sessions.library import Known
from agent_mux.sessions.summary import SessionSummary

_TAG = "acp-session:"


def session_tag(session_id: str) -> str:
    """The tag of all runs of a session of the editor."""
    return f"{_TAG}{session_id}"


def editor_session_id(summary: SessionSummary) -> str:
    """The id that the editor knows a stored session by: ours, where it is one of ours."""
    tagged = [tag.removeprefix(_TAG) for tag in summary.tags if tag.startswith(_TAG)]
    return tagged[-1] if tagged else summary.native_id


def find_stored(mux: AgentMux, agent: str, session_id: str) -> Known:
    """The stored session that an editor means. Blocking.

    Raises SESSION_NOT_FOUND; CAPABILITY_ERROR where the agent's sessions cannot be read.
    """
    sessions = mux.sessions
    tagged = SessionFilter(agent=agent, tags=(session_tag(session_id),))
    found = sorted(sessions.known(tagged), key=lambda known: known.made.summary.updated_at)
    if found:
        return found[-1]
    recorded = (
        _recorded_session_id(mux.journals / f"{session_id}.journal", mux.adapters)
        if RUN_ID.fullmatch(session_id)
        else None
    )
    return sessions.find(recorded or session_id, SessionFilter(agent=agent))


def find_native(mux: AgentMux, agent: str, session_id: str) -> str:
    """The agent's own id. Blocking. Where its sessions cannot be read, what the editor says is taken for it."""
    try:
        return find_stored(mux, agent, session_id).made.summary.native_id
    except AgentMuxError as error:
        if error.code != "CAPABILITY_ERROR":
            raise
    path = mux.journals / f"{session_id}.journal"
    return (_recorded_session_id(path, mux.adapters) if RUN_ID.fullmatch(session_id) else None) or session_id


def _recorded_session_id(path: Path, adapters: AdapterRegistry) -> str | None:
    """The session of a recorded run; None where there is no recording, or the agent never said."""

    def make_codec(context: CodecContext) -> Codec:
        return find_protocol(adapters.get(context.agent), context.protocol, adapters.get).codec(context)

    try:
        journal = JournalEvents(path, make_codec)
        while journal.next_batch() is not None:
            if journal.normalizer.assembler.session_id is not None:
                return journal.normalizer.assembler.session_id
    except (OSError, ValueError, AgentMuxError):
        return None
    return None


PAGE_SIZE = 50  # sessions in one answer


def list_page(
    mux: AgentMux, agent: str, live: Mapping[str, str], cwd: str | None, cursor: str | None
) -> ListSessionsResponse:
    """A page, the latest first. Blocking.

    Args:
        mux: Reads what the agents stored.
        agent: Whose sessions. Raises CAPABILITY_ERROR where they cannot be read.
        live: The editor's ids of the sessions of this connection, by the agent's own.
        cwd: Where they were held; None: anywhere.
        cursor: As the page before told.
    """
    start = int(cursor) if cursor is not None and cursor.isdecimal() else 0
    found = mux.sessions.list(SessionFilter(agent=agent, cwd=cwd), limit=start + PAGE_SIZE + 1)[start:]
    infos = [info for summary in found[:PAGE_SIZE] if (info := _session_info(summary, live)) is not None]
    return ListSessionsResponse(sessions=infos, next_cursor=str(start + PAGE_SIZE) if len(found) > PAGE_SIZE else None)


def _session_info(summary: SessionSummary, live: Mapping[str, str]) -> SessionInfo | None:
    """One that does not say where it was held cannot be opened by an editor."""
    if summary.cwd is None or not Path(summary.cwd).is_absolute():
        return None
    return SessionInfo(
        session_id=live.get(summary.native_id) or editor_session_id(summary),
        cwd=summary.cwd,
        title=summary.title or None,
        updated_at=datetime.fromtimestamp(summary.updated_at / 1000, UTC).isoformat(),
    )


def history_updates(session: Session, cwd: str) -> Iterator[Any]:
    """All of it, in order."""
    for message in session.messages:
        if message.role == "user":
            yield update_user_message_text(message.text)
        else:
            yield from _reply_updates(message, cwd)


def _reply_updates(message: SessionMessage, cwd: str) -> Iterator[Any]:
    if message.thinking:
        yield update_agent_thought_text(message.thinking)
    if message.text:
        yield update_agent_message_text(message.text)
    for use in message.tools:
        yield _tool_call(use, cwd)
    if message.error:
        yield update_agent_message_text(message.error)


def _tool_call(use: ToolUse, cwd: str) -> ToolCallStart:
    words = use.error if use.error is not None else output_text(use.output)
    return ToolCallStart(
        session_update="tool_call",
        tool_call_id=use.id,
        title=tool_title(use.name, use.input),
        kind=tool_kind(use.name),
        status="completed" if use.error is None and use.output is not None else "failed",  # or never answered
        content=[text_content(words)] if words else None,
        locations=tool_locations(use.input, cwd) or None,
        raw_input=use.input,
        raw_output=use.error if use.error is not None else use.output,
    )
