"""What stored sessions cost, as JSON.

Models as JSON: what fits into them, what they cost, and whether a name is one of them.
"""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType, structs

from agent_mux.api import Shape
from agent_mux.models.matching import Status
from agent_mux.models.registry import Models
from agent_mux.sdk.models import ModelCapabilities, Price
from agent_mux.sessions.queries import CostReport, GroupBy
from agent_mux.sessions.spending import UsageTotals
from agent_mux.settings.fields import camel

FIELDS = (
    "native_usd",
    "computed_usd",
    "calls",
    "unknown_calls",
    "input_tokens",
    "output_tokens",
    "thinking_tokens",
    "cached_tokens",
    "cache_creation_tokens",
)


class CostSum(Shape, kw_only=True):
    """What several model calls cost together. Amounts from different sources are never mixed."""

    native_usd: float
    """US dollars, as agents say."""
    computed_usd: float
    """US dollars, from price lists."""
    calls: int
    unknown_calls: int
    """Calls that nobody can price."""
    input_tokens: int
    output_tokens: int
    """With those of thinking."""
    thinking_tokens: int
    cached_tokens: int
    cache_creation_tokens: int


class CostGroup(CostSum, kw_only=True):
    """One group; it is named by one of agent, model, day and tag."""

    agent: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    day: str | UnsetType = UNSET
    """In the time zone of the service: `2026-11-22`."""
    tag: str | UnsetType = UNSET


class CostView(Shape, kw_only=True):
    """What stored sessions cost. Each model call counts once, also where a fork has a copy of it."""

    by: GroupBy
    groups: list[CostGroup]
    """The dearest first; days in their order."""
    total: CostSum
    """Each call once: a session with two tags is in the sums of both."""


def cost_json(by: str, sums: CostReport) -> dict[str, Any]:
    """A report."""
    groups = [{by: name, **_sum(total)} for name, total in sums.items()]
    return {"by": by, "groups": groups, "total": _sum(sums.total)}


def cost_from(told: CostView) -> CostReport:
    """The report that was told."""
    groups = {str(getattr(group, told.by)): _sum_from(group) for group in told.groups}
    return CostReport(groups, _sum_from(told.total))


def _sum_from(told: CostSum) -> UsageTotals:
    return UsageTotals(**{name: getattr(told, name) for name in FIELDS})


def _sum(total: UsageTotals) -> dict[str, Any]:
    known = structs.asdict(total)
    return {camel(name): known[name] for name in FIELDS}


class PriceView(Shape, kw_only=True):
    """US dollars for a million tokens."""

    input: float
    output: float
    cached_input: float | UnsetType = UNSET
    cache_creation: float | UnsetType = UNSET
    threshold: int | UnsetType = UNSET
    """Tokens: a call with more going in costs what `beyond` says."""
    beyond: "PriceView | UnsetType" = UNSET


class ModelView(ModelCapabilities, frozen=True, kw_only=True):
    """A model that an agent offers. What nobody has said is left out. The numbers are tokens."""

    agent: str
    price: PriceView | None  # type: ignore[assignment]  # as JSON has it
    """Null: nobody states one."""
    status: Status | None = None
    """Of the name that was asked for; only where one was."""


def model_json(model: ModelCapabilities, agent: str) -> dict[str, Any]:
    """A model; prices by their names."""
    fields = msgspec.to_builtins(model)
    price = None if model.price is None else _price(model.price)
    return {"agent": agent, **{name: value for name, value in fields.items() if value is not None}, "price": price}


def models_json(models: Models, agent: str | None = None) -> list[dict[str, Any]]:
    """The models of an agent, or of all agents. Raises AGENT_NOT_FOUND."""
    found = models.catalog() if agent is None else {models.adapters.get(agent).agent: models.list(agent)}
    return [model_json(model, name) for name, offered in found.items() for model in offered]


def judged_model_json(models: Models, agent: str, name: str) -> dict[str, Any]:
    """The model that a name means, and how it does. Raises AGENT_NOT_FOUND, VALIDATION_ERROR for no model's name."""
    found, verdict = models.get(agent, name), models.validate(agent, name)
    return {**model_json(found, models.adapters.get(agent).agent), "status": verdict.status}


def model_from(told: ModelView) -> ModelCapabilities:
    """The model that was told, without its agent and its status."""
    fields = {name: getattr(told, name) for name in ModelCapabilities.__struct_fields__}
    return ModelCapabilities(**{**fields, "price": None if told.price is None else _price_from(told.price)})


def _price_from(told: PriceView) -> Price:
    said = {name: value for name, value in structs.asdict(told).items() if value is not UNSET}
    return Price(**{**said, **({"beyond": _price_from(told.beyond)} if told.beyond else {})})


def _price(price: Price) -> dict[str, Any]:
    fields = {
        "input": price.input,
        "output": price.output,
        "cachedInput": price.cached_input,
        "cacheCreation": price.cache_creation,
        "threshold": price.threshold,
        "beyond": None if price.beyond is None else _price(price.beyond),
    }
    return {name: value for name, value in fields.items() if value is not None}
