"""The events of `opencode serve`: which session each is about, and what it tells."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from agent_mux.adapter import CodecContext, Step
from agent_mux.facts import ContextCompacted, Fact, Ignored, SessionKnown
from agent_mux_adapters._dialects.tolerant import WrongShapeError, mapping, need_mapping, text
from agent_mux_adapters.opencode.approvals import Requests
from agent_mux_adapters.opencode.messages import Thread
from agent_mux_adapters.opencode.notices import NEXT, NOTICES
from agent_mux_adapters.opencode.subagents import Threads
from agent_mux_adapters.opencode.tools import Names
from agent_mux_adapters.opencode.turns import Conversation, Turns
from agent_mux_adapters.opencode.wire import DELTA, DeltaProperties

Event = Mapping[str, Any]
Told = tuple[Step, ...] | None
_ELSEWHERE = "another session than that of the run"
_AT_REST = "nothing runs: what was said before, or is put in order afterwards"


class Events:
    """Turns events into facts, and tells the conversation what it waits for."""

    def __init__(self, context: CodecContext, names: Names, requests: Requests, conversation: Conversation) -> None:
        self._conversation = conversation
        self._requests = requests
        self._threads = Threads(context.cwd, names)
        self._turns = Turns(self._threads, requests, conversation)
        self._handlers: dict[str, Callable[[Event, Event], Told]] = {
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

    def told(self, event: Event) -> Told:
        """An event. None when it is not known, or does not have its known shape."""
        kind, properties = text(event.get("type")), event.get("properties")
        handler = self._handlers.get(kind)
        if handler is None or not isinstance(properties, dict):
            return self._other(kind)
        try:
            return handler(event, properties) or None
        except WrongShapeError:
            return None

    def delta(self, fragment: DeltaProperties) -> tuple[Step, ...]:
        """A fragment: the hot path."""
        if fragment.field != "text":
            return (Ignored(DELTA, "a field that is not shown"),)
        main = self._threads.main
        if main is not None and fragment.session == main.id and self._turns.is_running:
            return main.prose.fragment(fragment.part, fragment.delta)
        thread = self._threads.find(fragment.session)
        if thread is None or thread is main:
            return (Ignored(DELTA, _AT_REST if thread is main else _ELSEWHERE),)
        return self._threads.tell(thread, thread.prose.fragment(fragment.part, fragment.delta))

    def open(self, session_id: str) -> None:
        """The run's session is this one."""
        self._threads.open(session_id)

    # -- sessions

    def _connected(self, _: Event, __: Event) -> Told:
        return Ignored("server.connected", "the conversation begins"), *self._conversation.connected()

    def _session_created(self, _: Event, properties: Event) -> Told:
        kind, info = "session.created", need_mapping(properties, "info")
        if self._threads.adopt(info):
            return (Ignored(kind, "told by the tool that delegates"),)
        if self._conversation.sees_requests or self._threads.main is not None or not text(info.get("id")):
            return (Ignored(kind, "the answer to the request tells it, or it is another client's"),)
        return (SessionKnown(self._threads.open(text(info["id"])).id),)

    def _session_status(self, event: Event, properties: Event) -> Told:
        thread = self._thread_of(properties)
        if thread is None or self._threads.is_inside(thread):
            return (Ignored("session.status", _ELSEWHERE if thread is None else "inside of a sub-agent"),)
        return self._turns.status(thread, need_mapping(properties, "status"), text(event.get("id")))

    def _session_failed(self, _: Event, properties: Event) -> Told:
        thread = self._thread_of(properties)
        if thread is None or self._threads.is_inside(thread):
            return (Ignored("session.error", _ELSEWHERE if thread is None else "told by the task it is about"),)
        return self._turns.failed(properties.get("error"))

    def _compacted(self, _: Event, properties: Event) -> Told:
        thread = self._thread_of(properties)
        if thread is None:
            return (Ignored("session.compacted", _ELSEWHERE),)
        return self._threads.tell(thread, (ContextCompacted(thread.summary),))

    # -- messages

    def _message_updated(self, _: Event, properties: Event) -> Told:
        info = need_mapping(properties, "info")
        return self._in_turn(properties, "message.updated", lambda thread: thread.message_updated(info))

    def _part_updated(self, _: Event, properties: Event) -> Told:
        part, main = need_mapping(properties, "part"), self._threads.main
        if main is not None and self._thread_of(properties) is main and main.is_ours(part):
            self._conversation.message_seen()
        return self._in_turn(properties, f"part:{text(part.get('type'))}", lambda thread: thread.part_updated(part))

    def _in_turn(
        self, properties: Event, kind: str, tell: Callable[[Thread], tuple[Fact, ...] | None]
    ) -> tuple[Fact, ...] | None:
        thread = self._thread_of(properties)
        if thread is None:
            return (Ignored(kind, _ELSEWHERE),)
        if thread is self._threads.main and not self._turns.is_running:
            return (Ignored(kind, _AT_REST),)
        facts = tell(thread)
        return None if facts is None else self._threads.tell(thread, facts)

    def _fragment(self, _: Event, properties: Event) -> Told:
        """The long way, for a line that is written in another way."""
        try:
            return self.delta(msgspec.convert(properties, DeltaProperties))
        except msgspec.ValidationError:
            return None

    # -- requests

    def _permission_asked(self, _: Event, properties: Event) -> Told:
        thread = self._thread_of(properties)
        if thread is None:
            return (Ignored("permission.asked", _ELSEWHERE),)
        call_id = text(mapping(properties.get("tool")).get("callID"))
        # A call inside a sub-agent is no call of the main stream: nothing there waits for it.
        waiting = None if self._threads.is_inside(thread) else call_id or None
        return self._requests.permission(properties, thread.calls.tools.get(call_id), waiting)

    def _question_asked(self, _: Event, properties: Event) -> Told:
        if self._thread_of(properties) is None:
            return (Ignored("question.asked", _ELSEWHERE),)
        return self._requests.question(properties)

    def _replied(self, event: Event, properties: Event) -> Told:
        return self._requests.replied(text(event.get("type")), properties)

    # -- inside

    def _thread_of(self, properties: Event) -> Thread | None:
        session_id = properties.get("sessionID")
        if self._threads.main is None and not self._conversation.sees_requests and text(session_id):
            return self._threads.open(text(session_id))  # a transcript that begins in the middle
        return self._threads.find(session_id)

    def _other(self, kind: str) -> Told:
        if kind.startswith(NEXT):
            return (Ignored(kind, "the messages and parts tell it"),)
        return (Ignored(kind, NOTICES[kind]),) if kind in NOTICES else None
