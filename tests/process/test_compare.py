"""Comparisons with agents that fix, do nothing, cheat, crash, hang, or are refused."""

import sys
from pathlib import Path

import anyio
import pytest
from tests.process.compared_agents import (
    CHECK,
    TIMEOUT,
    compared_mux,
    git,
    make_repository,
    outcomes,
    run_comparison,
    state_of,
    the_trial,
)

from agent_mux.compare.report import report_of
from agent_mux.compare.request import shuffled
from agent_mux.errors import AgentMuxError

pytestmark = pytest.mark.anyio


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "project" / "repository")


def seed_with_first(*trials: str) -> int:
    """Return a seed with which the trials start in this order."""
    return next(seed for seed in range(100) if shuffled(trials, seed) == trials)


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


@pytest.mark.slow
async def test_edited_tests_do_not_decide(tmp_path: Path, repository: Path) -> None:
    comparison = await run_comparison(tmp_path / "config", repository, "edits-tests")
    assert outcomes(comparison) == {"edits-tests": ("fail", "completed")}
    assert the_trial(comparison, "edits-tests").tampered == ("test_calc.py",)


@pytest.mark.slow
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


@pytest.mark.slow
async def test_refusals_of_the_provider_are_excluded_and_attempted_again(tmp_path: Path, repository: Path) -> None:
    comparison = await run_comparison(tmp_path / "config", repository, "limited", "limited-quietly", "offline")
    assert outcomes(comparison) == {
        "limited": ("infra", "rate_limited"),
        "limited-quietly": ("infra", "rate_limited"),
        "offline": ("infra", "network"),
    }
    assert [len(trial.attempts) for trial in comparison.trials] == [2, 2, 2]
    assert all(attempt.outcome is not None for trial in comparison.trials for attempt in trial.attempts)


@pytest.mark.slow
async def test_trials_pause_after_rate_limits_in_a_row(tmp_path: Path, repository: Path) -> None:
    comparison = await run_comparison(
        tmp_path / "config", repository, "limited,trials=6", "fixes", attempts=1, jobs=1, seed=1
    )
    limited = [trial for trial in comparison.trials if trial.candidate == "limited"]
    assert sum(trial.outcome is not None for trial in limited) == 3
    assert comparison.status == "interrupted"
    assert any("3 rate limits in a row" in note for note in comparison.notes)
    assert outcomes(comparison)["fixes"] == ("pass", "completed")


@pytest.mark.slow
async def test_agent_that_ignores_sigterm_ends_at_its_limit(tmp_path: Path, repository: Path) -> None:
    comparison = await run_comparison(
        tmp_path / "config", repository, "hangs", options={"timeout": 2.0, "grace_period": 1.0}
    )
    assert outcomes(comparison) == {"hangs": ("fail", "timeout")}


@pytest.mark.slow
async def test_server_that_was_left_running_is_listed_and_ended(tmp_path: Path, repository: Path) -> None:
    comparison = await run_comparison(tmp_path / "config", repository, "leaves-server")
    trial = the_trial(comparison, "leaves-server")
    assert outcomes(comparison) == {"leaves-server": ("pass", "completed")}
    assert any("time.sleep(1000)" in line for line in trial.survivors)


@pytest.mark.slow
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


@pytest.mark.slow
async def test_history_has_no_solution(tmp_path: Path, repository: Path) -> None:
    comparison = await run_comparison(tmp_path / "config", repository, "searches-history")
    assert outcomes(comparison) == {"searches-history": ("fail", "no_change")}


@pytest.mark.slow
async def test_null_and_oracle_show_what_the_checks_distinguish(tmp_path: Path, repository: Path) -> None:
    patch = tmp_path / "fix.patch"
    patch.write_text(git(repository, "diff", "main", "solution"))
    comparison = await run_comparison(tmp_path / "config", repository, "null", f"oracle:{patch}")
    assert outcomes(comparison) == {"null": ("fail", "no_change"), "oracle": ("pass", "completed")}


@pytest.mark.slow
async def test_order_is_shuffled_by_the_seed(tmp_path: Path, repository: Path) -> None:
    first = await run_comparison(tmp_path / "a", repository, "null,trials=20", checks=[], seed=7)
    second = await run_comparison(tmp_path / "b", repository, "null,trials=20", checks=[], seed=7)
    assert first.plan.order == second.plan.order
    assert first.plan.order != tuple(sorted(first.plan.order))
    assert outcomes(first) == {"null": ("unjudged", "no_change")}


@pytest.mark.slow
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


@pytest.mark.slow
async def test_judge_compares_what_the_checks_leave_equal(tmp_path: Path, repository: Path) -> None:
    with anyio.fail_after(TIMEOUT):
        async with compared_mux(tmp_path / "config", "fixes", "nothing", "prefers-a") as mux:
            run = await mux.compare(
                "fix it", candidates=["fixes,trials=2", "nothing"], cwd=repository, checks=[CHECK], judge="prefers-a"
            )
            comparison = await run.result()
            selection = mux.comparisons.select()
    assert {(one.first, one.second, one.preferred) for one in comparison.judgements} == {
        ("fixes-1", "fixes-2", "fixes-1"),
        ("fixes-2", "fixes-1", "fixes-2"),
    }
    assert [one.cost_usd for one in comparison.judgements] == [0.1, 0.1]
    assert (selection.strategy, selection.winner) == ("tests-then-judge", "fixes-1")
    assert selection.ties == (("fixes-1", "fixes-2"),)
    assert comparison.status == "ended"
    assert not list((tmp_path / "config" / "workspaces").glob("*"))


@pytest.mark.slow
async def test_hidden_checks_and_patches_of_oracles_are_hidden_or_reported(tmp_path: Path, repository: Path) -> None:
    gold, hidden = tmp_path / "gold.patch", tmp_path / "hidden"
    gold.write_text(git(repository, "diff", "main", "solution"))
    hidden.mkdir()
    (hidden / "test_more.py").write_text("# a + b\n")
    solutions = [gold, hidden / "test_more.py"]
    comparison = await run_comparison(
        tmp_path / "config",
        repository,
        "reads-solutions",
        f"oracle:{gold}",
        hidden_checks=hidden,
        options={"env": {"SOLUTIONS": ":".join(map(str, solutions))}},
    )
    trial = the_trial(comparison, "reads-solutions")
    assert outcomes(comparison)["oracle"] == ("pass", "completed")
    if trial.is_isolated:
        assert outcomes(comparison)["reads-solutions"] == ("fail", "no_change")
    else:
        assert any("not isolated" in note for note in comparison.notes)


async def test_hidden_checks_that_agents_would_get_are_refused(tmp_path: Path, repository: Path) -> None:
    (repository / "hidden").mkdir()
    (repository / "hidden" / "test_more.py").write_text("")
    with pytest.raises(AgentMuxError, match=r"hidden is inside .*move it to another place"):
        await run_comparison(tmp_path / "config", repository, "null", hidden_checks=repository / "hidden")


@pytest.mark.slow
async def test_reported_cost_is_kept_and_unknown_cost_stays_unknown(tmp_path: Path, repository: Path) -> None:
    comparison = await run_comparison(tmp_path / "config", repository, "reports-cost", "fixes", "null")
    usages = {trial.candidate: trial.attempts[-1].usage for trial in comparison.trials}
    assert (usages["reports-cost"].cost_usd, usages["reports-cost"].cost_source) == (0.1, "native")
    assert (usages["fixes"].cost_usd, usages["fixes"].cost_source) == (None, None)
    assert usages["null"].cost_usd is None


@pytest.mark.slow
async def test_gate_fails_if_nobody_passes(tmp_path: Path, repository: Path) -> None:
    comparison = await run_comparison(tmp_path / "config", repository, "nothing", "edits-tests")
    gate = report_of(comparison).gate
    assert (gate.status, gate.exit_code) == ("failed", 1)


async def test_kept_workspaces_stay_when_the_comparison_is_resumed(tmp_path: Path, repository: Path) -> None:
    config = tmp_path / "config"
    comparison = await run_comparison(config, repository, "null", keep_workspaces=True, checks=[])
    with anyio.fail_after(TIMEOUT):
        async with compared_mux(config) as mux:
            again = await (await mux.resume_comparison()).result()
    assert again.kept_workspaces == comparison.kept_workspaces
    assert [(Path(path) / "calc.py").is_file() for path in again.kept_workspaces] == [True]
