"""Comparisons end in bounded time, without processes and without lost trials."""

from collections import Counter
from pathlib import Path

import pytest
from tests.process.compared_agents import make_repository, outcomes, run_comparison, the_trial

from agent_mux.compare.report import report_of
from agent_mux.process.marker import processes_of

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "project" / "repository")


async def test_agent_and_children_that_ignore_sigterm_end_soon_after_the_limit(
    tmp_path: Path, repository: Path
) -> None:
    comparison = await run_comparison(
        tmp_path / "config", repository, "hangs-with-child", options={"timeout": 8.0, "grace_period": 1.0}
    )
    attempt = the_trial(comparison, "hangs-with-child").attempts[-1]
    assert outcomes(comparison) == {"hangs-with-child": ("fail", "timeout")}
    assert 8_000 <= attempt.usage.duration_ms < 30_000  # 12 s on an idle machine
    assert processes_of(attempt.run_id) == []


async def test_server_that_holds_stdout_does_not_delay_the_end(tmp_path: Path, repository: Path) -> None:
    comparison = await run_comparison(
        tmp_path / "config", repository, "leaves-server", options={"timeout": 100.0, "grace_period": 1.0}
    )
    trial = the_trial(comparison, "leaves-server")
    assert outcomes(comparison) == {"leaves-server": ("pass", "completed")}
    assert trial.attempts[-1].usage.duration_ms < 30_000  # 2 s on an idle machine; the server waits 1,000 s
    assert processes_of(trial.attempts[-1].run_id) == []


async def test_no_trial_of_many_is_lost(tmp_path: Path, repository: Path) -> None:
    candidates = ["fixes", "offline", *(f"null,name=null-{number}" for number in range(32))]
    comparison = await run_comparison(
        tmp_path / "config", repository, *candidates, trials=3, jobs=4, attempts=1, checks=["grep -q 'a + b' calc.py"]
    )
    report = report_of(comparison)
    found = Counter(trial.outcome.verdict for trial in comparison.trials if trial.outcome is not None)
    assert len(set(comparison.plan.order)) == len(comparison.trials) == 102
    assert (report.planned, report.judged, report.excluded, report.pending) == (102, 99, 3, 0)
    assert found == {"pass": 3, "fail": 96, "infra": 3}
    assert comparison.status == "ended"
