"""Real CLIs, offline.

python -m agent_mux.testing.provision
python -m agent_mux.testing.offline -- pytest tests/e2e
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from agent_mux.testing.offline import ALLOW_NETWORK, is_offline
from agent_mux.testing.provision import PINNED, find_agent

pytest.register_assert_rewrite("tests.e2e.harness")

from tests.e2e.gaps import GAPS  # noqa: E402  # assertions in the harness are to be explained, too
from tests.e2e.harness import Live  # noqa: E402
from tests.e2e.report import Table, scenario_of  # noqa: E402

HERE = Path(__file__).parent
table = Table()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=sorted(PINNED))
def agent(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def program(agent: str) -> Path:
    found = find_agent(agent)
    if found is None:
        pinned = PINNED[agent]
        pytest.skip(f"{agent} {pinned.version} is not there; try: python -m agent_mux.testing.provision {agent}")
    return found


@pytest.fixture
def live(agent: str, program: Path, tmp_path: Path) -> Iterator[Live]:
    with ExitStack() as stack:
        yield Live(agent, program, tmp_path, stack)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Nothing here runs where a CLI could reach anybody; what an agent cannot do has to fail."""
    allowed = is_offline() or bool(os.environ.get(ALLOW_NETWORK))
    reason = f"would have the network; run it under agent_mux.testing.offline, or set {ALLOW_NETWORK}=1"
    here = [item for item in items if item.path.is_relative_to(HERE)]
    table.know(here)
    for item in here:
        item.add_marker(pytest.mark.e2e)
        gap = GAPS.get(scenario_of(item))
        if not allowed:
            item.add_marker(pytest.mark.skip(reason=reason))
        elif gap is not None:
            # Only a claim that does not hold: whatever else goes wrong is no gap.
            item.add_marker(pytest.mark.xfail(reason=str(gap), strict=True, raises=AssertionError))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    table.see(report)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in table.lines():
        terminalreporter.write_line(line)
