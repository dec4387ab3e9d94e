"""The rules for the run as a whole: envelope, positions, controls and its end.

See docs/spec/events.md, sections 2.1, 14, 15, 19 to 21, 25.1, 25.5 and 25.6. Events must lie inside a turn by section
25.2.3 (thinking, text, tool, file, shell, MCP and sub-agent events), by sections 5.6, 14.2, 15.1 and 19.1 (checkpoints,
plugins, skills and the context window), or by section 25.6 (interactions and images). `cost`, `token_usage`,
`rate_limited`, `retry`, recoverable errors, pauses and `stream_fallback` may occur anywhere between `session_start` and
the end.
"""

import re

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

_CONTENT_CATEGORIES = ("thinking", "text", "tool", "file", "shell", "mcp", "subagent")
_IN_TURN_RULES: dict[str, str] = {
    **{event.type: "25.2.3" for category in _CONTENT_CATEGORIES for event in CATEGORIES[category]},
    **{event.type: "25.6" for category in ("interaction", "multimodal") for event in CATEGORIES[category]},
    "session_checkpoint": "5.6",
    "plugin_invoked": "14.2",
    "plugin_error": "14.2",
    "skill_invoked": "15.1",
    "context_limit_warning": "19.1",
    "context_compacted": "19.1",
}
_BEFORE_TURNS_RULES = {"plugin_loaded": "14.2", "skill_loaded": "15.1", "agentdoc_read": "15.1"}
_TURN_TYPES = {event.type for category in (*_CONTENT_CATEGORIES, "turn") for event in CATEGORIES[category]}
_RunLevelEvent = SessionEvent | TurnEvent | RunLifecycleEvent | PluginLoadedEvent | SkillLoadedEvent | AgentdocReadEvent
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


class EnvelopeRules:
    """The rules for the fields of every event: one run, one agent at a time, and time that does not decrease."""

    def __init__(self) -> None:
        self._first: BaseEvent | None = None
        self._agent = ""
        self._now = 0

    def check(self, event: BaseEvent, report: Report) -> None:
        """Check an event of any type."""
        if self._first is None:
            self._first, self._agent = event, event.agent
            if not _ULID.fullmatch(str(event.run_id)):
                report("2.1", f"runId {event.run_id!r} is not a ULID")
        if event.run_id != self._first.run_id:
            report("2.1", f"runId {event.run_id!r} in run {self._first.run_id!r}")
        if event.agent != self._agent:
            report("2.1", f"agent {event.agent!r} in a run of {self._agent!r}")
        if isinstance(event, RetryEvent) and event.next_agent is not None:
            self._agent = event.next_agent
        if event.timestamp < self._now:
            report("2.1", f"timestamp {event.timestamp} after {self._now}")
        self._now = max(self._now, event.timestamp)


def is_diagnostic(event: BaseEvent) -> bool:
    """Return whether this is `debug` or `log`, which may occur anywhere and affect no rule (22.1)."""
    return isinstance(event, DiagnosticEvent)


def is_run_level(event: BaseEvent) -> bool:
    """Return whether the event concerns the whole run, so that it must not occur inside a sub-agent (13.2)."""
    return isinstance(event, _RunLevelEvent) or is_terminal_event(event)


def check_position(event: BaseEvent, *, in_turn: bool, had_turns: bool, report: Report) -> None:
    """Check that an event of the main stream lies inside a turn, or before all turns, where a rule requires it."""
    if event.type in _IN_TURN_RULES and not in_turn:
        report(_IN_TURN_RULES[event.type], "the event occurs outside a turn")
    if event.type in _BEFORE_TURNS_RULES and had_turns:
        report(_BEFORE_TURNS_RULES[event.type], "the event occurs after the first turn_start")


class RunRules:
    """The rules for the beginning and end of a run, its terminal event and its controls."""

    def __init__(self) -> None:
        self._has_begun = False
        self._terminal: BaseEvent | None = None
        self._ended = False
        self._after_rate_limit_error = False
        self._paused = False
        self._fallbacks: set[str] = set()

    @property
    def is_over(self) -> bool:
        """Whether a terminal event or `session_end` has occurred."""
        return self._ended or self._terminal is not None

    def admits(self, event: BaseEvent, report: Report) -> bool:
        """Check whether a domain event may occur now. Returns False when the run is over, so no other rule applies."""
        if not self._has_begun and not isinstance(event, SessionStartEvent):
            report("25.1.1", "the event occurs before session_start")
        self._has_begun = True
        if self._ended:
            report("25.1.3" if event.type in _TURN_TYPES else "25.1.2", "the event occurs after session_end")
            return False
        if self._terminal is not None and not isinstance(event, SessionEndEvent):
            report(self._rule_after_terminal(event), f"the event occurs after the terminal {self._terminal.type}")
            return False
        return True

    def check(self, event: BaseEvent, report: Report) -> None:
        """Check a domain event of the main stream."""
        if self._after_rate_limit_error and not isinstance(event, RetryEvent | SessionEndEvent):
            report("21.1", "the event follows rate_limit_error directly")
        self._after_rate_limit_error = isinstance(event, RateLimitErrorEvent)
        if is_terminal_event(event):
            self._terminal = event
        match event:
            case SessionEndEvent():
                self._ended = True
            case PausedEvent() | ResumedEvent():
                if self._paused == isinstance(event, PausedEvent):
                    report("20.1", "the run is already paused" if self._paused else "the run is not paused")
                self._paused = isinstance(event, PausedEvent)
            case StreamFallbackEvent():
                if event.capability in self._fallbacks:
                    report("20.1", f"a second stream_fallback for {event.capability}")
                self._fallbacks.add(event.capability)

    def finish(self, report: Report) -> None:
        """Report what is missing at the end of the stream."""
        if not self._has_begun:
            report("25.1.1", "there is no session_start")
        if self._ended or (self._terminal is not None and self._terminal.type == "crash"):
            return
        after_control = self._terminal is not None and not is_error_event(self._terminal)
        report("25.5.2" if after_control else "25.1.2", "there is no session_end")

    def _rule_after_terminal(self, event: BaseEvent) -> str:
        if event.type in _TURN_TYPES:
            return "25.5.3"
        return "25.5.1" if self._terminal is not None and is_error_event(self._terminal) else "25.5.2"
