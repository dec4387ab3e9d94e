"""What models cost. Costs that an agent does not tell itself are computed from these prices, and say so.

Source: run API, section 5; `CostRecord.source`.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from agent_mux.models.capabilities import ModelCapabilities

__all__ = ["Price", "cost_in_usd", "find_price", "prices_of", "without_date"]

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
