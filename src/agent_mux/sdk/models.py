"""Model capabilities, prices and cost computation, and the command with which an agent lists its models.

When an agent reports tokens without a cost, the cost is computed from these prices and marked `computed`.
See docs/spec/run-api.md, section 5.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

import msgspec

__all__ = ["ModelCapabilities", "ModelListing", "Price", "cost_in_usd", "find_price", "prices_of", "without_date"]


_MILLION = 1_000_000
_DATE = re.compile(r"[-@](?:20\d{6}|20\d\d-\d\d-\d\d)$")


class Price(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """US dollars per million tokens. Encoded as an array, because journals contain many prices."""

    input: float
    """Input tokens that are neither read from a cache nor written to one."""
    output: float
    """Output tokens, thinking included."""
    cached_input: float | None = None
    """Tokens read from a cache; None: the price of `input`."""
    cache_creation: float | None = None
    """Tokens written to a cache; None: the price of `input`."""
    threshold: int | None = None
    """Number of input tokens, cached ones included, above which a whole call is charged at `beyond`."""
    beyond: "Price | None" = None
    """Price of calls above `threshold`."""


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

    model_id: str
    """The agent's name of the model, the argument of its `--model`."""
    provider: str
    """Provider that serves it: `anthropic`, `openai`, `google`..."""
    display_name: str = ""
    alias: tuple[str, ...] = ()
    """Other names of this model."""
    protocol: str | None = None
    """API of the provider: `anthropic-messages`, `openai-responses`..."""
    context_window: int | None = None
    """Size of the context window, including answers."""
    max_output_tokens: int | None = None
    max_thinking_tokens: int | None = None
    """Largest accepted thinking budget."""
    price: Price | None = None
    """None: unknown. Thinking tokens are charged as output."""
    thinking: bool = False
    thinking_efforts: tuple[str, ...] = ()
    """Effort levels by the provider's names, lowest first."""
    image_input: bool = False
    pdf_input: bool = False
    structured_output: bool = False
    deprecated: bool = False
    """Whether its retirement is announced or has happened."""
    deprecated_since: date | None = None
    """Date of the announcement."""
    retires_on: date | None = None
    """Date on which the provider retires it."""
    successor: str | None = None
    """Recommended replacement of a deprecated model."""
    as_of: date | None = None
    """Date on which this data was verified."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelListing:
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
