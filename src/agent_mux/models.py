"""What is known of models: sizes, abilities, prices. Source: run API, section 5.

An adapter lists the models of its agent in `Adapter.models`. Costs that an agent does not tell itself are computed from
these prices, and say so (`CostRecord.source`).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import msgspec

__all__ = ["ModelCapabilities", "Price", "cost_in_usd", "find_price", "prices_of"]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCapabilities:
    """One model as an agent offers it."""

    model_id: str
    """What the agent calls it: what `--model` takes."""
    provider: str
    """Who serves it: `anthropic`, `openai`, `google`..."""
    display_name: str = ""
    alias: tuple[str, ...] = ()
    """Other names that mean this model."""
    context_window: int | None = None
    """Tokens that fit."""
    max_output_tokens: int | None = None
    price: Price | None = None
    thinking: bool = False
    image_input: bool = False
    deprecated: bool = False
    successor: str | None = None
    """What to use instead, where it is deprecated."""


def prices_of(models: Iterable[ModelCapabilities]) -> dict[str, Price]:
    """By every name of every model that has a price."""
    return {name: m.price for m in models if m.price is not None for name in (m.model_id, *m.alias)}


def find_price(prices: Mapping[str, Price], model: str | None) -> Price | None:
    """The price of a model as agents name it: perhaps with its provider in front, or a date behind."""
    if not model or not prices:
        return None
    bare = model.rpartition("/")[2]
    return next((prices[name] for name in (model, bare, _DATE.sub("", bare)) if name in prices), None)


def cost_in_usd(
    price: Price, *, input_tokens: int, output_tokens: int, cached_tokens: int = 0, cache_creation_tokens: int = 0
) -> float:
    """What one call costs at this price. `input_tokens` are those that no cache is involved in."""
    going_in = input_tokens + cached_tokens + cache_creation_tokens
    if price.beyond is not None and price.threshold is not None and going_in > price.threshold:
        price = price.beyond
    cached = price.input if price.cached_input is None else price.cached_input
    created = price.input if price.cache_creation is None else price.cache_creation
    into = input_tokens * price.input + cached_tokens * cached + cache_creation_tokens * created
    return (into + output_tokens * price.output) / _MILLION
