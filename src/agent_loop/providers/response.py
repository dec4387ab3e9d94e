"""What a model answers: fragments while it speaks, and the whole. Source: phi-core, "StreamDelta", "Message"."""

import msgspec

from agent_loop.messages import AssistantMessage, StopReason, ToolCall
from agent_loop.usage import Usage


class TextChunk(msgspec.Struct, frozen=True, gc=False):
    """A fragment of the answer."""

    text: str


class ThinkingChunk(msgspec.Struct, frozen=True, gc=False):
    """A fragment of reasoning."""

    text: str


class ToolCallChunk(msgspec.Struct, frozen=True, gc=False):
    """A fragment of a tool call's arguments; the first of a call may be empty."""

    id: str
    name: str
    delta: str


Chunk = TextChunk | ThinkingChunk | ToolCallChunk


class ModelResponse(msgspec.Struct, frozen=True):
    """One answer. Its messages go into the history as they are and in their order. Source: loop spec, section 2.2."""

    messages: tuple[AssistantMessage, ...]
    usage: Usage = Usage()

    @property
    def text(self) -> str:
        """All text, joined by newlines."""
        return "\n".join(message.text for message in self.messages if message.text)

    @property
    def thinking(self) -> str:
        """All reasoning, joined by newlines."""
        return "\n".join(message.thinking for message in self.messages if message.thinking)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """All tool calls, in order."""
        return tuple(call for message in self.messages for call in message.tool_calls)

    @property
    def stop_reason(self) -> StopReason:
        """Why the model stopped."""
        return self.messages[-1].stop_reason if self.messages else "stop"
