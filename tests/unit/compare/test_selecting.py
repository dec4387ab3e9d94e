"""What strategies select among the trials of a stored comparison."""

import pytest
from msgspec import structs

from agent_evaluation import TrialOutcome, TrialVerdict
from agent_mux.compare.export.sentences import selection_text
from agent_mux.compare.records import (
    CandidateRecord,
    CheckResult,
    Comparison,
    ComparisonPlan,
    Judgement,
    RunUsage,
    Trial,
    TrialAttempt,
)
from agent_mux.compare.selecting import selection_of
from agent_mux.errors import AgentMuxError


def trial(name: str, verdict: TrialVerdict, cost: float | None = None) -> Trial:
    usage = RunUsage(cost_usd=cost, duration_ms=1000, input_tokens=1, output_tokens=2)
    attempt = TrialAttempt(number=1, run_id=name, started_at=0, ended_at=1000, usage=usage)
    status = "pass" if verdict == "pass" else "fail"
    return Trial(
        id=f"{name}-1",
        candidate=name,
        number=1,
        attempts=(attempt,),
        outcome=TrialOutcome(verdict=verdict, cause="completed", detail="" if verdict == "pass" else "failed: tests"),
        checks=(CheckResult(name="tests", status=status),),
    )


def comparison(*trials: Trial, select: str | None = None, judgements: tuple[Judgement, ...] = ()) -> Comparison:
    plan = ComparisonPlan(
        id="X",
        created_at=0,
        version="1",
        prompt="fix it",
        candidates=tuple(
            CandidateRecord(name=one.candidate, kind="null" if one.candidate == "null" else "agent") for one in trials
        ),
        checks=(),
        order=tuple(one.id for one in trials),
        seed=1,
        options={} if select is None else {"select": select},
    )
    return Comparison(plan=plan, start=None, trials=trials, judgements=judgements)


def test_default_is_checks_first_and_the_plan_names_another_one() -> None:
    trials = trial("dear", "pass", 2.0), trial("cheap", "fail", 0.1), trial("fair", "pass", 1.0)
    assert selection_text(selection_of(comparison(*trials))).startswith("selected: fair-1 (checks-first: 1 of 1 checks")
    assert selection_of(comparison(*trials, select="pick-first")).winner == "dear-1"
    assert selection_of(comparison(*trials, select="pick-first"), "cheapest").winner == "fair-1"


def test_nobody_wins_if_nobody_passes() -> None:
    found = selection_of(comparison(trial("a", "fail"), trial("b", "fail")))
    assert selection_text(found) == "no winner (checks-first: no trial passed its checks)"


def test_candidate_that_does_nothing_is_never_selected() -> None:
    assert selection_of(comparison(trial("null", "pass"), trial("a", "fail"))).winner is None


def test_comparison_of_built_in_candidates_has_no_winner_because_no_agent_took_part() -> None:
    found = selection_of(comparison(trial("null", "fail")))
    assert selection_text(found) == "no winner (checks-first: no trial of an agent took part)"


def test_comparison_without_a_finished_trial_has_no_winner_yet() -> None:
    active = structs.replace(trial("a", "pass"), outcome=None)
    found = selection_of(comparison(active))
    assert selection_text(found) == "no winner (checks-first: no trial of an agent has ended)"


def test_unknown_cost_is_not_free() -> None:
    assert selection_of(comparison(trial("a", "pass"), trial("b", "pass", 5.0)), "cheapest").winner == "b-1"


def test_judge_decides_between_trials_that_passed_and_never_for_one_that_failed() -> None:
    answers = tuple(
        Judgement(first=first, second=second, preferred="b-1") for first, second in (("a-1", "b-1"), ("b-1", "a-1"))
    )
    passed = comparison(trial("a", "pass"), trial("b", "pass"), judgements=answers)
    assert selection_of(passed, "tests-then-judge").winner == "b-1"
    failed = comparison(trial("a", "pass"), trial("b", "fail"), judgements=answers)
    assert selection_of(failed, "tests-then-judge").winner == "a-1"
    assert selection_of(failed, "llm-judge").winner == "a-1"


def test_missing_verdicts_of_the_judge_favour_nobody() -> None:
    # `strong` wins two comparisons and `lucky` the only one that it has, against the trial that loses to all.
    wins = (("strong-1", "mid-1"), ("strong-1", "weak-1"), ("mid-1", "weak-1"), ("lucky-1", "weak-1"))
    answers = tuple(
        Judgement(first=first, second=second, preferred=pair[0])
        for pair in wins
        for first, second in (pair, reversed(pair))
    )
    trials = (trial(name, "pass") for name in ("lucky", "strong", "mid", "weak"))
    found = selection_of(comparison(*trials, judgements=answers), "tests-then-judge")
    assert (found.winner, found.ties) == ("strong-1", ())


def test_unknown_strategy_is_refused_with_the_known_names() -> None:
    with pytest.raises(AgentMuxError, match="cheapest") as caught:
        selection_of(comparison(trial("a", "pass")), "cheapst")
    assert caught.value.code == "VALIDATION_ERROR"


def test_excluded_trials_are_not_mistaken_for_missing_checks() -> None:
    limited = TrialOutcome(verdict="infra", cause="rate_limited", detail="429")
    found = selection_of(comparison(structs.replace(trial("a", "pass"), outcome=limited, checks=())))
    assert selection_text(found) == "no winner (checks-first: every trial was excluded)"
    assert found.excluded == {"a-1": "infra: rate_limited (429)"}
