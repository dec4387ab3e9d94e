"""The rules of the contract, and the violations that the checker reports."""

from collections.abc import Callable, Iterator

import msgspec

from agent_mux._util.pydantic_support import PydanticCompatible

RULES: dict[str, str] = {
    "2.1": "every event has its fields, with their types and within their ranges; the run id does not change, and the "
    "agent only after a retry that names the next one; "
    "timestamps do not decrease",
    "5.1": "session_start occurs exactly once",
    "5.2": "session_resume occurs at most once, only in a resumed session, directly after session_start",
    "5.3": "session_fork occurs at most once, only in a forked session, directly after session_start or session_resume",
    "5.5": "session_end.turnCount is at least the number of turns of this run and of those before it",
    "5.6": "session_checkpoint lies inside a turn",
    "6.1": "turns are numbered 0, 1, 2, ... within the run",
    "6.5": "steps are numbered 0, 1, 2, ... within their turn, do not overlap, and end before their turn",
    "7.2": "text_delta.accumulated is the text of the message so far, this delta included",
    "7.4": "a message is message_start, one or more text_delta, message_stop with the whole text",
    "8.2": "thinking_delta.accumulated is the text of the thinking block so far, this delta included",
    "8.4": "a thinking block is thinking_start, one or more thinking_delta, thinking_stop with the whole text",
    "9.1": "a tool call id is used for one call of the run only, and all events of a call name the same tool",
    "9.3": "tool_input_delta.inputAccumulated is the input so far, this delta included",
    "9.7": "a tool call is tool_call_start, any number of tool_input_delta, tool_call_ready, and exactly one of "
    "tool_result and tool_error",
    "11.5": "a command is shell_start, any number of output deltas, and exactly one shell_exit",
    "12.1": "all events of an MCP call name the same server and tool",
    "12.2": "an MCP call is mcp_tool_call_start and exactly one of mcp_tool_result and mcp_tool_error",
    "13.1": "a sub-agent id is used for one delegation of the run only, and its events name the same agent",
    "13.2": "a delegation is subagent_spawn and exactly one of subagent_result and subagent_error; events inside the "
    "sub-agent lie between them",
    "14.2": "plugin_loaded occurs before the first turn; plugin_invoked and plugin_error lie inside a turn",
    "15.1": "skill_loaded and agentdoc_read occur before the first turn; skill_invoked lies inside a turn",
    "18.1": "an interaction id is used for one interaction of the run only",
    "18.2": "approval_request is followed by exactly one of approval_granted and approval_denied",
    "19.1": "context_limit_warning and context_compacted lie inside a turn",
    "20.1": "paused and resumed alternate; stream_fallback occurs at most once per capability",
    "21.1": "rate_limit_error is followed by retry or session_end",
    "23": "all session events of a run name the same session",
    "25.1.1": "session_start is the first domain event",
    "25.1.2": "session_end is the last domain event and is required, except after crash",
    "25.1.3": "turns lie between session_start and session_end",
    "25.2.1": "turn_start(N) precedes turn_end(N)",
    "25.2.2": "turn_end(N) precedes turn_start(N+1)",
    "25.2.3": "thinking, text, tool, file, shell, MCP and sub-agent events lie inside a turn",
    "25.2.4": "steps lie inside their turn",
    "25.3.1": "a message and a thinking block do not overlap",
    "25.3.3": "file events follow a tool call of the same turn that is at least ready",
    "25.3.4": "shell events are nested in a tool call that is ready and has not ended",
    "25.4.1": "approval_request precedes approval_granted",
    "25.5.1": "a terminal error is followed only by session_end, debug and log",
    "25.5.2": "interrupted, aborted, timeout and turn_limit are followed by session_end",
    "25.5.3": "after a terminal event there are no turn, text or tool events",
    "25.6": "interaction and image events lie inside a turn",
}
"""The rules by section of docs/spec/events.md, one sentence each."""


class Breach(PydanticCompatible, msgspec.Struct, frozen=True, rename="camel"):
    """A violation of the contract at one position of a stream."""

    rule: str
    """The violated rule: a key of `RULES`."""
    message: str
    """What is wrong at this position."""
    index: int
    """Position of the event in the stream, from 0; the length of the stream for what is missing at its end."""
    event_type: str | None = None
    """The event's type; None at the end of the stream."""

    def __str__(self) -> str:
        where = f"event {self.index} ({self.event_type})" if self.event_type else "end of stream"
        return f"{where}: {self.message} [section {self.rule}]"


Report = Callable[[str, str], None]
"""`report(rule, message)`, which the rules call for every violation."""
OpenItems = Iterator[tuple[str, str]]
"""The open items of a stream: for each one the rule that requires its end, and its description."""


def report_open_items(items: OpenItems, when: str, report: Report) -> None:
    """Report each open item as a violation. `when` completes the sentence "... is still open"."""
    for rule, item in items:
        report(rule, f"{item} is still open {when}")
