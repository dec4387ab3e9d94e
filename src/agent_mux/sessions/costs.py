"""What stored sessions cost, grouped. Each model call counts once, however many copies of it there are."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Literal

from agent_mux.sessions.filter import ALL, SessionFilter
from agent_mux.sessions.library import SessionLibrary
from agent_mux.sessions.spending import Call, Sum
from agent_mux.sessions.summary import SessionSummary

GroupBy = Literal["agent", "model", "day", "tag"]
UNKNOWN = "unknown"
UNTAGGED = "(no tag)"


class CostReport(dict[str, Sum]):
    """Sums by group."""

    def __init__(self, groups: Mapping[str, Sum], total: Sum) -> None:
        super().__init__(groups)
        self.total = total
        """Each call once: a session with two tags is in the sums of both."""


def cost_report(library: SessionLibrary, wanted: SessionFilter = ALL, *, group_by: GroupBy = "agent") -> CostReport:
    """The sums by group, the dearest first; days in their order. `total` has them all.

    Times and models are those of the calls: a session that went on for two days counts on both, with what was spent on
    each. Raises as `SessionLibrary.list` does.
    """
    # A call can be copied into a session that nobody asks for, or out of one: all are looked at. It belongs to the one
    # that was there first; a copy begins when its origin did, and goes on for longer.
    sessions = sorted(
        library.known(replace(wanted, since=None, until=None, model=None, cwd=None, tags=())),
        key=lambda known: (known.made.summary.created_at or 0, known.made.summary.updated_at),
    )
    sums: dict[str, Sum] = {}
    total = Sum()
    counted: set[tuple[str, str]] = set()
    for known in sessions:
        agent, summary = known.adapter.agent, known.made.summary
        is_wanted = replace(wanted, since=None, until=None, model=None).matches(summary)
        for call in known.made.calls:
            if call.key and (agent, call.key) in counted:
                continue
            counted.add((agent, call.key))
            at = call.at or summary.updated_at
            if is_wanted and wanted.has_time(at) and wanted.model in {None, call.model}:
                total.add(call)
                for group in _groups(group_by, summary, call, at):
                    sums.setdefault(group, Sum()).add(call)
    by_name = sorted(sums.items())
    by_cost = sorted(by_name, key=lambda item: (-item[1].usd, -item[1].calls))
    return CostReport(dict(by_name if group_by == "day" else by_cost), total)


def _groups(group_by: GroupBy, summary: SessionSummary, call: Call, at: int) -> tuple[str, ...]:
    match group_by:
        case "agent":
            return (summary.agent,)
        case "model":
            return (call.model or UNKNOWN,)
        case "day":
            return (datetime.fromtimestamp(at / 1000).astimezone().date().isoformat(),)
        case "tag":
            return summary.tags or (UNTAGGED,)
