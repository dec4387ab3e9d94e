"""Warnings about events that violate the order of the contract.

They are only reported, each kind once; the assembler corrects the order anyway. See docs/spec/events.md, section 25.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agent_mux.events import AgentEvent, guards
from agent_mux.events.content import (
    MessageStartEvent,
    MessageStopEvent,
    TextDeltaEvent,
    ThinkingDeltaEvent,
    ThinkingStartEvent,
    ThinkingStopEvent,
)
from agent_mux.events.session import SessionEndEvent, SessionStartEvent, TurnEndEvent, TurnStartEvent
from agent_mux.events.tools import ToolCallReadyEvent, ToolCallStartEvent, ToolInputDeltaEvent
from agent_mux.sdk.facts import Note

_ANYWHERE = frozenset({"debug"})
_BETWEEN_TURNS = frozenset({"session", "turn", "debug", "plugin", "skill", "cost", "rate_limit", "error",
                            "run_lifecycle", "interaction", "subagent"})  # fmt: skip
_TEXT_EVENTS: Mapping[type, tuple[str, str]] = {
    MessageStartEvent: ("message", "start"),
    TextDeltaEvent: ("message", "delta"),
    MessageStopEvent: ("message", "stop"),
    ThinkingStartEvent: ("thought", "start"),
    ThinkingDeltaEvent: ("thought", "delta"),
    ThinkingStopEvent: ("thought", "stop"),
}


class EventOrder:
    """Tracks the open turn, messages and tool calls, and finds events out of order."""

    def __init__(self) -> None:
        self._began = False
        self._over = ""
        self._turn = False
        self._turns = 0
        self._open_texts: dict[str | None, str] = {}
        self._calls: dict[tuple[str | None, str], bool] = {}
        """The open calls by sub-agent and call id, and whether the input of each is complete."""
        self._reported: set[str] = set()
        self._checks: Mapping[str, Callable[[Any], Iterator[str]]] = {
            "session": self._session,
            "turn": self._turn_or_step,
            "text": self._message_or_thought,
            "thinking": self._message_or_thought,
            "tool": self._call,
        }

    def is_open(self, kind: str) -> bool:
        """Return whether the main agent's message or thought is open, so that a fragment of it is in order."""
        return self._open_texts.get(None) == kind

    def violations(self, event: AgentEvent) -> tuple[Note, ...]:
        """Return warnings for the violations of this event that were not reported before."""
        category = guards.category_of(event.type) or ""
        if category in _ANYWHERE:
            return ()
        new_violations = [
            violation for violation in self._violations_of(event, category) if violation not in self._reported
        ]
        self._reported.update(new_violations)
        return tuple(
            Note(f"the program violates the order of events: {violation}", "warn") for violation in new_violations
        )

    def _violations_of(self, event: AgentEvent, category: str) -> Iterator[str]:
        if not self._began and not isinstance(event, SessionStartEvent):
            yield f"{event.type} before session_start"
        self._began = True
        if self._over and not isinstance(event, SessionEndEvent):
            yield f"{event.type} after {self._over}"
        if not self._turn and category not in _BETWEEN_TURNS:
            yield f"{event.type} outside a turn"
        check = self._checks.get(category)
        if check is not None:
            yield from check(event)
        if guards.is_terminal_event(event) or isinstance(event, SessionEndEvent):
            if self._turn:
                yield f"{event.type} inside a turn"
            self._over, self._turn = event.type, False

    def _session(self, event: Any) -> Iterator[str]:
        if isinstance(event, SessionEndEvent) and self._over == event.type:
            yield "a second session_end"

    def _turn_or_step(self, event: Any) -> Iterator[str]:
        if isinstance(event, TurnStartEvent):
            if self._turn:
                yield "turn_start inside a turn"
            if event.turn_index != self._turns:
                yield "turns that are not numbered from 0"
            self._turn, self._turns = True, event.turn_index + 1
        elif not self._turn:
            yield f"{event.type} outside a turn"
        elif isinstance(event, TurnEndEvent):
            of_main = [key for key in self._calls if key[0] is None]
            if of_main or self._open_texts.pop(None, ""):
                yield "turn_end with a message or a tool call open"
            for key in of_main:
                del self._calls[key]
            self._turn = False

    def _message_or_thought(self, event: Any) -> Iterator[str]:
        kind, step = _TEXT_EVENTS[event.__class__]
        is_open = self._open_texts.get(event.subagent_id)
        if step == "start":
            if is_open:
                yield f"{event.type} inside a {is_open}"
            self._open_texts[event.subagent_id] = kind
        elif is_open != kind:
            yield f"{event.type} without its start"
            if step == "delta":
                self._open_texts[event.subagent_id] = kind
        elif step == "stop":
            del self._open_texts[event.subagent_id]

    def _call(self, event: Any) -> Iterator[str]:
        key = event.subagent_id, event.tool_call_id
        ready = self._calls.get(key)
        match event:
            case ToolCallStartEvent():
                if ready is not None:
                    yield "a second tool_call_start of one call"
                self._calls[key] = False
            case ToolInputDeltaEvent() | ToolCallReadyEvent():
                if ready is not False:
                    yield f"{event.type} of a call that does not wait for its input"
                if isinstance(event, ToolCallReadyEvent):
                    self._calls[key] = True
            case _:
                if not self._calls.pop(key, False):
                    yield f"{event.type} of a call that is not ready"
