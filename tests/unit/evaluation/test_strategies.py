"""Strategies on outcomes written by hand; the expectations were computed by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_evaluation import STRATEGIES, TrialView, select, summarize, wilson_interval
from agent_evaluation.outcomes import INFRA_CAUSES, VERDICTS, TrialOutcome

PASS = TrialOutcome(verdict="pass", cause="completed")
FAIL = TrialOutcome(verdict="fail", cause="completed", detail="failed: tests")
INFRA = TrialOutcome(verdict="infra", cause="rate_limited")
UNDECIDED = TrialOutcome(verdict="undecided", cause="completed", detail="flaky: tests")
UNJUDGED = TrialOutcome(verdict="unjudged", cause="completed")

JUDGED = [
    TrialView(id="a-1", candidate="a", outcome=PASS, position=0, checks_passed=2, checks_total=2,
              tokens=900, cost_usd=0.30, duration_ms=9_000),
    TrialView(id="b-1", candidate="b", outcome=PASS, position=1, checks_passed=2, checks_total=2,
              tokens=500, cost_usd=None, duration_ms=5_000),
    TrialView(id="c-1", candidate="c", outcome=PASS, position=2, checks_passed=2, checks_total=2,
              tokens=None, cost_usd=0.10, duration_ms=7_000),
    TrialView(id="d-1", candidate="d", outcome=FAIL, position=3, checks_passed=1, checks_total=2,
              tokens=10, cost_usd=0.01, duration_ms=100),
    TrialView(id="e-1", candidate="e", outcome=INFRA, position=4, tokens=1, cost_usd=0.0, duration_ms=10),
    TrialView(id="f-1", candidate="f", outcome=UNDECIDED, position=5, checks_total=2, cost_usd=0.0),
    TrialView(id="g-1", candidate="g", outcome=UNJUDGED, position=6, tokens=1, cost_usd=0.0, duration_ms=1),
]  # fmt: skip


@pytest.mark.parametrize(
    ("strategy", "ranking"),
    [
        ("pick-first", ("a-1", "b-1", "c-1")),
        ("token-efficient", ("b-1", "a-1", "c-1")),
        ("elaborate", ("a-1", "b-1", "c-1")),
        ("cheapest", ("c-1", "a-1", "b-1")),
        ("fastest", ("b-1", "c-1", "a-1")),
        ("checks-first", ("c-1", "a-1", "b-1")),
        ("tests-then-judge", ("c-1", "a-1", "b-1")),
        ("llm-judge", ("c-1", "a-1", "b-1")),
    ],
)
def test_only_passed_trials_are_ranked(strategy: str, ranking: tuple[str, ...]) -> None:
    scores = {"c-1": 0.75, "a-1": 0.5, "b-1": 0.25, "d-1": 1.0, "e-1": 1.0, "g-1": 1.0}
    found = select(strategy, JUDGED, scores=scores)
    assert found.ranking == ranking
    assert found.winner == ranking[0]
    assert found.excluded == {
        "d-1": "fail: completed (failed: tests)",
        "e-1": "infra: rate_limited",
        "f-1": "undecided: flaky: tests",
        "g-1": "unjudged: it has no checks",
    }


def test_transparent_selects_the_only_trial_and_nothing_among_several() -> None:
    assert select("transparent", JUDGED[:1]).winner == "a-1"
    found = select("transparent", JUDGED[:2])
    assert (found.winner, found.note) == (None, "transparent selects nothing among several trials")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nobody_wins_if_nobody_passes(strategy: str) -> None:
    found = select(strategy, JUDGED[3:])
    assert (found.winner, found.ranking, found.note) == (None, (), "no trial passed its checks")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_nobody_wins_if_every_trial_is_infra_or_there_is_none(strategy: str) -> None:
    assert select(strategy, [JUDGED[4]]).winner is None
    assert select(strategy, []).note == "there are no trials"


@pytest.mark.parametrize("strategy", sorted(set(STRATEGIES) - {"transparent"}))
def test_without_checks_only_strategies_that_need_none_select(strategy: str) -> None:
    trials = [
        TrialView(id="b-1", candidate="b", outcome=UNJUDGED, position=1, tokens=2, cost_usd=0.2, duration_ms=2),
        TrialView(id="a-1", candidate="a", outcome=UNJUDGED, position=0, tokens=2, cost_usd=0.2, duration_ms=2),
        TrialView(
            id="c-1", candidate="c", outcome=TrialOutcome(verdict="unjudged", cause="crashed"), position=2, tokens=1
        ),
    ]
    found = select(strategy, trials, scores={"a-1": 0.5, "b-1": 0.5, "c-1": 1})
    assert found.winner == (None if STRATEGIES[strategy].needs_checks else "a-1")
    assert "c-1" in found.excluded
    if found.winner and strategy != "pick-first":
        assert found.ties == (("a-1", "b-1"),)
        assert "tie of a-1, b-1: the earlier in the plan wins" in found.note


def test_unknown_values_are_stated_and_never_win() -> None:
    unknown = [
        TrialView(id=f"{name}-1", candidate=name, outcome=PASS, position=number) for number, name in enumerate("ab")
    ]
    found = select("cheapest", unknown)
    assert (found.winner, found.note) == (None, "cost unknown for every trial that could win")
    assert found.reasons == {"a-1": "cost unknown", "b-1": "cost unknown"}
    free = TrialView(id="c-1", candidate="c", outcome=PASS, position=9, cost_usd=0.0)
    assert select("cheapest", [*unknown, free]).ranking == ("c-1", "a-1", "b-1")


def test_elaborate_ranks_unknown_tokens_last() -> None:
    assert select("elaborate", JUDGED[:3]).ranking[-1] == "c-1"


def test_judge_that_compared_nothing_leaves_a_tie_of_the_passed_trials() -> None:
    found = select("tests-then-judge", JUDGED)
    assert (found.winner, found.ties) == ("a-1", (("a-1", "b-1", "c-1"),))
    assert select("llm-judge", JUDGED).winner is None


def test_mistakes_of_callers_are_errors() -> None:
    with pytest.raises(ValueError, match="no strategy is named 'best'; known: transparent, pick-first"):
        select("best", JUDGED)
    with pytest.raises(ValueError, match="same id"):
        select("cheapest", [JUDGED[0], JUDGED[0]])


def test_summary_has_the_pass_rate_with_its_interval_and_medians() -> None:
    trials = [
        TrialView(id="a-1", candidate="a", outcome=PASS, cost_usd=0.1, tokens=100, duration_ms=10),
        TrialView(id="a-2", candidate="a", outcome=FAIL, cost_usd=0.3, tokens=None, duration_ms=30),
        TrialView(id="a-3", candidate="a", outcome=PASS, cost_usd=None, tokens=300, duration_ms=20),
        TrialView(id="a-4", candidate="a", outcome=INFRA, cost_usd=9.0),
        TrialView(id="b-1", candidate="b", outcome=INFRA),
        TrialView(id="c-1", candidate="c", outcome=PASS),
    ]
    c, a, b = summarize(trials)
    assert (a.candidate, a.trials, a.scored, a.passed, a.unknown_costs) == ("a", 4, 3, 2, 1)
    assert a.pass_rate == pytest.approx(2 / 3)
    assert a.interval == pytest.approx((0.2077, 0.9385), abs=1e-4)
    assert (a.median_cost_usd, a.median_tokens, a.median_duration_ms) == (pytest.approx(0.2), 200, 20)
    assert (b.candidate, b.pass_rate, b.interval, b.median_cost_usd) == ("b", None, None, None)
    assert (c.candidate, c.pass_rate) == ("c", 1.0)


def test_wilson_interval_is_that_of_the_literature() -> None:
    assert wilson_interval(0, 10) == pytest.approx((0, 0.2775), abs=1e-4)
    assert wilson_interval(10, 10) == pytest.approx((0.7225, 1), abs=1e-4)
    assert wilson_interval(5, 10) == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert wilson_interval(0, 0) == (0, 1)


@st.composite
def views(draw: st.DrawFn) -> list[TrialView]:
    outcomes = st.builds(
        lambda verdict: TrialOutcome(verdict=verdict, cause=INFRA_CAUSES[0] if verdict == "infra" else "completed"),
        st.sampled_from(VERDICTS),
    )
    number = st.none() | st.integers(0, 3)
    return [
        TrialView(
            id=f"{place}",
            candidate=draw(st.sampled_from("abc")),
            outcome=draw(outcomes),
            position=draw(st.integers(0, 3)),
            checks_passed=draw(st.integers(0, 2)),
            checks_total=2,
            tokens=draw(number),
            cost_usd=draw(number),
            duration_ms=draw(number),
        )
        for place in range(draw(st.integers(0, 6)))
    ]


@given(trials=views(), strategy=st.sampled_from(sorted(STRATEGIES)), data=st.data())
def test_order_of_the_input_never_matters_and_the_excluded_never_win(
    trials: list[TrialView], strategy: str, data: st.DataObject
) -> None:
    scores = {trial.id: data.draw(st.sampled_from([0.0, 0.5, 1.0])) for trial in trials if data.draw(st.booleans())}
    found = select(strategy, trials, scores=scores)
    shuffled = data.draw(st.permutations(trials))
    assert select(strategy, shuffled, scores=scores) == found
    assert summarize(shuffled) == summarize(trials)
    assert set(found.ranking).isdisjoint(found.excluded)
    assert {*found.ranking, *found.excluded} == {trial.id for trial in trials}
    assert set(found.reasons) == set(found.ranking)
    passed = {trial.id for trial in trials if trial.outcome.verdict == "pass"}
    assert found.winner is None or found.winner in passed
    assert found.winner is None or found.winner == found.ranking[0]
