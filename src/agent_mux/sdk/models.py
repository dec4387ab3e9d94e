"""Models and their prices, as an adapter lists them, and the command with which an agent lists them itself.

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
    """US dollars for a million tokens. An array on the wire: journals hold many of them."""

    input: float
    """Of tokens that are neither read from a cache nor written to one."""
    output: float
    """Of tokens that come out, thinking included."""
    cached_input: float | None = None
    """Of tokens read from a cache; None: as `input`."""
    cache_creation: float | None = None
    """Of tokens written to a cache; None: as `input`."""
    threshold: int | None = None
    """A call with more tokens going in than this costs `beyond`, all of it."""
    beyond: "Price | None" = None


def prices_of(models: "Iterable[ModelCapabilities]") -> dict[str, Price]:
    """By every name of every model that has a price, as `find_price` wants them: without the provider in front.

    Where two providers serve one name at different prices, the later ones keep their provider.
    """
    prices: dict[str, Price] = {}
    for model in models:
        if model.price is not None:
            for name in (model.model_id, *model.alias):
                bare = name.rpartition("/")[2]
                prices[bare if prices.get(bare, model.price) == model.price else name] = model.price
    return prices


def find_price(prices: Mapping[str, Price], model: str | None) -> Price | None:
    """The price of a model as agents name it: perhaps with its provider in front, or a date behind."""
    if not model or not prices:
        return None
    bare = model.rpartition("/")[2]
    names = (model, without_date(model), bare, without_date(bare))
    return next((prices[name] for name in names if name in prices), None)


def without_date(name: str) -> str:
    """The name of a model without the date of its version."""
    return _DATE.sub("", name)


def cost_in_usd(  # noqa: PLR0913  # each kind of token has its price
    price: Price,
    *,
    input_tokens: int,
    output_tokens: int,
    cached_tokens: int = 0,
    cache_creation_tokens: int = 0,
    of_one_call: bool = True,
) -> float:
    """What one call costs at this price, in US dollars. `input_tokens` are those that no cache is involved in.

    Of several calls together (not `of_one_call`) it is not known how long each was: each is taken for a short one.
    """
    going_in = input_tokens + cached_tokens + cache_creation_tokens
    if of_one_call and price.beyond is not None and price.threshold is not None and going_in > price.threshold:
        price = price.beyond
    cached = price.input if price.cached_input is None else price.cached_input
    created = price.input if price.cache_creation is None else price.cache_creation
    into = input_tokens * price.input + cached_tokens * cached + cache_creation_tokens * created
    return (into + output_tokens * price.output) / _MILLION


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelListing:
    """A command of the agent that prints the models it offers, and how that is read."""

    argv: tuple[str, ...]
    """Behind the program."""
    parse: Callable[[str], tuple[ModelCapabilities, ...]]
    """Of what it printed. Pure. Raises `ValueError` where it cannot be understood; none: it offers none as it is."""
    reads: tuple[Literal["stdout", "stderr"], ...] = ("stdout",)
    """Where it prints them; both are read, one after the other, where versions differ."""
    is_complete: bool = True
    """The agent takes no others; False: it takes more than it lists."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Set on top of the inherited environment."""
