"""Every agent in the tree is known in all the places that the recipe "Add an agent" names."""

import json
import tomllib
from collections.abc import Callable
from typing import Any

from tests.unit.contributing.recipes import ROOT, Place, check_places, paths_on_page, text_of

AGENTS = sorted(path.parent.name for path in (ROOT / "adapters/agent_mux_adapters").glob("[a-z]*/__init__.py"))
"""The agents with a folder, whether or not they are registered anywhere."""
NOT_AN_AGENT = {"replay"}
"""Adapters that play recordings back: nothing can be recorded or installed."""
NOT_PROVISIONED = {"cursor", "terminal"}
"""Agents whose program no registry has, or that drive any program: there is no kit, and no run of the real CLI."""
WITHOUT_SCRIPTS = {"terminal"}
"""Agents whose recordings come from programs without a model."""


def toml(path: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / path).read_text("utf-8"))


def entry_points(path: str, group: str) -> dict[str, str]:
    points: dict[str, str] = toml(path)["project"]["entry-points"][group]
    return points


def in_independence_contract(agent: str) -> bool:
    contracts = toml("pyproject.toml")["tool"]["importlinter"]["contracts"]
    (modules,) = (contract["modules"] for contract in contracts if contract["type"] == "independence")
    return f"agent_mux_adapters.{agent}" in modules


def exists(pattern: str, *exceptions: set[str]) -> Callable[[str], bool]:
    """Return whether the path of an agent exists and is not an empty folder."""
    excepted = set().union(*exceptions)

    def check(agent: str) -> bool:
        path = ROOT / pattern.replace("<agent>", agent)
        return agent in excepted or path.is_file() or (path.is_dir() and any(path.iterdir()))

    return check


def has_results(agent: str) -> bool:
    return agent in NOT_AN_AGENT | NOT_PROVISIONED or agent in json.loads(text_of("tests/e2e/results.json"))


KIT = "testing/agent_mux_testing/kits"
PLACES = (
    Place(
        "adapters/agent_mux_adapters/<agent>/", "the adapter", exists("adapters/agent_mux_adapters/<agent>/__init__.py")
    ),
    Place(
        "pyproject.toml",
        "the entry point in `agent_mux.adapters`, and the module in the import contract of adapters",
        lambda agent: agent in entry_points("pyproject.toml", "agent_mux.adapters") and in_independence_contract(agent),
    ),
    Place("fixtures/<agent>/", "recordings", exists("fixtures/<agent>", NOT_AN_AGENT)),
    Place("tests/unit/adapters/<agent>/", "tests of the codecs and of argv", exists("tests/unit/adapters/<agent>")),
    Place(
        "tests/conformance/test_<agent>.py",
        "the conformance suite",
        exists("tests/conformance/test_<agent>.py", NOT_AN_AGENT),
    ),
    Place(
        "tests/conformance/scripts_<agent>.py",
        "the comparison of its events with the scripts of the model",
        exists("tests/conformance/scripts_<agent>.py", NOT_AN_AGENT, WITHOUT_SCRIPTS),
    ),
    Place(f"{KIT}/<agent>.py", "the kit", exists(f"{KIT}/<agent>.py", NOT_AN_AGENT, NOT_PROVISIONED)),
    Place(
        "testing/pyproject.toml",
        "the entry point in `agent_mux.live_kits`",
        lambda agent: (
            agent in NOT_AN_AGENT | NOT_PROVISIONED
            or agent in entry_points("testing/pyproject.toml", "agent_mux.live_kits")
        ),
    ),
    Place(
        f"{KIT}/baselines/<agent>.json",
        "the drift baseline",
        exists(f"{KIT}/baselines/<agent>.json", NOT_AN_AGENT, NOT_PROVISIONED),
    ),
    Place("tests/e2e/results.json", "the outcome of the scenarios (`make e2e-results`)", has_results),
    Place(
        "docs/reference/support-matrix.md",
        "its rows in the generated page (`make docs`)",
        lambda agent: agent in NOT_AN_AGENT or f"| `{agent}` |" in text_of("docs/reference/support-matrix.md"),
    ),
    Place(
        ".ci/run",
        "the end-to-end scenarios in CI",
        lambda agent: agent in NOT_AN_AGENT | NOT_PROVISIONED or agent in text_of(".ci/run").replace('"', " ").split(),
    ),
)


def test_every_agent_is_known_in_every_place() -> None:
    check_places("agent", AGENTS, PLACES)


def test_exceptions_are_agents() -> None:
    assert set(AGENTS) > NOT_AN_AGENT | NOT_PROVISIONED | WITHOUT_SCRIPTS


def test_recipe_names_the_places() -> None:
    assert paths_on_page("agent") == [place.path for place in PLACES]
