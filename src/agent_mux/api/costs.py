"""The costs of stored sessions as JSON."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType, structs

from agent_mux.api import JsonView
from agent_mux.sessions.queries import CostReport, GroupBy
from agent_mux.sessions.spending import UsageTotals
from agent_mux.settings.options_json import camel

COST_FIELDS = (
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
"""Fields of `Sum` that are part of a report, in the order of columns."""


class CostSum(JsonView, kw_only=True):
    """The cost of several model calls. Amounts from different sources are never mixed."""

    native_usd: Annotated[float, Meta(description="US dollars, as reported by agents.")]
    computed_usd: Annotated[float, Meta(description="US dollars, computed from price lists.")]
    calls: int
    unknown_calls: Annotated[int, Meta(description="Calls without a known price.")]
    input_tokens: int
    output_tokens: Annotated[int, Meta(description="Output tokens, including thinking tokens.")]
    thinking_tokens: int
    cached_tokens: int
    cache_creation_tokens: int


class CostGroup(CostSum, kw_only=True):
    """The cost of one group, which is named by one of agent, model, day and tag."""

    agent: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    day: Annotated[str | UnsetType, Meta(description="Day in the time zone of the service: `2026-11-22`.")] = UNSET
    tag: str | UnsetType = UNSET


class CostView(JsonView, kw_only=True):
    """The cost of stored sessions. Each model call counts once, even if a forked session contains a copy of it."""

    by: GroupBy
    groups: Annotated[
        list[CostGroup], Meta(description="Groups sorted by descending cost; days in chronological order.")
    ]
    total: Annotated[
        CostSum,
        Meta(description=("Sum over all calls. A session with two tags is part of two groups, but counts once here.")),
    ]


def cost_json(by: str, sums: CostReport) -> dict[str, Any]:
    """Return a report as JSON, in the shape of `CostView`."""
    groups = [{by: name, **_sum_json(total)} for name, total in sums.items()]
    return {"by": by, "groups": groups, "total": _sum_json(sums.total)}


def cost_from_view(view: CostView) -> CostReport:
    """Convert a view to a report."""
    groups = {str(getattr(group, view.by)): _sum_from_view(group) for group in view.groups}
    return CostReport(groups, _sum_from_view(view.total))


def _sum_json(total: UsageTotals) -> dict[str, Any]:
    known = structs.asdict(total)
    return {camel(name): known[name] for name in COST_FIELDS}


def _sum_from_view(view: CostSum) -> UsageTotals:
    return UsageTotals(**{name: getattr(view, name) for name in COST_FIELDS})
