"""Models as JSON: their limits, their prices, and how a requested name matches them."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType, structs

from agent_mux.api import JsonView
from agent_mux.models.matching import ModelStatus
from agent_mux.models.registry import Models
from agent_mux.sdk.models import ModelCapabilities, Price


class PriceView(JsonView, kw_only=True):
    """Prices in US dollars per million tokens."""

    input: float
    output: float
    cached_input: float | UnsetType = UNSET
    cache_creation: float | UnsetType = UNSET
    threshold: Annotated[
        int | UnsetType, Meta(description="Number of input tokens above which a call has the prices in `beyond`.")
    ] = UNSET
    beyond: "PriceView | UnsetType" = UNSET


class ModelView(ModelCapabilities, frozen=True, kw_only=True):
    """A model that an agent offers. Unknown properties are omitted. Sizes are in tokens."""

    agent: str
    price: Annotated[PriceView | None, Meta(description="The model's prices; null if unknown.")]  # type: ignore[assignment]  # as JSON has it
    status: Annotated[
        ModelStatus | None, Meta(description="How the requested name matches the model; omitted in lists.")
    ] = None


def model_json(model: ModelCapabilities, agent: str) -> dict[str, Any]:
    """Return a model as JSON, in the shape of `ModelView`."""
    fields = msgspec.to_builtins(model)
    price = None if model.price is None else _price_json(model.price)
    return {"agent": agent, **{name: value for name, value in fields.items() if value is not None}, "price": price}


def models_json(models: Models, agent: str | None = None) -> list[dict[str, Any]]:
    """Return the models of one agent, or of all agents. Raises AGENT_NOT_FOUND."""
    found = models.catalog() if agent is None else {models.adapters.get(agent).agent: models.list(agent)}
    return [model_json(model, name) for name, offered in found.items() for model in offered]


def matched_model_json(models: Models, agent: str, name: str) -> dict[str, Any]:
    """Return the model that a name matches, with the status of the match.

    Raises AGENT_NOT_FOUND; VALIDATION_ERROR if no model matches.
    """
    found, match = models.get(agent, name), models.validate(agent, name)
    return {**model_json(found, models.adapters.get(agent).agent), "status": match.status}


def model_from_view(view: ModelView) -> ModelCapabilities:
    """Convert a view to a model, without its agent and status."""
    fields = {name: getattr(view, name) for name in ModelCapabilities.__struct_fields__}
    return ModelCapabilities(**{**fields, "price": None if view.price is None else _price_from_view(view.price)})


def _price_json(price: Price) -> dict[str, Any]:
    fields = {
        "input": price.input,
        "output": price.output,
        "cachedInput": price.cached_input,
        "cacheCreation": price.cache_creation,
        "threshold": price.threshold,
        "beyond": None if price.beyond is None else _price_json(price.beyond),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _price_from_view(view: PriceView) -> Price:
    fields = {name: value for name, value in structs.asdict(view).items() if value is not UNSET}
    return Price(**{**fields, **({"beyond": _price_from_view(view.beyond)} if view.beyond else {})})
