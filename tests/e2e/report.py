"""The table of scenarios and agents at the end of a run of the suite."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

SCENARIO = "scenario"
"""The name of the test property with agent and scenario; reports from worker processes carry it, too."""
WORST_FIRST = ("FAILED", "works now", "skipped", "ok")


def agent_of(item: pytest.Item) -> str:
    """Return the agent of a test, with `@VERSION` for an older version; empty for a test without an agent."""
    return str(_parameters(item).get("agent", ""))


def way_of(item: pytest.Item) -> str | None:
    """Return the way of a test (`one_shot`, `two_way`), or None when the scenario has only one."""
    way = _parameters(item).get("way")
    return None if way is None else str(way)


def scenario_of(item: pytest.Item) -> tuple[str, str]:
    """Return the agent and the scenario of a test: `(agent, "shell/two_way")`. Both are empty for other tests."""
    agent, way = agent_of(item), way_of(item)
    if not isinstance(item, pytest.Function) or not agent:
        return "", ""
    name = str(item.originalname).removeprefix("test_")
    return agent, name if way is None else f"{name}/{way}"


def _parameters(item: pytest.Item) -> dict[str, Any]:
    return getattr(getattr(item, "callspec", None), "params", {})


def merge_results(
    known: Mapping[str, Mapping[str, str]], new: Mapping[str, Mapping[str, str]]
) -> dict[str, dict[str, str]]:
    """Return agent -> scenario -> outcome: the new outcomes, and the known ones of scenarios that did not run."""
    return {agent: {**known.get(agent, {}), **new.get(agent, {})} for agent in sorted({*known, *new})}


class OutcomeTable:
    """Outcomes by scenario and agent."""

    def __init__(self) -> None:
        self._cells: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))

    def add_report(self, report: pytest.TestReport) -> None:
        """Record the outcome of one phase of a test."""
        agent, scenario = dict(report.user_properties).get(SCENARIO, ("", ""))
        if agent and (report.when == "call" or report.outcome != "passed"):
            self._cells[scenario][agent].append(_outcome(report))

    def results(self) -> dict[str, dict[str, str]]:
        """Return agent -> scenario -> outcome. A gap is its kind; skipped scenarios are omitted."""
        found: dict[str, dict[str, str]] = defaultdict(dict)
        for scenario, cells in sorted(self._cells.items()):
            for agent, outcomes in cells.items():
                if (worst := _worst(outcomes)) != "skipped":
                    found[agent][scenario] = worst
        return dict(sorted(found.items()))

    def lines(self) -> Iterator[str]:
        """Yield the lines of the table. A scenario with several tests has the worst of their outcomes."""
        agents = sorted({agent for cells in self._cells.values() for agent in cells})
        if not agents:
            return
        yield f"{'scenario':<42}" + "".join(f"{agent:<14}" for agent in agents)
        for scenario, cells in self._cells.items():
            yield f"{scenario:<42}" + "".join(f"{_worst(cells.get(agent, [])):<14}" for agent in agents)


def _outcome(report: pytest.TestReport) -> str:
    if hasattr(report, "wasxfail"):
        return "works now" if report.outcome == "passed" else report.wasxfail.partition(":")[0]
    return {"passed": "ok", "failed": "FAILED", "skipped": "skipped"}[report.outcome]


def _worst(outcomes: list[str]) -> str:
    known = [outcome for outcome in WORST_FIRST if outcome in outcomes]
    return known[0] if known else (outcomes[0] if outcomes else "-")
