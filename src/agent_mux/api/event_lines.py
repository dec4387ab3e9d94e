"""Events as one-line summaries, and short formats of durations, costs and tool inputs.

The text is sanitized for terminals. Consumers decide about colours, widths and symbols.
"""

import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from agent_mux import events as ev
from agent_mux._util.sanitize import one_line, to_json
from agent_mux.api.task_lists import read_task_list, summarize_tasks
from agent_mux.events import BaseEvent, CostRecord
from agent_mux.sdk.interactions import approval_subject
from agent_mux.sdk.unified_diff import count_lines

Mark = Literal["call", "good", "bad", "warning", "question", "note", "error"]
"""The kind of a line, for which a consumer chooses a symbol and a colour."""
LONGEST_INPUT = 500
"""Characters of a tool input in a line."""


class EventLine(NamedTuple):
    """A line in the form `mark text rest`. The rest is less important and may be dimmed."""

    mark: Mark
    text: str
    rest: str = ""
    whole: bool = False
    """Whether the text may not be shortened: a path, or a message with instructions."""


def reason_of_denial(reason: str | None) -> str:
    """Return the reason as it follows the word "denied", with which messages for the model begin."""
    return (reason or "").strip().removeprefix("denied: ")


def event_line(event: BaseEvent) -> EventLine | None:
    """Return the line for an event; None for events without a line of their own."""
    summarize = _SUMMARIES.get(event.type)
    return None if summarize is None else summarize(event)


def _file_written(event: ev.FileWriteEvent | ev.FileCreateEvent) -> EventLine:
    verb = "created" if isinstance(event, ev.FileCreateEvent) else "wrote"
    return EventLine("good", f"{verb} {event.path}", count(event.byte_count, "byte"))


def _session(event: ev.SessionStartEvent) -> EventLine:
    how = f", forked from {event.forked_from}" if event.forked_from else ", resumed" if event.resumed else ""
    return EventLine("note", "", f"{event.agent}, session {event.session_id}{how}")


def _retry(event: ev.RetryEvent) -> EventLine:
    of = f" of {event.max_attempts}" if event.max_attempts else ""
    if event.next_agent is None:
        when = f" in {duration(event.delay_ms)}" if event.delay_ms else ""  # 0: at once, or unknown
        return EventLine("warning", f"retry {event.attempt}{of}{when}: {event.reason}")
    model = f" ({event.next_model})" if event.next_model is not None else ""
    return EventLine("warning", f"{event.agent} was refused: {event.reason}; continues with {event.next_agent}{model}")


def _rate_limited(event: ev.RateLimitedEvent) -> EventLine:
    wait = f"; retry after {duration(event.retry_after_ms)}" if event.retry_after_ms else ""
    return EventLine("warning", f"rate limited{wait}")


def _error(event: ev.ErrorEvent) -> EventLine | None:
    # An error that is not recoverable ends the run and is part of the closing line.
    return EventLine("warning", event.message, event.code) if event.recoverable else None


def _turn(event: ev.TurnStartEvent) -> EventLine | None:
    return EventLine("note", "", f"turn {event.turn_index + 1}") if event.turn_index else None


_SUMMARIES: dict[str, Callable[[Any], EventLine | None]] = {
    "session_start": _session,
    "turn_start": _turn,
    "tool_call_ready": lambda e: EventLine("call", e.tool_name, short_input(e.input, LONGEST_INPUT)),
    "mcp_tool_call_start": lambda e: EventLine(
        "call", f"{e.server}.{e.tool_name}", short_input(e.input, LONGEST_INPUT)
    ),
    "tool_error": lambda e: EventLine("bad", e.tool_name, e.error),
    "mcp_tool_error": lambda e: EventLine("bad", f"{e.server}.{e.tool_name}", e.error),
    "file_write": _file_written,
    "file_create": _file_written,
    "file_patch": lambda e: EventLine("good", f"changed {e.path}", diff_size(e.diff)),
    "file_delete": lambda e: EventLine("good", f"deleted {e.path}"),
    "subagent_spawn": lambda e: EventLine("call", f"sub-agent {e.agent_name}", e.prompt),
    "subagent_result": lambda e: EventLine("good", f"sub-agent {e.agent_name}", e.summary),
    "subagent_error": lambda e: EventLine("bad", f"sub-agent {e.agent_name}", e.error),
    "plugin_error": lambda e: EventLine("bad", f"plugin {e.plugin_name}", e.error),
    "skill_invoked": lambda e: EventLine("call", "skill", e.skill_name),
    "image_output": lambda e: EventLine("good", "image", e.file_path or e.mime_type),
    "approval_request": lambda e: EventLine(
        "question", f"{e.action} ({e.risk_level} risk)", approval_subject(e.detail)
    ),
    "approval_granted": lambda _: EventLine("good", "allowed"),
    "approval_denied": lambda e: EventLine("bad", "denied", reason_of_denial(e.reason)),
    "input_required": lambda e: EventLine("question", e.question, e.context or ""),
    "rate_limited": _rate_limited,
    "rate_limit_error": lambda e: EventLine("warning", e.message),
    "context_limit_warning": lambda e: EventLine("warning", f"the context window is {e.pct_used:.0f} % full"),
    "context_compacted": lambda _: EventLine("warning", "the context was compacted"),
    "retry": _retry,
    "paused": lambda _: EventLine("warning", "paused"),
    "resumed": lambda _: EventLine("warning", "resumed"),
    "auth_error": lambda e: EventLine("warning", e.guidance) if e.guidance else None,
    "error": _error,
    "debug": lambda e: EventLine("warning" if e.level == "warn" else "note", "", e.message),
    "log": lambda e: EventLine("note", "", f"{e.agent}: {e.line}"),
}


# Fields of a tool input by which people recognize the call; without them, the whole input is shown.
_SUMMARY_FIELDS = (
    "command",
    "cmd",
    "file_path",
    "path",
    "notebook_path",
    "pattern",
    "query",
    "url",
    "description",
    "prompt",
    "question",
)


def short_input(value: Any, width: int) -> str:
    """Return the most informative field of a tool's input, the progress of a task list, or all as JSON, on one line."""
    if isinstance(value, dict):
        tasks = read_task_list(value)
        if tasks:
            return one_line(summarize_tasks(tasks), width)
        for name in _SUMMARY_FIELDS:
            field = value.get(name)
            if isinstance(field, str) and field.strip():
                return one_line(field, width)
            if isinstance(field, list) and field and all(isinstance(word, str) for word in field):
                return one_line(" ".join(field), width)
        questions = _questions_of(value.get("questions"))
        if questions:
            return one_line(questions, width)
        return "" if not value else one_line(to_json(value), width)
    return one_line(value if isinstance(value, str) else to_json(value), width)


def _questions_of(asked: Any) -> str:
    """Return the texts of the questions that a tool asks; empty for other inputs."""
    listed = asked if isinstance(asked, list) else []
    texts = [one.get("question") for one in listed if isinstance(one, dict)]
    return " ".join(text for text in texts if isinstance(text, str))


_EXIT_CODE = r"(?i)\A\s*(?:Error:\s*)?(?:Exit code|exit status|Command failed with exit code)\W*-?\d+\W*"
_TAGS = r"</?tool_use_error>"


def failure_reason(error: str, output: str) -> str:
    """Return why a tool call failed, without what its output and its exit code show; empty if nothing is left."""
    reason, shown = re.sub(_EXIT_CODE, "", re.sub(_TAGS, "", error)).strip(), output.strip()
    if not shown:
        return reason
    return "" if reason in shown else reason.removeprefix(shown).strip()


def duration(milliseconds: float) -> str:
    """Format a duration: `340 ms`, `2.4 s`, `3 min 5 s`."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms"
    seconds = milliseconds / 1000
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def money(cost: CostRecord | None) -> str:
    """Format an amount as `$0.0123`; empty if the cost is unknown."""
    if cost is None or cost.source == "unknown":
        return ""
    return f"${cost.total_usd:.4f}"


def count(number: int, noun: str) -> str:
    """Format a number with its noun: `1 turn`, `2 turns`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def diff_size(diff: str) -> str:
    """Format the numbers of lines that a unified diff adds and removes: `+3 -1`."""
    added, removed = count_lines(diff)
    return f"+{added} -{removed}"
