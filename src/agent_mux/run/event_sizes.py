"""What an event keeps in memory: the length of its texts, without walking through structures of ordinary size."""

from typing import Any

from agent_mux.events import AgentEvent
from agent_mux.events.content import (
    ImageOutputEvent,
    MessageStopEvent,
    TextDeltaEvent,
    ThinkingDeltaEvent,
    ThinkingStopEvent,
)
from agent_mux.events.run import LogEvent
from agent_mux.events.tools import (
    FilePatchEvent,
    McpToolCallStartEvent,
    McpToolErrorEvent,
    McpToolResultEvent,
    ShellStartEvent,
    ShellStderrDeltaEvent,
    ShellStdoutDeltaEvent,
    SubagentErrorEvent,
    SubagentResultEvent,
    SubagentSpawnEvent,
    ToolCallReadyEvent,
    ToolCallStartEvent,
    ToolErrorEvent,
    ToolInputDeltaEvent,
    ToolResultEvent,
)

_TEXTS: dict[type, str] = {
    **dict.fromkeys(
        (TextDeltaEvent, ThinkingDeltaEvent, ToolInputDeltaEvent, ShellStdoutDeltaEvent, ShellStderrDeltaEvent), "delta"
    ),
    **dict.fromkeys((ToolResultEvent, McpToolResultEvent), "output"),
    **dict.fromkeys((ToolErrorEvent, McpToolErrorEvent, SubagentErrorEvent), "error"),
    **dict.fromkeys((ToolCallReadyEvent, McpToolCallStartEvent), "input"),
    MessageStopEvent: "text",
    ThinkingStopEvent: "thinking",
    ToolCallStartEvent: "input_accumulated",
    SubagentSpawnEvent: "prompt",
    SubagentResultEvent: "summary",
    FilePatchEvent: "diff",
    ShellStartEvent: "command",
    LogEvent: "line",
    ImageOutputEvent: "base64",
}
"""By class of event: the field that may be long."""
_ACCUMULATED = frozenset({MessageStopEvent, ThinkingStopEvent})
"""Classes whose text is kept twice: here, and in the text that the deltas before it have in common."""


def size_in_memory(event: AgentEvent) -> int:
    """Return about how many bytes the texts of an event take."""
    kind = event.__class__
    field = _TEXTS.get(kind)
    size = 0 if field is None else _size_of(getattr(event, field))
    if event.raw is not None:
        size += len(event.raw)
    return 2 * size if kind in _ACCUMULATED else size


def _size_of(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_size_of, value.values()))
    return sum(map(_size_of, value)) if isinstance(value, list | tuple) else 0
