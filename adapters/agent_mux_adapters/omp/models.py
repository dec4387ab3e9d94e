"""`omp models --json`: the models for which omp has credentials."""

from collections.abc import Mapping
from typing import Any

from msgspec import structs

from agent_mux.sdk.models import ModelCapabilities, ModelListing, Price
from agent_mux_adapters._dialects.tolerant import listed_price, mapping, printed_objects, text, token_limit


def parse(printed: str) -> tuple[ModelCapabilities, ...]:
    """Parse the list. Raises `ValueError` if the output is not JSON or contains no list of models."""
    models = printed_objects("models", printed)
    return tuple(_model(model) for model in models if text(model.get("selector")))


def _model(model: Mapping[str, Any]) -> ModelCapabilities:
    levels, inputs = model.get("thinking"), model.get("input")
    return ModelCapabilities(
        model_id=text(model.get("selector")),
        provider=text(model.get("provider")),
        display_name=text(model.get("name")),
        context_window=token_limit(model.get("contextWindow")),
        max_output_tokens=token_limit(model.get("maxTokens")),
        price=_price(mapping(model.get("cost"))),
        thinking=model.get("reasoning") is True,
        thinking_efforts=tuple(filter(None, map(text, levels))) if isinstance(levels, list) else (),
        image_input=isinstance(inputs, list) and "image" in inputs,
    )


def _price(cost: Mapping[str, Any]) -> Price | None:
    long = mapping(cost.get("longContext"))
    base, beyond, threshold = _base_price(cost), _base_price(long), token_limit(long.get("inputThreshold"))
    if base is None or beyond is None or threshold is None:
        return base
    return structs.replace(base, threshold=threshold, beyond=beyond)


def _base_price(cost: Mapping[str, Any]) -> Price | None:
    return listed_price(cost, read=cost.get("cacheRead"), written=cost.get("cacheWrite"))


LISTING = ModelListing(argv=("models", "--json"), parse=parse)
