"""Whether a program keeps the order of the contract. Only told: the assembler puts it right anyway.

Source: agent-events spec, section 25. Each kind of breach is told once.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agent_mux.events import AgentEvent, guards, session, text, thinking, tool, turn
from agent_mux.facts import Note

_ANYWHERE = frozenset({"debug"})
_BETWEEN_TURNS = frozenset({"session", "turn", "debug", "plugin", "skill", "cost", "rate_limit", "error",
                            "run_lifecycle", "interaction", "subagent"})  # fmt: skip
_PROSE: Mapping[type, tuple[str, str]] = {
    text.MessageStartEvent: ("message", "start"),
    text.TextDeltaEvent: ("message", "go on"),
    text.MessageStopEvent: ("message", "stop"),
    thinking.ThinkingStartEvent: ("thought", "start"),
    thinking.ThinkingDeltaEvent: ("thought", "go on"),
    thinking.ThinkingStopEvent: ("thought", "stop"),
}


class EventOrder:
    """What is open, as far as the order of events goes."""

    def __init__(self) -> None:
        self._began = False
        self._over = ""
        self._turn = False
        self._turns = 0
        self._prose: dict[str | None, str] = {}
        self._calls: dict[tuple[str | None, str], bool] = {}
        """Sub-agent and call -> its input is complete."""
        self._told: set[str] = set()
        self._checks: Mapping[str, Callable[[Any], Iterator[str]]] = {
            "session": self._session,
            "turn": self._turn_or_step,
            "text": self._said,
            "thinking": self._said,
            "tool": self._call,
        }

    def goes_on(self, kind: str) -> bool:
        """The main agent's message, or thought, is open: a fragment of it breaks nothing."""
        return self._prose.get(None) == kind

    def see(self, event: AgentEvent) -> tuple[Note, ...]:
        """What is wrong with the place of this event, unless that was told before."""
        category = guards.category_of(event.type) or ""
        if category in _ANYWHERE:
            return ()
        wrong = [why for why in self._wrong(event, category) if why not in self._told]
        self._told.update(wrong)
        return tuple(Note(f"the program breaks the order of events: {why}", "warn") for why in wrong)

    def _wrong(self, event: AgentEvent, category: str) -> Iterator[str]:
        if not self._began and not isinstance(event, session.SessionStartEvent):
            yield f"{event.type} before session_start"
        self._began = True
        if self._over and not isinstance(event, session.SessionEndEvent):
            yield f"{event.type} after {self._over}"
        if not self._turn and category not in _BETWEEN_TURNS:
            yield f"{event.type} outside a turn"
        check = self._checks.get(category)
        if check is not None:
            yield from check(event)
        if guards.is_terminal_event(event) or isinstance(event, session.SessionEndEvent):
            if self._turn:
                yield f"{event.type} inside a turn"
            self._over, self._turn = event.type, False

    def _session(self, event: Any) -> Iterator[str]:
        if isinstance(event, session.SessionEndEvent) and self._over == event.type:
            yield "a second session_end"

    def _turn_or_step(self, event: Any) -> Iterator[str]:
        if isinstance(event, turn.TurnStartEvent):
            if self._turn:
                yield "turn_start inside a turn"
            if event.turn_index != self._turns:
                yield "turns that are not numbered from 0"
            self._turn, self._turns = True, event.turn_index + 1
        elif not self._turn:
            yield f"{event.type} outside a turn"
        elif isinstance(event, turn.TurnEndEvent):
            of_main = [key for key in self._calls if key[0] is None]
            if of_main or self._prose.pop(None, ""):
                yield "turn_end with a message or a tool call open"
            for key in of_main:
                del self._calls[key]
            self._turn = False

    def _said(self, event: Any) -> Iterator[str]:
        kind, what = _PROSE[event.__class__]
        is_open = self._prose.get(event.subagent_id)
        if what == "start":
            if is_open:
                yield f"{event.type} inside a {is_open}"
            self._prose[event.subagent_id] = kind
        elif is_open != kind:
            yield f"{event.type} without its start"
            if what == "go on":
                self._prose[event.subagent_id] = kind
        elif what == "stop":
            del self._prose[event.subagent_id]

    def _call(self, event: Any) -> Iterator[str]:
        key = event.subagent_id, event.tool_call_id
        ready = self._calls.get(key)
        match event:
            case tool.ToolCallStartEvent():
                if ready is not None:
                    yield "a second tool_call_start of one call"
                self._calls[key] = False
            case tool.ToolInputDeltaEvent() | tool.ToolCallReadyEvent():
                if ready is not False:
                    yield f"{event.type} of a call that does not wait for its input"
                if isinstance(event, tool.ToolCallReadyEvent):
                    self._calls[key] = True
            case _:
                if not self._calls.pop(key, False):
                    yield f"{event.type} of a call that is not ready"
