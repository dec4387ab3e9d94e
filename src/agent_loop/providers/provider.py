"""The interface of a provider: request, streamed chunks, response and capabilities."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from agent_loop.checked import Checked
from agent_loop.messages import AssistantMessage, Message, StopReason, ToolCall
from agent_loop.usage import Usage

ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "max"]
Purpose = Literal["turn", "final", "output", "summary"]

THINKING_TOKENS: Mapping[ThinkingLevel, int] = {
    "off": 0, "minimal": 128, "low": 512, "medium": 2048, "high": 8192, "max": 24_576
}  # fmt: skip
"""Token budget of each level, for providers that require a number.

`max` is the most that every model with a budget accepts.
"""


class ToolDefinition(msgspec.Struct, frozen=True):
    """A tool as it is described to the model."""

    name: str
    description: str
    parameters: dict[str, Any]
    """JSON Schema of an object."""


class CacheSettings(Checked, msgspec.Struct, frozen=True):
    """The stable prefixes of a request that may be cached."""

    system: bool = True
    """Breakpoint at the end of the system prompt."""
    tools: bool = True
    """Breakpoint after the last tool."""
    messages: bool = True
    """Breakpoint at the end of the conversation."""

    @property
    def enabled(self) -> bool:
        """Whether any prefix is cached."""
        return self.system or self.tools or self.messages


NO_CACHE = CacheSettings(system=False, tools=False, messages=False)


class ModelSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """Generation settings of one model call. None keeps the provider's default."""

    max_tokens: int | None = None
    """Maximum output tokens of the answer."""
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    thinking: ThinkingLevel | None = None
    thinking_budget: int | None = None
    """Tokens; takes precedence over the level."""
    cache: CacheSettings = CacheSettings()
    parallel_tool_calls: bool | None = None
    timeout: float | None = None
    """Seconds for one request."""

    @property
    def thinking_tokens(self) -> int | None:
        """The thinking budget in tokens; 0 disables thinking; None if neither is set."""
        if self.thinking_budget is not None:
            return self.thinking_budget
        return None if self.thinking is None else THINKING_TOKENS[self.thinking]


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a model."""

    system: str = ""
    """The complete system prompt; system messages of the history are sent in addition, at their positions."""
    messages: Sequence[Message]
    tools: tuple[ToolDefinition, ...] = ()
    tool_choice: str = "auto"
    """"auto", "none", "required", or the name of a tool."""
    settings: ModelSettings = ModelSettings()
    output_schema: dict[str, Any] | None = None
    """JSON Schema of the answer; None for any text."""
    purpose: Purpose = "turn"
    """Reason of the call: a turn, the final summary, the structured output, or a summary of old messages."""


class TextChunk(msgspec.Struct, frozen=True, gc=False):
    """A fragment of the answer's text."""

    text: str


class ThinkingChunk(msgspec.Struct, frozen=True, gc=False):
    """A fragment of the model's reasoning."""

    text: str


class ToolCallChunk(msgspec.Struct, frozen=True, gc=False):
    """A fragment of a tool call's arguments; the first one of a call may be empty."""

    id: str
    name: str
    delta: str


Chunk = TextChunk | ThinkingChunk | ToolCallChunk


class ContextEdit(msgspec.Struct, frozen=True):
    """An edit of the request that the provider applied before the model got it."""

    kind: str
    """The provider's name of the edit."""
    cleared_tokens: int = 0
    cleared_tool_uses: int = 0
    cleared_thinking_turns: int = 0


class ModelResponse(msgspec.Struct, frozen=True):
    """One answer. Its messages are added to the history unchanged and in order."""

    messages: tuple[AssistantMessage, ...]
    usage: Usage = Usage()
    context_edits: tuple[ContextEdit, ...] = ()
    """What the provider left out of the request; the history keeps it."""

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
        """Why the model stopped; "stop" without messages."""
        return self.messages[-1].stop_reason if self.messages else "stop"


OnChunk = Callable[[Chunk], Awaitable[None]]


class ProviderCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """Features of a model that the loop depends on."""

    vision: bool = True
    """Whether images are accepted; otherwise the loop replaces them by a text."""
    image_in_tool_result: bool = True
    """Whether tool results may contain images; otherwise a user message follows with them."""
    thinking: bool = True
    structured_output: bool = False
    """Whether the provider enforces `ModelRequest.output_schema`; otherwise the loop uses a tool."""
    structured_output_with_tools: bool = True
    """Whether it does so in requests with tools; otherwise the loop uses a tool when the agent has tools."""
    context_window: int | None = None
    """Tokens; None if unknown."""


class Provider(Protocol):
    """A model behind an API. Implementations keep no state between calls except connections.

    Optional attributes: `api`, the name of the API that it speaks, and `base_url`, the address of the API without
    secrets, both for records; `aclose()`, see `ClosableProvider`.
    """

    @property
    def id(self) -> str:
        """Stable lowercase name of the provider, for example "anthropic"."""
        ...

    @property
    def model(self) -> str:
        """The provider's name of the model."""
        ...

    @property
    def capabilities(self) -> ProviderCapabilities:
        """The features of this model."""
        ...

    async def respond(self, request: ModelRequest, on_chunk: OnChunk) -> ModelResponse:
        """Call the model once and await `on_chunk` with each fragment. Cancel the task to interrupt it.

        Raises `ProviderError` or a subclass only. Implementations do not retry: the loop does.
        """
        ...


@runtime_checkable
class ClosableProvider(Protocol):
    """A provider with connections, which belong to one event loop."""

    async def aclose(self) -> None:
        """Close the connections. The provider can be used again and opens new ones."""
        ...
