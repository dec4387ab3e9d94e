"""Reading a compact stream: every delta gets its text so far back."""

import msgspec

from agent_mux.events.accumulated import Accumulated, GrowingText
from agent_mux.events.text import MessageStartEvent, MessageStopEvent, TextDeltaEvent
from agent_mux.events.thinking import ThinkingDeltaEvent, ThinkingStartEvent, ThinkingStopEvent
from agent_mux.events.tool import (
    ToolCallReadyEvent,
    ToolCallStartEvent,
    ToolErrorEvent,
    ToolInputDeltaEvent,
    ToolResultEvent,
)
from agent_mux.events.union import AgentEvent
from agent_mux.events.wire import UnknownEvent, decode_event

_Prose = MessageStartEvent | ThinkingStartEvent | TextDeltaEvent | ThinkingDeltaEvent | MessageStopEvent
_Tool = ToolCallStartEvent | ToolInputDeltaEvent | ToolCallReadyEvent | ToolResultEvent | ToolErrorEvent


class Rebuilder:
    """Reads a stream line by line and rebuilds the text so far, in O(1) per delta.

    Compact and full lines may be mixed. A reader that joins in the middle takes the text so far from the first
    delta it sees, which is all of it in a full stream and the delta alone in a compact one.
    """

    def __init__(self) -> None:
        self._texts: dict[tuple[str, str | None], GrowingText] = {}

    def decode(self, line: bytes | str) -> AgentEvent | UnknownEvent:
        """As `decode_event`, with the text so far rebuilt from the deltas before this one."""
        event = decode_event(line)
        match event:
            case MessageStartEvent() | ThinkingStartEvent():
                self._texts[_flow(event)] = GrowingText()
            case ToolCallStartEvent():
                self._texts[_flow(event)] = GrowingText()
                self._texts[_flow(event)].append(event.input_accumulated)
            case TextDeltaEvent() | ThinkingDeltaEvent():
                view = self._grown(_flow(event), event.delta, event.accumulated_view)
                return msgspec.structs.replace(event, accumulated_view=view)
            case ToolInputDeltaEvent():
                view = self._grown(_flow(event), event.delta, event.input_accumulated_view)
                return msgspec.structs.replace(event, input_accumulated_view=view)
            case MessageStopEvent() | ThinkingStopEvent() | ToolCallReadyEvent() | ToolResultEvent() | ToolErrorEvent():
                self._texts.pop(_flow(event), None)
        return event

    def _grown(self, flow: tuple[str, str | None], delta: str, received: Accumulated) -> Accumulated:
        if flow in self._texts:
            return self._texts[flow].append(delta)
        self._texts[flow] = GrowingText()
        return self._texts[flow].append(str(received))


def _flow(event: _Prose | ThinkingStopEvent | _Tool) -> tuple[str, str | None]:
    """Which text an event belongs to: a tool call's input, or the one message or thinking of its agent."""
    if isinstance(event, _Tool):
        return "tool", event.tool_call_id
    is_thinking = isinstance(event, ThinkingStartEvent | ThinkingDeltaEvent | ThinkingStopEvent)
    return "thinking" if is_thinking else "message", event.subagent_id
