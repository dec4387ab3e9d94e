"""What stored sessions cost, grouped. Each model call counts once, however many copies of it there are."""

from dataclasses import replace
from datetime import datetime
from typing import Literal

from agent_mux.sessions.filter import ALL, SessionFilter
from agent_mux.sessions.library import SessionLibrary
from agent_mux.sessions.spending import Call, Sum

GroupBy = Literal["agent", "model", "day"]
UNKNOWN = "unknown"


def cost_report(library: SessionLibrary, wanted: SessionFilter = ALL, *, group_by: GroupBy = "agent") -> dict[str, Sum]:
    """The sums by group, the dearest first; days in their order.

    Times and models are those of the calls: a session that went on for two days counts on both, with what was spent on
    each. Raises as `SessionLibrary.list` does.
    """
    # A call can be copied into a session that nobody asks for, or out of one: all are looked at. It belongs to the one
    # that was there first; a copy begins when its origin did, and goes on for longer.
    sessions = sorted(
        library.known(replace(wanted, since=None, until=None, model=None, cwd=None)),
        key=lambda known: (known.made.summary.created_at or 0, known.made.summary.updated_at),
    )
    sums: dict[str, Sum] = {}
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
                sums.setdefault(_group(group_by, agent, call, at), Sum()).add(call)
    by_name = sorted(sums.items())
    return dict(by_name if group_by == "day" else sorted(by_name, key=lambda item: (-item[1].usd, -item[1].calls)))


def _group(group_by: GroupBy, agent: str, call: Call, at: int) -> str:
    match group_by:
        case "agent":
            return agent
        case "model":
            return call.model or UNKNOWN
        case "day":
            return datetime.fromtimestamp(at / 1000).astimezone().date().isoformat()
