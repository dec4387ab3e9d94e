"""The outcomes of the end-to-end suite, from which the support matrix is generated."""

import ast
import json
from pathlib import Path

from tests.e2e.report import merge_results

E2E = Path(__file__).parents[2] / "e2e"


def test_partial_run_keeps_the_outcomes_of_other_scenarios_and_agents() -> None:
    known = {"a": {"shell": "ok", "steer": "FAILED"}, "b": {"shell": "ok"}}
    new = {"a": {"steer": "ok"}, "c": {"shell": "never"}}
    assert merge_results(known, new) == {
        "a": {"shell": "ok", "steer": "ok"},
        "b": {"shell": "ok"},
        "c": {"shell": "never"},
    }


def test_results_contain_only_scenarios_that_exist() -> None:
    results = json.loads((E2E / "results.json").read_text("utf-8"))
    scenarios = {
        node.name.removeprefix("test_")
        for path in E2E.glob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef)
    }
    stale = {name for of_agent in results.values() for name in of_agent if name.partition("/")[0] not in scenarios}
    assert stale == set(), "a scenario was renamed or deleted: change its rows in tests/e2e/results.json"
