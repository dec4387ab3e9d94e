"""Fixtures and options of the end-to-end tests: real CLIs, offline.

python -m agent_mux_testing.provision
python -m agent_mux_testing.offline -- pytest tests/e2e [--agent AGENT]
"""

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from agent_mux import CapabilityError
from agent_mux_testing.live import UnsupportedPart, kit_of, kits
from agent_mux_testing.offline import ALLOW_NETWORK, is_offline
from agent_mux_testing.provision import Provisioned, find_agent

pytest.register_assert_rewrite("tests.e2e.harness")

from tests.e2e.harness import LiveAgent  # noqa: E402  # registered above, so that its assertions are rewritten
from tests.e2e.report import SCENARIO, OutcomeTable, agent_of, merge_results, scenario_of, way_of  # noqa: E402

HERE = Path(__file__).parent
FULLY_TESTED = ("claude", "codex", "native")
"""Agents that run every scenario; the others run only scenarios marked `all_agents`, on one event loop. CI runs those
marked `core` with each of them, and each other scenario with one of them; the rest is marked `exhaustive`.
"""
SLOW_TO_START = ("openclaw",)
"""Agents whose start takes half a minute of processor time: CI runs a part of the `core` scenarios with them."""
PART = 5
"""CI runs one in so many scenarios with agents that are slow to start."""
table = OutcomeTable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--results", help="write the outcomes to this file, for the support matrix")
    parser.addoption(
        "--agent", action="append", default=[], help="run only this agent (`AGENT` or `AGENT@VERSION`); repeatable"
    )


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize `agent` with each agent and pinned version."""
    if "agent" not in metafunc.fixturenames:
        return
    for_all_agents = metafunc.definition.get_closest_marker("all_agents") is not None
    wanted = set(metafunc.config.getoption("agent"))
    pinned = [(kit.agent, _name(kit.agent, pin.version)) for kit in kits().values() for pin in kit.pins]
    known = [(agent, name) for agent, name in pinned if for_all_agents or agent in FULLY_TESTED]
    metafunc.parametrize("agent", [name for agent, name in known if not wanted or {agent, name} & wanted])


def _name(agent: str, version: str) -> str:
    """Return the test id of a version: the agent's name alone for its newest version."""
    return agent if kit_of(agent).pins[0].version == version else f"{agent}@{version}"


@pytest.fixture
def provisioned(agent: str) -> Provisioned:
    name, _, version = agent.partition("@")
    found = find_agent(name, version or None)
    if found is None:
        pytest.skip(f"{agent} is not installed; try: python -m agent_mux_testing.provision {agent}")
    return found


@pytest.fixture
def native(tmp_path: Path) -> Iterator[LiveAgent]:
    """Yield the embedded agent, for scenarios of its own features."""
    found = find_agent("native")
    if found is None:
        pytest.skip("native is not installed; try: python -m agent_mux_testing.provision native")
    with ExitStack() as stack:
        yield LiveAgent(found, tmp_path, stack)


@pytest.fixture
def live(provisioned: Provisioned, tmp_path: Path) -> Iterator[LiveAgent]:
    with ExitStack() as stack:
        yield LiveAgent(provisioned, tmp_path, stack)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip all tests while the network is reachable, and expect scenarios with a gap to fail."""
    allowed = is_offline() or bool(os.environ.get(ALLOW_NETWORK))
    reason = f"the network is reachable; run under agent_mux_testing.offline, or set {ALLOW_NETWORK}=1"
    redundant = [item for item in items if item.path.is_relative_to(HERE) and _is_redundant(item)]
    config.hook.pytest_deselected(items=redundant)
    items[:] = [item for item in items if item not in redundant]
    here = [item for item in items if item.path.is_relative_to(HERE)]
    for item in here:
        item.add_marker(pytest.mark.e2e)
        agent, scenario = scenario_of(item)
        if agent and not _is_sampled(agent, scenario, is_core=item.get_closest_marker("core") is not None):
            item.add_marker(pytest.mark.exhaustive)
        item.user_properties.append((SCENARIO, (agent, scenario)))
        name, _, version = agent.partition("@")
        gap = kit_of(name).gaps_of(version).get(scenario) if agent else None
        if not allowed:
            item.add_marker(pytest.mark.skip(reason=reason))
        elif gap is not None:
            # A gap explains only these exceptions; any other is a failure.
            gap_errors = (AssertionError, UnsupportedPart, CapabilityError, TimeoutError)
            item.add_marker(pytest.mark.xfail(reason=str(gap), strict=True, raises=gap_errors))


def _is_sampled(agent: str, scenario: str, *, is_core: bool) -> bool:
    """Return whether CI runs a scenario with an agent."""
    if is_core:
        return agent not in SLOW_TO_START or zlib.crc32(scenario.encode()) % PART == 0
    return agent == _sampled_agent(scenario)


def _sampled_agent(scenario: str) -> str:
    """Return the agent with which CI runs a scenario that is not `core`: one without a gap, if there is one."""
    first = zlib.crc32(scenario.encode()) % len(FULLY_TESTED)
    turns = FULLY_TESTED[first:] + FULLY_TESTED[:first]
    way = scenario.partition("/")[2]
    able = (agent for agent in turns if scenario not in kit_of(agent).gaps_of() and way in {"", *kit_of(agent).ways})
    return next(able, turns[0])


def _is_redundant(item: pytest.Item) -> bool:
    """Return whether a test repeats another (second event loop, same protocol), or its agent has no kit."""
    agent = agent_of(item).partition("@")[0]
    if not agent:
        return False
    if agent not in kits():
        return True
    loop = getattr(item, "callspec").params.get("anyio_backend")  # noqa: B009  # not every item has one
    way = way_of(item)
    return (loop == "trio" and agent not in FULLY_TESTED) or (way is not None and way not in kit_of(agent).ways)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    table.add_report(report)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Update the outcomes of the scenarios that ran in the results file."""
    if session.config.getoption("results"):
        path = Path(session.config.getoption("results"))
        known = json.loads(path.read_text("utf-8")) if path.exists() else {}
        path.write_text(json.dumps(merge_results(known, table.results()), indent=1, sort_keys=True) + "\n", "utf-8")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in table.lines():
        terminalreporter.write_line(line)
