"""One model, as an agent offers it. Source: run API, section 5 (ModelCapabilities)."""

from datetime import date

import msgspec

from agent_mux.models.prices import Price

__all__ = ["ModelCapabilities"]


class ModelCapabilities(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is known of a model. None, an empty text and an empty tuple: nobody has said.

    The numbers are tokens. What the agent's own limits are may be less: Copilot, for one, lets models see less than
    their providers do, and lists that.
    """

    model_id: str
    """What the agent calls it: the argument of its `--model`."""
    provider: str
    """Who serves it: `anthropic`, `openai`, `google`..."""
    display_name: str = ""
    alias: tuple[str, ...] = ()
    """Other names that mean this model."""
    protocol: str | None = None
    """The API that its provider serves it with: `anthropic-messages`, `openai-responses`..."""
    context_window: int | None = None
    """What fits, answers included."""
    max_output_tokens: int | None = None
    max_thinking_tokens: int | None = None
    """The largest budget for thinking that it takes."""
    price: Price | None = None
    """None: nobody states one. Thinking costs what output costs."""
    thinking: bool = False
    thinking_efforts: tuple[str, ...] = ()
    """The levels that its provider knows, in the provider's words, the lowest first."""
    image_input: bool = False
    pdf_input: bool = False
    structured_output: bool = False
    deprecated: bool = False
    """It is announced that it ends, or it has ended."""
    deprecated_since: date | None = None
    """When that was announced."""
    retires_on: date | None = None
    """When its provider ends it, or ended it."""
    successor: str | None = None
    """What to use instead, where it is deprecated."""
    as_of: date | None = None
    """When all this was found to be so."""
