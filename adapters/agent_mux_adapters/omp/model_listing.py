"""`omp models --json`: the models that there are keys for."""

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from agent_mux.models import ModelCapabilities, ModelListing, Price
from agent_mux_adapters._dialects.tolerant import listed_price, mapping, printed_objects, text, token_limit


def parse(printed: str) -> tuple[ModelCapabilities, ...]:
    """The models. Raises `ValueError` where it is no JSON, or there is no list of models in it."""
    listed = printed_objects("models", printed)
    return tuple(_model(said) for said in listed if text(said.get("selector")))


def _model(said: Mapping[str, Any]) -> ModelCapabilities:
    levels, takes = said.get("thinking"), said.get("input")
    return ModelCapabilities(
        model_id=text(said.get("selector")),
        provider=text(said.get("provider")),
        display_name=text(said.get("name")),
        context_window=token_limit(said.get("contextWindow")),
        max_output_tokens=token_limit(said.get("maxTokens")),
        price=_price(mapping(said.get("cost"))),
        thinking=said.get("reasoning") is True,
        thinking_efforts=tuple(filter(None, map(text, levels))) if isinstance(levels, list) else (),
        image_input=isinstance(takes, list) and "image" in takes,
    )


def _price(cost: Mapping[str, Any]) -> Price | None:
    long = mapping(cost.get("longContext"))
    short, beyond, threshold = _of_cost(cost), _of_cost(long), token_limit(long.get("inputThreshold"))
    if short is None or beyond is None or threshold is None:
        return short
    return structs.replace(short, threshold=threshold, beyond=beyond)


def _of_cost(cost: Mapping[str, Any]) -> Price | None:
    return listed_price(cost, read=cost.get("cacheRead"), written=cost.get("cacheWrite"))


LISTING = ModelListing(argv=("models", "--json"), parse=parse)
