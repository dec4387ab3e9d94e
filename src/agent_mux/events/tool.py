"""Tool calling events. Source: agent-events spec, section 9."""

from typing import Any, ClassVar, Literal

from msgspec import field

from agent_mux.events.accumulated import Accumulated
from agent_mux.events.base import BaseEvent, Milliseconds


class ToolCallStartEvent(BaseEvent, frozen=True):
    """The agent begins to construct a call of one of its native tools. Source: agent-events spec, section 9.2."""

    type: ClassVar[Literal["tool_call_start"]] = "tool_call_start"

    tool_call_id: str
    """Shared by all events of this call; unique within the run."""
    tool_name: str
    """The agent's own name of the tool."""
    input_accumulated: str
    """JSON text of the input so far: empty while streaming, complete otherwise."""


class ToolInputDeltaEvent(BaseEvent, frozen=True):
    """A fragment of the tool's input (JSON text). Source: agent-events spec, section 9.3."""

    type: ClassVar[Literal["tool_input_delta"]] = "tool_input_delta"

    tool_call_id: str
    """The call."""
    delta: str
    """The new text."""
    input_accumulated_view: Accumulated = field(name="inputAccumulated")
    """The text so far, as a view; read `input_accumulated` for the string."""

    @property
    def input_accumulated(self) -> str:
        """All text so far, this delta included."""
        return str(self.input_accumulated_view)


class ToolCallReadyEvent(BaseEvent, frozen=True):
    """The input is complete; the tool is about to run. Source: agent-events spec, section 9.4."""

    type: ClassVar[Literal["tool_call_ready"]] = "tool_call_ready"

    tool_call_id: str
    """The call."""
    tool_name: str
    """The tool."""
    input: Any
    """The parsed input."""


class ToolResultEvent(BaseEvent, frozen=True):
    """The tool succeeded. Source: agent-events spec, section 9.5."""

    type: ClassVar[Literal["tool_result"]] = "tool_result"

    tool_call_id: str
    """The call."""
    tool_name: str
    """The tool."""
    output: Any
    """What the tool gave the model."""
    duration_ms: Milliseconds
    """From ready to result where the agent does not say."""


class ToolErrorEvent(BaseEvent, frozen=True):
    """The tool failed, was denied, or never finished. Source: agent-events spec, section 9.6."""

    type: ClassVar[Literal["tool_error"]] = "tool_error"

    tool_call_id: str
    """The call."""
    tool_name: str
    """The tool."""
    error: str
    """What the tool gave the model."""
