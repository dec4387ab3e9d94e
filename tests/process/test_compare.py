"""Comparisons with agents that fix, do nothing, cheat, crash, hang, or are refused."""

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.process.compared_agents import CHECK, compared_mux, git, make_repository, state_of

from agent_mux.compare.records import Comparison, Trial
from agent_mux.compare.request import shuffled
from agent_mux.errors import AgentMuxError

pytestmark = pytest.mark.anyio
TIMEOUT = 120.0


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "project" / "repository")


async def run_comparison(config: Path, repository: Path, *agents: str, **rules: Any) -> Comparison:
    names = [name.partition(",")[0] for name in agents if name != "null" and not name.startswith("oracle")]
    options = {"timeout": 60.0, "grace_period": 1.0, **rules.pop("options", {})}
    with anyio.fail_after(TIMEOUT):
        async with compared_mux(config, *names) as mux:
            run = await mux.compare(
                "fix it", candidates=agents, cwd=repository, options=options, **{"checks": [CHECK], **rules}
            )
            return await run.result()


def outcomes(comparison: Comparison) -> dict[str, tuple[str, str]]:
    return {
        trial.candidate: (trial.outcome.verdict, trial.outcome.cause)
        for trial in comparison.trials
        if trial.outcome is not None
    }


def seed_with_first(*trials: str) -> int:
    """Return a seed with which the trials start in this order."""
    return next(seed for seed in range(100) if shuffled(trials, seed) == trials)


def the_trial(comparison: Comparison, candidate: str) -> Trial:
    return next(trial for trial in comparison.trials if trial.candidate == candidate)


async def test_only_the_fix_passes_and_the_repository_stays_as_it_was(tmp_path: Path, repository: Path) -> None:
    before = state_of(repository)
    comparison = await run_comparison(tmp_path / "config", repository, "fixes", "nothing", "null")
    assert outcomes(comparison) == {
        "fixes": ("pass", "completed"),
        "nothing": ("fail", "no_change"),
        "null": ("fail", "no_change"),
    }
    assert comparison.status == "ended"
    assert state_of(repository) == before
    assert not list((tmp_path / "config" / "workspaces").glob("*"))


async def test_patch_of_the_winner_makes_the_test_pass(tmp_path: Path, repository: Path) -> None:
    comparison = await run_comparison(tmp_path / "config", repository, "fixes", "edits-tests")
    for candidate in ("fixes", "edits-tests"):  # losers' patches are kept as well
        patch = the_trial(comparison, candidate).patch
        assert patch is not None
        assert (tmp_path / "config" / "comparisons" / comparison.plan.id / patch.path).stat().st_size == patch.size
    patch = the_trial(comparison, "fixes").patch
    assert patch is not None
    git(repository, "apply", str(tmp_path / "config" / "comparisons" / comparison.plan.id / patch.path))
    await anyio.run_process([sys.executable, "-m", "unittest", "-q"], cwd=repository)


async def test_edited_tests_do_not_decide(tmp_path: Path, repository: Path) -> None:
    comparison = await run_comparison(tmp_path / "config", repository, "edits-tests")
    assert outcomes(comparison) == {"edits-tests": ("fail", "completed")}
    assert the_trial(comparison, "edits-tests").tampered == ("test_calc.py",)


async def test_causes_of_failures_are_told_apart(tmp_path: Path, repository: Path) -> None:
    agents = ("nothing", "crashes", "no-result", "crashes-after-fix", "denied")
    comparison = await run_comparison(
        tmp_path / "config", repository, *agents, options={"approval_mode": "deny"}, jobs=3
    )
    assert outcomes(comparison) == {
        "nothing": ("fail", "no_change"),
        "crashes": ("fail", "crashed"),
        "no-result": ("fail", "truncated"),
        "crashes-after-fix": ("pass", "crashed"),
        "denied": ("fail", "denied"),
    }


async def test_refusals_of_the_provider_are_excluded_and_attempted_again(tmp_path: Path, repository: Path) -> None:
    comparison = await run_comparison(tmp_path / "config", repository, "limited", "limited-quietly", "offline")
    assert outcomes(comparison) == {
        "limited": ("infra", "rate_limited"),
        "limited-quietly": ("infra", "rate_limited"),
        "offline": ("infra", "network"),
    }
    assert [len(trial.attempts) for trial in comparison.trials] == [2, 2, 2]
    assert all(attempt.outcome is not None for trial in comparison.trials for attempt in trial.attempts)


async def test_trials_pause_after_rate_limits_in_a_row(tmp_path: Path, repository: Path) -> None:
    comparison = await run_comparison(
        tmp_path / "config", repository, "limited,trials=6", "fixes", attempts=1, jobs=1, seed=1
    )
    limited = [trial for trial in comparison.trials if trial.candidate == "limited"]
    assert sum(trial.outcome is not None for trial in limited) == 3
    assert comparison.status == "interrupted"
    assert any("3 rate limits in a row" in note for note in comparison.notes)
    assert outcomes(comparison)["fixes"] == ("pass", "completed")


async def test_agent_that_ignores_sigterm_ends_at_its_limit(tmp_path: Path, repository: Path) -> None:
    comparison = await run_comparison(
        tmp_path / "config", repository, "hangs", options={"timeout": 2.0, "grace_period": 1.0}
    )
    assert outcomes(comparison) == {"hangs": ("fail", "timeout")}


async def test_server_that_was_left_running_is_listed_and_ended(tmp_path: Path, repository: Path) -> None:
    comparison = await run_comparison(tmp_path / "config", repository, "leaves-server")
    trial = the_trial(comparison, "leaves-server")
    assert outcomes(comparison) == {"leaves-server": ("pass", "completed")}
    assert any("time.sleep(1000)" in line for line in trial.survivors)


async def test_solutions_elsewhere_are_hidden_or_reported(tmp_path: Path, repository: Path) -> None:
    comparison = await run_comparison(
        tmp_path / "config",
        repository,
        "fixes",
        "looks-around",
        jobs=1,
        seed=seed_with_first("fixes-1", "looks-around-1"),
        keep_workspaces=True,
        options={"env": {"SOURCE": str(repository)}},
    )
    trial = the_trial(comparison, "looks-around")
    assert trial.is_isolated is not None
    if trial.is_isolated:
        assert outcomes(comparison)["looks-around"] == ("fail", "no_change")
    else:
        assert trial.accesses


async def test_history_has_no_solution(tmp_path: Path, repository: Path) -> None:
    comparison = await run_comparison(tmp_path / "config", repository, "searches-history")
    assert outcomes(comparison) == {"searches-history": ("fail", "no_change")}


async def test_null_and_oracle_show_what_the_checks_distinguish(tmp_path: Path, repository: Path) -> None:
    patch = tmp_path / "fix.patch"
    patch.write_text(git(repository, "diff", "main", "solution"))
    comparison = await run_comparison(tmp_path / "config", repository, "null", f"oracle:{patch}")
    assert outcomes(comparison) == {"null": ("fail", "no_change"), "oracle": ("pass", "completed")}


async def test_order_is_shuffled_by_the_seed(tmp_path: Path, repository: Path) -> None:
    first = await run_comparison(tmp_path / "a", repository, "null,trials=20", checks=[], seed=7)
    second = await run_comparison(tmp_path / "b", repository, "null,trials=20", checks=[], seed=7)
    assert first.plan.order == second.plan.order
    assert first.plan.order != tuple(sorted(first.plan.order))
    assert outcomes(first) == {"null": ("unjudged", "no_change")}


async def test_stopped_comparison_resumes_with_the_trials_that_are_left(tmp_path: Path, repository: Path) -> None:
    config = tmp_path / "config"
    with anyio.fail_after(TIMEOUT):
        async with compared_mux(config, "fixes", "nothing") as mux:
            run = await mux.compare(
                "fix it", candidates=["fixes,trials=3", "nothing"], cwd=repository, checks=[CHECK], jobs=1
            )
            async for _ in run.facts():
                if any(trial.outcome is not None for trial in run.comparison.trials):
                    run.stop()
            stopped = await run.result()
        done = {trial.id: trial for trial in stopped.trials if trial.outcome is not None}
        assert 0 < len(done) < 4
        assert stopped.status == "interrupted"
        async with compared_mux(config, "fixes", "nothing") as mux:
            finished = await (await mux.resume_comparison()).result()
    assert finished.status == "ended"
    assert outcomes(finished) == {"fixes": ("pass", "completed"), "nothing": ("fail", "no_change")}
    assert {trial.id: trial for trial in finished.trials if trial.id in done} == done


async def test_candidate_that_cannot_run_is_reported_before_anything_starts(tmp_path: Path, repository: Path) -> None:
    with anyio.fail_after(TIMEOUT), pytest.raises(AgentMuxError, match=r"candidate missing: .*missing"):
        async with compared_mux(tmp_path / "config", "fixes") as mux:
            await mux.compare("fix it", candidates=["fixes", "missing"], cwd=repository)
    assert not (tmp_path / "config" / "comparisons").exists()  # a local directory
