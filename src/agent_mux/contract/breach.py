"""What the checker finds, and the rules it knows.

What is open and has to end before something else does.


What every event has: one run, one agent, time that never goes back. Section 2.
"""

import re
from collections.abc import Callable, Iterator

import msgspec

from agent_mux.events.base import BaseEvent

Report = Callable[[str, str], None]
"""`report(rule, message)`: called by the rules for every breach."""

RULES: dict[str, str] = {
    "2.1": "every event has its fields, of their types and in their ranges; one run id and agent; time never goes back",
    "5.1": "session_start comes once",
    "5.2": "session_resume comes once, only in a resumed session, right after session_start",
    "5.3": "session_fork comes once, only in a forked session, right after session_start or session_resume",
    "5.5": "session_end counts at least the turns of this run and those before it",
    "5.6": "session_checkpoint comes during a turn",
    "6.1": "turns are numbered 0, 1, 2, ... within the run",
    "6.5": "steps are numbered 0, 1, 2, ... within their turn, do not overlap, and end before their turn",
    "7.2": "text_delta.accumulated is all text of the message so far",
    "7.4": "message_start -> text_delta+ -> message_stop, which has the whole text",
    "8.2": "thinking_delta.accumulated is all text of the thought so far",
    "8.4": "thinking_start -> thinking_delta+ -> thinking_stop, which has the whole text",
    "9.1": "a tool call id names one call of the run, and its events name one tool",
    "9.3": "tool_input_delta.inputAccumulated is all input so far",
    "9.7": "tool_call_start -> tool_input_delta* -> tool_call_ready -> exactly one of tool_result and tool_error",
    "11.5": "shell_start -> stdout and stderr deltas -> exactly one shell_exit",
    "12.1": "the events of an MCP call name one server and one tool",
    "12.2": "mcp_tool_call_start -> exactly one of mcp_tool_result and mcp_tool_error",
    "13.1": "a sub-agent id names one delegation of the run, and its events name one agent",
    "13.2": "subagent_spawn -> exactly one of subagent_result and subagent_error; its inside lies between them",
    "14.2": "plugin_loaded comes before the first turn, plugin_invoked and plugin_error during turns",
    "15.1": "skill_loaded and agentdoc_read come before the first turn, skill_invoked during turns",
    "18.1": "an interaction id names one interaction of the run",
    "18.2": "approval_request -> exactly one of approval_granted and approval_denied",
    "19.1": "context_limit_warning and context_compacted come during a turn",
    "20.1": "paused and resumed alternate; stream_fallback comes once per capability",
    "21.1": "rate_limit_error is followed by retry or session_end",
    "23": "the session events of a run name one session",
    "25.1.1": "session_start is the first domain event",
    "25.1.2": "session_end is the last domain event, and there is one (none is owed after a crash)",
    "25.1.3": "turns lie between session_start and session_end",
    "25.2.1": "turn_start(N) precedes turn_end(N)",
    "25.2.2": "turn_end(N) precedes turn_start(N+1)",
    "25.2.3": "thinking, text, tool, file, shell, MCP and sub-agent events lie inside a turn",
    "25.2.4": "steps lie inside their turn",
    "25.3.1": "thinking precedes text within one generation: they do not overlap",
    "25.3.3": "file events follow a tool call that is at least ready",
    "25.3.4": "shell events are nested in a tool call that is ready and has not ended",
    "25.4.1": "approval_request precedes approval_granted",
    "25.5.1": "a terminal error is followed only by session_end, debug and log",
    "25.5.2": "interrupted, aborted, timeout and turn_limit are followed by session_end",
    "25.5.3": "after a terminal event there are no turn, text or tool events",
    "25.6": "interactions and images lie inside a turn",
}
"""Section of the event spec -> the rule in one sentence."""


class Breach(msgspec.Struct, frozen=True, rename="camel"):
    """One place where a stream breaks the contract."""

    rule: str
    """A key of `RULES`."""
    message: str
    """What is wrong there."""
    index: int
    """Position of the event in the stream, from 0; for what is missing at the end, the length of the stream."""
    event_type: str | None = None
    """The event's type; None at the end of the stream."""

    def __str__(self) -> str:
        where = f"event {self.index} ({self.event_type})" if self.event_type else "end of stream"
        return f"{where}: {self.message} [section {self.rule}]"


Opened = Iterator[tuple[str, str]]
"""For each open thing: the rule that says it must end, and what it is."""


def report_opened(opened: Opened, when: str, report: Report) -> None:
    """Each open thing is a breach."""
    for rule, what in opened:
        report(rule, f"{what} is still open {when}")


ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


class Envelope:
    """The run and the agent that the first event named, and the latest time."""

    def __init__(self) -> None:
        self._first: BaseEvent | None = None
        self._now = 0

    def see(self, event: BaseEvent, report: Report) -> None:
        """Check one event of any kind."""
        if self._first is None:
            self._first = event
            if not ULID.fullmatch(str(event.run_id)):
                report("2.1", f"runId {event.run_id!r} is no ULID")
        if event.run_id != self._first.run_id:
            report("2.1", f"runId {event.run_id!r} in run {self._first.run_id!r}")
        if event.agent != self._first.agent:
            report("2.1", f"agent {event.agent!r} in a run of {self._first.agent!r}")
        if event.timestamp < self._now:
            report("2.1", f"timestamp {event.timestamp} after {self._now}")
        self._now = max(self._now, event.timestamp)
