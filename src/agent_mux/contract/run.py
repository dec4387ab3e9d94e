"""The run as a whole: where its events may be, and how it ends. Sections 14, 15, 19 to 21, 25.1, 25.5 and 25.6.

What lies inside a turn is decided thus. Section 25.2.3 names thinking, text, tool, file, shell, MCP and sub-agent
events. The sections of checkpoints (5.6), plugins (14.2), skills (15.1) and the context window (19.1) say the same of
theirs, and the picture in 25.6 of interactions and images. Cost and tokens are "not ordered" (17.3) and rate limits and
retries come "at any point during a run" (19.1): these, recoverable errors, pauses and `stream_fallback` may be anywhere
between `session_start` and the end.
"""

from agent_mux.contract.breach import Report
from agent_mux.events.base import BaseEvent
from agent_mux.events.guards import (
    CATEGORIES,
    DiagnosticEvent,
    RunLifecycleEvent,
    SessionEvent,
    TurnEvent,
    is_error_event,
    is_terminal_event,
)
from agent_mux.events.run import PausedEvent, RateLimitErrorEvent, ResumedEvent, RetryEvent, StreamFallbackEvent
from agent_mux.events.session import (
    AgentdocReadEvent,
    PluginLoadedEvent,
    SessionEndEvent,
    SessionStartEvent,
    SkillLoadedEvent,
)

_CONTENT = ("thinking", "text", "tool", "file", "shell", "mcp", "subagent")
_IN_TURN: dict[str, str] = {
    **{event.type: "25.2.3" for family in _CONTENT for event in CATEGORIES[family]},
    **{event.type: "25.6" for family in ("interaction", "multimodal") for event in CATEGORIES[family]},
    "session_checkpoint": "5.6",
    "plugin_invoked": "14.2",
    "plugin_error": "14.2",
    "skill_invoked": "15.1",
    "context_limit_warning": "19.1",
    "context_compacted": "19.1",
}
_BEFORE_TURNS = {"plugin_loaded": "14.2", "skill_loaded": "15.1", "agentdoc_read": "15.1"}
_TURN_CONTENT = {event.type for family in (*_CONTENT, "turn") for event in CATEGORIES[family]}
_OF_THE_RUN = SessionEvent | TurnEvent | RunLifecycleEvent | PluginLoadedEvent | SkillLoadedEvent | AgentdocReadEvent


def is_diagnostic(event: BaseEvent) -> bool:
    """`debug` and `log` may be anywhere and change nothing (22.1)."""
    return isinstance(event, DiagnosticEvent)


def is_of_the_run(event: BaseEvent) -> bool:
    """A sub-agent has no session, turns, controls or end of its own in the stream."""
    return isinstance(event, _OF_THE_RUN) or is_terminal_event(event)


def check_place(event: BaseEvent, *, in_turn: bool, had_turns: bool, report: Report) -> None:
    """A main-stream event is inside a turn, or before all turns, where the spec says so."""
    if event.type in _IN_TURN and not in_turn:
        report(_IN_TURN[event.type], "it is outside a turn")
    if event.type in _BEFORE_TURNS and had_turns:
        report(_BEFORE_TURNS[event.type], "it comes after the first turn began")


class Run:
    """From `session_start` to `session_end`, and what ended it."""

    def __init__(self) -> None:
        self._has_begun = False
        self._terminal: BaseEvent | None = None
        self._ended = False
        self._limit_error = False
        self._paused = False
        self._fallbacks: set[str] = set()

    @property
    def is_over(self) -> bool:
        """A terminal event or `session_end` was there."""
        return self._ended or self._terminal is not None

    def admits(self, event: BaseEvent, report: Report) -> bool:
        """Check that a domain event may come at all; False when the run was over before it."""
        if not self._has_begun and not isinstance(event, SessionStartEvent):
            report("25.1.1", "it comes before session_start")
        self._has_begun = True
        if self._ended:
            report("25.1.3" if event.type in _TURN_CONTENT else "25.1.2", "it comes after session_end")
            return False
        if self._terminal is not None and not isinstance(event, SessionEndEvent):
            report(self._rule_after_terminal(event), f"it comes after the terminal {self._terminal.type}")
            return False
        return True

    def see(self, event: BaseEvent, report: Report) -> None:
        """Check one domain event of the main stream."""
        if self._limit_error and not isinstance(event, RetryEvent | SessionEndEvent):
            report("21.1", "it follows rate_limit_error")
        self._limit_error = isinstance(event, RateLimitErrorEvent)
        if is_terminal_event(event):
            self._terminal = event
        match event:
            case SessionEndEvent():
                self._ended = True
            case PausedEvent() | ResumedEvent():
                if self._paused == isinstance(event, PausedEvent):
                    report("20.1", "the run is paused already" if self._paused else "the run is not paused")
                self._paused = isinstance(event, PausedEvent)
            case StreamFallbackEvent():
                if event.capability in self._fallbacks:
                    report("20.1", f"a second stream_fallback for {event.capability}")
                self._fallbacks.add(event.capability)

    def finish(self, report: Report) -> None:
        """Check what the end of the stream lacks."""
        if not self._has_begun:
            report("25.1.1", "there is no session_start")
        if self._ended or (self._terminal is not None and self._terminal.type == "crash"):
            return
        after_control = self._terminal is not None and not is_error_event(self._terminal)
        report("25.5.2" if after_control else "25.1.2", "there is no session_end")

    def _rule_after_terminal(self, event: BaseEvent) -> str:
        if event.type in _TURN_CONTENT:
            return "25.5.3"
        return "25.5.1" if self._terminal is not None and is_error_event(self._terminal) else "25.5.2"
