"""The events of `opencode serve` to facts: each belongs to a session of the run, or to none."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from agent_mux.sdk.codec import CodecContext, CodecOutput
from agent_mux.sdk.facts import ContextCompacted, Fact, Ignored, SessionKnown
from agent_mux_adapters._dialects.tolerant import WrongShapeError, mapping, need_mapping, text, version_fact
from agent_mux_adapters.opencode.approvals import OpencodeApprovals
from agent_mux_adapters.opencode.messages import OpencodeSession
from agent_mux_adapters.opencode.notices import IGNORED_EVENTS, NEXT_ENGINE_PREFIX
from agent_mux_adapters.opencode.subagents import OpencodeSessions
from agent_mux_adapters.opencode.tools import McpToolNames
from agent_mux_adapters.opencode.turns import OpencodeConversation, OpencodeTurns
from agent_mux_adapters.opencode.wire import DELTA, DeltaProperties

Event = Mapping[str, Any]
OptionalSteps = tuple[CodecOutput, ...] | None
_OTHER_SESSION = "a session of another run"
_NO_TURN = "no turn is running: earlier or later bookkeeping"


class ServeReader:
    """The reader of one run's events; it also informs the conversation about turns and messages."""

    def __init__(
        self,
        context: CodecContext,
        names: McpToolNames,
        approvals: OpencodeApprovals,
        conversation: OpencodeConversation,
    ) -> None:
        self._conversation = conversation
        self._approvals = approvals
        self._sessions = OpencodeSessions(context.cwd, names)
        self._turns = OpencodeTurns(self._sessions, approvals, conversation)
        self._handlers: dict[str, Callable[[Event, Event], OptionalSteps]] = {
            DELTA: self._fragment,
            "message.part.updated": self._part_updated,
            "message.updated": self._message_updated,
            "permission.asked": self._permission_asked,
            "permission.replied": self._replied,
            "question.asked": self._question_asked,
            "question.rejected": self._replied,
            "question.replied": self._replied,
            "server.connected": self._connected,
            "session.compacted": self._compacted,
            "session.created": self._session_created,
            "session.error": self._session_failed,
            "session.status": self._session_status,
        }

    def read_event(self, event: Event) -> OptionalSteps:
        """Read an event; return None for an unknown type or shape."""
        kind, properties = text(event.get("type")), event.get("properties")
        handler = self._handlers.get(kind)
        if handler is None or not isinstance(properties, dict):
            return self._read_ignored(kind)
        try:
            return handler(event, properties) or None
        except WrongShapeError:
            return None

    def delta(self, fragment: DeltaProperties) -> tuple[CodecOutput, ...]:
        """Read a delta of a part (the hot path)."""
        if fragment.field != "text":
            return (Ignored(DELTA, "a field that is not shown"),)
        main = self._sessions.main
        if main is not None and fragment.session == main.id and self._turns.is_running:
            return main.streamed.fragment(fragment.part, fragment.delta)
        session = self._sessions.find(fragment.session)
        if session is None or session is main:
            return (Ignored(DELTA, _NO_TURN if session is main else _OTHER_SESSION),)
        return self._sessions.attribute(session, session.streamed.fragment(fragment.part, fragment.delta))

    def open(self, session_id: str) -> None:
        """Set the run's main session."""
        self._sessions.open(session_id)

    # -- sessions

    def _connected(self, _: Event, __: Event) -> OptionalSteps:
        return Ignored("server.connected", "the conversation begins"), *self._conversation.connected()

    def _session_created(self, _: Event, properties: Event) -> OptionalSteps:
        kind, info = "session.created", need_mapping(properties, "info")
        if self._sessions.add_subagent(info):
            return (Ignored(kind, "emitted from the tool that starts the sub-agent"),)
        if self._conversation.sees_requests or self._sessions.main is not None or not text(info.get("id")):
            return (Ignored(kind, "emitted from the response to the request, or another client's"),)
        return *version_fact(info.get("version")), SessionKnown(self._sessions.open(text(info["id"])).id)

    def _session_status(self, event: Event, properties: Event) -> OptionalSteps:
        session = self._session_of(properties)
        if session is None or self._sessions.is_subagent(session):
            return (Ignored("session.status", _OTHER_SESSION if session is None else "inside a sub-agent"),)
        return self._turns.read_status(session, need_mapping(properties, "status"), text(event.get("id")))

    def _session_failed(self, _: Event, properties: Event) -> OptionalSteps:
        session = self._session_of(properties)
        if session is None or self._sessions.is_subagent(session):
            return (Ignored("session.error", _OTHER_SESSION if session is None else "emitted from its task"),)
        return self._turns.read_error(properties.get("error"))

    def _compacted(self, _: Event, properties: Event) -> OptionalSteps:
        session = self._session_of(properties)
        if session is None:
            return (Ignored("session.compacted", _OTHER_SESSION),)
        return self._sessions.attribute(session, (ContextCompacted(session.summary),))

    # -- messages

    def _message_updated(self, _: Event, properties: Event) -> OptionalSteps:
        info = need_mapping(properties, "info")
        return self._read_in_turn(properties, "message.updated", lambda session: session.message_updated(info))

    def _part_updated(self, _: Event, properties: Event) -> OptionalSteps:
        part, main = need_mapping(properties, "part"), self._sessions.main
        if main is not None and self._session_of(properties) is main and main.is_prompt_text(part):
            self._conversation.confirm_message()
        return self._read_in_turn(
            properties, f"part:{text(part.get('type'))}", lambda session: session.part_updated(part)
        )

    def _read_in_turn(
        self, properties: Event, kind: str, read: Callable[[OpencodeSession], tuple[Fact, ...] | None]
    ) -> tuple[Fact, ...] | None:
        session = self._session_of(properties)
        if session is None:
            return (Ignored(kind, _OTHER_SESSION),)
        if session is self._sessions.main and not self._turns.is_running:
            return (Ignored(kind, _NO_TURN),)
        facts = read(session)
        return None if facts is None else self._sessions.attribute(session, facts)

    def _fragment(self, _: Event, properties: Event) -> OptionalSteps:
        """Read a delta whose line has another order of fields."""
        try:
            return self.delta(msgspec.convert(properties, DeltaProperties))
        except msgspec.ValidationError:
            return None

    # -- requests

    def _permission_asked(self, _: Event, properties: Event) -> OptionalSteps:
        session = self._session_of(properties)
        if session is None:
            return (Ignored("permission.asked", _OTHER_SESSION),)
        call_id = text(mapping(properties.get("tool")).get("callID"))
        # The main stream has no call to which a sub-agent's approval could belong.
        waiting = None if self._sessions.is_subagent(session) else call_id or None
        return self._approvals.read_permission(properties, session.calls.tools.get(call_id), waiting)

    def _question_asked(self, _: Event, properties: Event) -> OptionalSteps:
        if self._session_of(properties) is None:
            return (Ignored("question.asked", _OTHER_SESSION),)
        return self._approvals.read_question(properties)

    def _replied(self, event: Event, properties: Event) -> OptionalSteps:
        return self._approvals.read_reply(text(event.get("type")), properties)

    # -- helpers

    def _session_of(self, properties: Event) -> OpencodeSession | None:
        session_id = _find_session_id(properties)
        if self._sessions.main is None and not self._conversation.sees_requests and text(session_id):
            return self._sessions.open(text(session_id))  # the transcript begins within a session
        return self._sessions.find(session_id)

    def _read_ignored(self, kind: str) -> OptionalSteps:
        if kind.startswith(NEXT_ENGINE_PREFIX):
            return (Ignored(kind, "emitted from messages and parts"),)
        return (Ignored(kind, IGNORED_EVENTS[kind]),) if kind in IGNORED_EVENTS else None


def _find_session_id(properties: Event) -> Any:
    """Return the session id of an event.

    Events about a message or a part have it inside `info` or `part`; newer releases repeat it at the top.
    """
    session_id = properties.get("sessionID")
    for nested in ("part", "info"):
        if session_id is None:
            session_id = mapping(properties.get(nested)).get("sessionID")
    return session_id
