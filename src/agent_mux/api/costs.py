"""What stored sessions cost, as JSON."""

from typing import Any

from msgspec import UNSET, UnsetType, structs

from agent_mux.api import Shape
from agent_mux.sessions.queries import CostReport, GroupBy
from agent_mux.sessions.spending import Sum
from agent_mux.settings.keys import camel

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


def _sum_from(told: CostSum) -> Sum:
    return Sum(**{name: getattr(told, name) for name in FIELDS})


def _sum(total: Sum) -> dict[str, Any]:
    known = structs.asdict(total)
    return {camel(name): known[name] for name in FIELDS}
