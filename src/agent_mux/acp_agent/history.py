"""A stored session as updates: what an editor shows when it opens the session again. Pure."""

from collections.abc import Iterator
from typing import Any

from acp import update_agent_message_text, update_agent_thought_text, update_user_message_text
from acp.schema import ToolCallStart

from agent_mux.acp_agent.contents import said, shown
from agent_mux.acp_agent.tool_kinds import kind_of, locations_of, title_of
from agent_mux.sessions.conversation import Session, SessionMessage, ToolUse


def replayed(session: Session, cwd: str) -> Iterator[Any]:
    """All of it, in order."""
    for message in session.messages:
        if message.role == "user":
            yield update_user_message_text(message.text)
        else:
            yield from _answer(message, cwd)


def _answer(message: SessionMessage, cwd: str) -> Iterator[Any]:
    if message.thinking:
        yield update_agent_thought_text(message.thinking)
    if message.text:
        yield update_agent_message_text(message.text)
    for use in message.tools:
        yield _call(use, cwd)
    if message.error:
        yield update_agent_message_text(message.error)


def _call(use: ToolUse, cwd: str) -> ToolCallStart:
    words = use.error if use.error is not None else shown(use.output)
    return ToolCallStart(
        session_update="tool_call",
        tool_call_id=use.id,
        title=title_of(use.name, use.input),
        kind=kind_of(use.name),
        status="completed" if use.error is None and use.output is not None else "failed",  # or never answered
        content=[said(words)] if words else None,
        locations=locations_of(use.input, cwd) or None,
        raw_input=use.input,
        raw_output=use.error if use.error is not None else use.output,
    )
