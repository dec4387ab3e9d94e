"""What a model is asked. Source: phi-core, "StreamConfig"; zidane, "Prompt caching"."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from agent_loop.messages import Message

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
