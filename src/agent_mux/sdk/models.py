"""Model capabilities, prices and cost computation, and the command with which an agent lists its models.

When an agent reports tokens without a cost, the cost is computed from these prices and marked `computed`.
See docs/spec/run-api.md, section 5.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from datetime import date
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from agent_mux._util.frozen_dataclasses import dataclass
from agent_mux.sdk.declarations import Declaration

__all__ = ["ModelCapabilities", "ModelListing", "Price", "cost_in_usd", "find_price", "prices_of", "without_date"]


_MILLION = 1_000_000
_DATE = re.compile(r"[-@](?:20\d{6}|20\d\d-\d\d-\d\d)$")


class Price(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """US dollars per million tokens. Encoded as an array, because journals contain many prices."""

    input: Annotated[float, Meta(description="Input tokens that are neither read from a cache nor written to one.")]
    output: Annotated[float, Meta(description="Output tokens, thinking included.")]
    cached_input: Annotated[float | None, Meta(description="Tokens read from a cache; None: the price of `input`.")] = (
        None
    )
    cache_creation: Annotated[
        float | None, Meta(description="Tokens written to a cache; None: the price of `input`.")
    ] = None
    threshold: Annotated[
        int | None,
        Meta(
            description=(
                "Number of input tokens, cached ones included, above which a whole call is charged at `beyond`."
            )
        ),
    ] = None
    beyond: Annotated["Price | None", Meta(description="Price of calls above `threshold`.")] = None


def prices_of(models: "Iterable[ModelCapabilities]") -> dict[str, Price]:
    """Return the prices for `find_price` by every name of every model, without the provider prefix.

    If two providers serve a name at different prices, the later one keeps its prefix.
    """
    prices: dict[str, Price] = {}
    for model in models:
        if model.price is not None:
            for name in (model.model_id, *model.alias):
                bare = name.rpartition("/")[2]
                prices[bare if prices.get(bare, model.price) == model.price else name] = model.price
    return prices


def find_price(prices: Mapping[str, Price], model: str | None) -> Price | None:
    """Return the price of a model by an agent's name of it, which may have a provider prefix or a date suffix."""
    if not model or not prices:
        return None
    bare = model.rpartition("/")[2]
    names = (model, without_date(model), bare, without_date(bare))
    return next((prices[name] for name in names if name in prices), None)


def without_date(name: str) -> str:
    """Return the name of a model without the date of its version."""
    return _DATE.sub("", name)


def cost_in_usd(  # noqa: PLR0913  # each kind of token has a price
    price: Price,
    *,
    input_tokens: int,
    output_tokens: int,
    cached_tokens: int = 0,
    cache_creation_tokens: int = 0,
    of_one_call: bool = True,
) -> float:
    """Return the cost in US dollars. `input_tokens` excludes tokens read from or written to a cache.

    If the tokens are the sum of several calls (not `of_one_call`), each call is assumed to be below `Price.threshold`.
    """
    all_input = input_tokens + cached_tokens + cache_creation_tokens
    if of_one_call and price.beyond is not None and price.threshold is not None and all_input > price.threshold:
        price = price.beyond
    cached = price.input if price.cached_input is None else price.cached_input
    created = price.input if price.cache_creation is None else price.cache_creation
    input_cost = input_tokens * price.input + cached_tokens * cached + cache_creation_tokens * created
    return (input_cost + output_tokens * price.output) / _MILLION


class ModelCapabilities(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a model can do and costs. None, an empty text and an empty tuple mean unknown.

    Limits are in tokens. An agent's own limits may be lower: Copilot, for example, lists smaller context windows than
    the providers.
    """

    model_id: Annotated[str, Meta(description="The agent's name of the model, the argument of its `--model`.")]
    provider: Annotated[str, Meta(description="Provider that serves it: `anthropic`, `openai`, `google`...")]
    display_name: str = ""
    """Name for people."""
    alias: Annotated[tuple[str, ...], Meta(description="Other names of this model.")] = ()
    protocol: Annotated[
        str | None, Meta(description="API of the provider: `anthropic-messages`, `openai-responses`...")
    ] = None
    context_window: Annotated[int | None, Meta(description="Size of the context window, including answers.")] = None
    max_output_tokens: int | None = None
    """Largest number of tokens in one answer."""
    max_thinking_tokens: Annotated[int | None, Meta(description="Largest accepted thinking budget.")] = None
    price: Annotated[Price | None, Meta(description="None: unknown. Thinking tokens are charged as output.")] = None
    thinking: bool = False
    """Whether the model can think before it answers."""
    thinking_efforts: Annotated[
        tuple[str, ...], Meta(description="Effort levels by the provider's names, lowest first.")
    ] = ()
    image_input: bool = False
    """Whether prompts can contain images."""
    pdf_input: bool = False
    """Whether prompts can contain PDF files."""
    structured_output: bool = False
    """Whether answers can follow a JSON schema."""
    deprecated: Annotated[bool, Meta(description="Whether its retirement is announced or has happened.")] = False
    deprecated_since: Annotated[date | None, Meta(description="Date of the announcement.")] = None
    retires_on: Annotated[date | None, Meta(description="Date on which the provider retires it.")] = None
    successor: Annotated[str | None, Meta(description="Recommended replacement of a deprecated model.")] = None
    as_of: Annotated[date | None, Meta(description="Date on which this data was verified.")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelListing(Declaration):
    """A command of the agent that lists its models, and the parser of its output."""

    argv: tuple[str, ...]
    """Arguments of the program."""
    parse: Callable[[str], tuple[ModelCapabilities, ...]]
    """Parses the output. Raises `ValueError` if it cannot; an empty result means that no models are available."""
    reads: tuple[Literal["stdout", "stderr"], ...] = ("stdout",)
    """Streams that contain the list, in the order of reading; both if versions of the agent differ."""
    is_complete: bool = True
    """Whether the agent accepts no other models than those it lists."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables added to the inherited environment."""
