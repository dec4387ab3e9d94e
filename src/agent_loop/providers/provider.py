"""What a model is asked. Source: phi-core, "StreamConfig"; zidane, "Prompt caching"."""
# DOC: """What a model answers: fragments while it speaks, and the whole. Source: phi-core, "StreamDelta", "Message"."""
# DOC: """What a provider is. Source: phi-core, "StreamProvider"; zidane, "Provider"."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

from agent_loop.messages import AssistantMessage, Message, StopReason, ToolCall
from agent_loop.usage import Usage

ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "max"]
Purpose = Literal["turn", "final", "output", "summary"]

THINKING_TOKENS: Mapping[ThinkingLevel, int] = {
    "off": 0, "minimal": 128, "low": 512, "medium": 2048, "high": 8192, "max": 24_576
}  # fmt: skip
"""Budget of a level, in tokens, for providers that want a number. Source: phi-core, section 5; `max` is ours: the most
that every model with a budget takes."""


class ToolDefinition(msgspec.Struct, frozen=True):
    """A tool, as the model is told of it."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON Schema of an object."""


class CacheSettings(msgspec.Struct, frozen=True):
    """Which stable prefixes of a request may be cached. Source: zidane, "Prompt caching"; phi-core, "CacheConfig"."""

    system: bool = True
    """A breakpoint at the end of the system prompt."""
    tools: bool = True
    """A breakpoint behind the last tool."""
    messages: bool = True
    """A breakpoint at the end of the conversation."""

    @property
    def enabled(self) -> bool:
        """Anything is cached at all."""
        return self.system or self.tools or self.messages


NO_CACHE = CacheSettings(system=False, tools=False, messages=False)


class ModelSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """How the model is to answer. None: as the provider does by itself."""

    max_tokens: int | None = None
    """Of one answer."""
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    thinking: ThinkingLevel | None = None
    thinking_budget: int | None = None
    """Tokens; wins over the level."""
    cache: CacheSettings = CacheSettings()
    parallel_tool_calls: bool | None = None
    timeout: float | None = None
    """Seconds for one request."""

    @property
    def thinking_tokens(self) -> int | None:
        """The thinking budget in tokens; 0: none; None: not said."""
        if self.thinking_budget is not None:
            return self.thinking_budget
        return None if self.thinking is None else THINKING_TOKENS[self.thinking]


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a model."""

    system: str = ""
    """The system prompt of this call, complete; system messages in the history come on top, in their places."""
    messages: Sequence[Message]
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: str = "auto"
    """"auto", "none", "required", or the name of a tool."""
    settings: ModelSettings = ModelSettings()
    output_schema: dict[str, Any] | None = None
    """JSON Schema of the answer; None: any text."""
    purpose: Purpose = "turn"
    """What the call is for: a turn, the final summary, the structured output, or a summary of old messages."""


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


OnChunk = Callable[[Chunk], Awaitable[None]]


class ProviderCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a model can take and give."""

    vision: bool = True
    """Images. Where not, the loop puts a marker in their place."""
    image_in_tool_result: bool = True
    """Images in tool results; where not, they are sent as a user message behind it."""
    thinking: bool = True
    structured_output: bool = False
    """`ModelRequest.output_schema` is enforced by the provider. Where not, the loop uses a tool for it."""
    context_window: int | None = None
    """Tokens; None: nobody knows."""


class Provider(Protocol):
    """A model that can be asked. Implementations keep no state between calls, besides connections."""

    @property
    def id(self) -> str:
        """Stable lowercase name of the provider, for example "anthropic"."""
        ...

    @property
    def model(self) -> str:
        """Name of the model, as the provider knows it."""
        ...

    @property
    def capabilities(self) -> ProviderCapabilities:
        """What this model can take and give."""
        ...

    async def respond(self, request: ModelRequest, on_chunk: OnChunk) -> ModelResponse:
        """Ask once, telling the fragments as they come. It is broken off by cancelling the task.

        Raises `ProviderError`, of the kind that it is, and nothing else. Never asks again by itself: the loop does.
        """
        ...
