"""Find, list and replay the stored sessions of an agent.

An editor needs the id of a session before the agent has created it. A new session therefore gets a ULID, which is the
id of its first run and a tag of all its runs. The agent's own id is found again through the tags of stored sessions
(from the index of runs), or in the recording of the first run if the process was killed before it wrote the index. Ids
from `session/list` may be the agent's own.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from acp import update_agent_message_text, update_agent_thought_text, update_user_message_text
from acp.schema import ListSessionsResponse, SessionInfo, ToolCallStart

from agent_mux.acp_server.tools import output_text, text_content, tool_kind, tool_locations, tool_title
from agent_mux.client import AgentMux
from agent_mux.errors import AgentMuxError
from agent_mux.run.derivation import JournalEvents
from agent_mux.run.plan import find_protocol
from agent_mux.sdk.codec import Codec, CodecContext
from agent_mux.sdk.options import RUN_ID
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.sessions.conversation import Session, SessionMessage, ToolUse
from agent_mux.sessions.library import StoredSession
from agent_mux.sessions.summary import SessionFilter, SessionSummary

_TAG = "acp-session:"


def session_tag(session_id: str) -> str:
    """Return the tag of all runs of a session of the editor."""
    return f"{_TAG}{session_id}"


def editor_session_id(summary: SessionSummary) -> str:
    """Return the id by which the editor knows a stored session: its tagged id, else the agent's own."""
    tagged = [tag.removeprefix(_TAG) for tag in summary.tags if tag.startswith(_TAG)]
    return tagged[-1] if tagged else summary.native_id


def find_stored(mux: AgentMux, agent: str, session_id: str) -> StoredSession:
    """Return the stored session with this id. Blocking.

    Raises SESSION_NOT_FOUND, or CAPABILITY_ERROR if the agent's sessions cannot be read.
    """
    sessions = mux.sessions
    tagged = SessionFilter(agent=agent, tags=(session_tag(session_id),))
    found = sorted(sessions.known(tagged), key=lambda known: known.summary.updated_at)
    if found:
        return found[-1]
    recorded = (
        _recorded_session_id(mux.journals / f"{session_id}.journal", mux.adapters)
        if RUN_ID.fullmatch(session_id)
        else None
    )
    return sessions.find(recorded or session_id, SessionFilter(agent=agent))


def find_native(mux: AgentMux, agent: str, session_id: str) -> str:
    """Return the agent's own id of a session. Blocking. If its sessions cannot be read, the given id is used."""
    try:
        return find_stored(mux, agent, session_id).summary.native_id
    except AgentMuxError as error:
        if error.code != "CAPABILITY_ERROR":
            raise
    path = mux.journals / f"{session_id}.journal"
    return (_recorded_session_id(path, mux.adapters) if RUN_ID.fullmatch(session_id) else None) or session_id


def _recorded_session_id(path: Path, adapters: AdapterRegistry) -> str | None:
    """Return the session id in a run's recording; None without a recording or a reported id."""

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


PAGE_SIZE = 50  # sessions per response


def list_page(
    mux: AgentMux, agent: str, live: Mapping[str, str], cwd: str | None, cursor: str | None
) -> ListSessionsResponse:
    """Return a page of stored sessions, latest first. Blocking.

    Args:
        mux: The client that reads stored sessions.
        agent: The agent. Raises CAPABILITY_ERROR if its sessions cannot be read.
        live: The editor's ids of the sessions of this connection, by the agent's own ids.
        cwd: Only sessions of this directory; None for all.
        cursor: The cursor of the previous page.
    """
    start = int(cursor) if cursor is not None and cursor.isdecimal() else 0
    found = mux.sessions.list(SessionFilter(agent=agent, cwd=cwd), limit=start + PAGE_SIZE + 1)[start:]
    infos = [info for summary in found[:PAGE_SIZE] if (info := _session_info(summary, live)) is not None]
    return ListSessionsResponse(sessions=infos, next_cursor=str(start + PAGE_SIZE) if len(found) > PAGE_SIZE else None)


def _session_info(summary: SessionSummary, live: Mapping[str, str]) -> SessionInfo | None:
    """Return the description of a session; None without an absolute directory, which editors require."""
    if summary.cwd is None or not Path(summary.cwd).is_absolute():
        return None
    return SessionInfo(
        session_id=live.get(summary.native_id) or editor_session_id(summary),
        cwd=summary.cwd,
        title=summary.title or None,
        updated_at=datetime.fromtimestamp(summary.updated_at / 1000, UTC).isoformat(),
    )


def history_updates(session: Session, cwd: str) -> Iterator[Any]:
    """Convert a stored session to updates, in order. Pure."""
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
        status="completed" if use.error is None and use.output is not None else "failed",  # failed, or never answered
        content=[text_content(words)] if words else None,
        locations=tool_locations(use.input, cwd) or None,
        raw_input=use.input,
        raw_output=use.error if use.error is not None else use.output,
    )
