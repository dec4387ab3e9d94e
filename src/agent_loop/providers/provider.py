"""What a provider is. Source: phi-core, "StreamProvider"; zidane, "Provider"."""

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from agent_loop.providers.request import ModelRequest
from agent_loop.providers.response import Chunk, ModelResponse

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
