"""The report of a comparison: numbers of trials, sums of known figures, and the gate."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.compare.demo import demo_comparison

from agent_evaluation.intervals import wilson_interval
from agent_evaluation.outcomes import INFRA_CAUSES, TrialOutcome
from agent_mux.api.comparisons import ComparisonReport
from agent_mux.compare.gates import GateRule
from agent_mux.compare.records import (
    CandidateRecord,
    CheckResult,
    Comparison,
    ComparisonPlan,
    RunUsage,
    Trial,
    TrialAttempt,
)
from agent_mux.compare.report import report_of

OUTCOMES = {
    "pass": TrialOutcome(verdict="pass", cause="completed"),
    "fail": TrialOutcome(verdict="fail", cause="no_change"),
    "infra": TrialOutcome(verdict="infra", cause="rate_limited", detail="429"),
    "undecided": TrialOutcome(verdict="undecided", cause="completed", detail="flaky: tests"),
    "unjudged": TrialOutcome(verdict="unjudged", cause="completed"),
    "pending": None,
}


def comparison_of(outcomes: dict[str, list[str]], kinds: dict[str, str] | None = None, **more) -> Comparison:
    trials = tuple(
        Trial(id=f"{name}-{number}", candidate=name, number=number, outcome=OUTCOMES[outcome])
        for name, found in outcomes.items()
        for number, outcome in enumerate(found, start=1)
    )
    candidates = tuple(
        CandidateRecord(name=name, kind=(kinds or {}).get(name, "agent"), agent=name, trials=len(found))
        for name, found in outcomes.items()
    )
    plan = ComparisonPlan(
        id="01", created_at=0, version="1", prompt="Fix it", candidates=candidates, checks=(), seed=1,
        order=tuple(trial.id for trial in trials),
    )  # fmt: skip
    return Comparison(plan=plan, start=None, trials=trials, **{"status": "ended", **more})


def attempt(number: int, **usage) -> TrialAttempt:
    return TrialAttempt(number=number, run_id=str(number), started_at=0, ended_at=1000, usage=RunUsage(**usage))


@given(st.dictionaries(st.sampled_from("abcd"), st.lists(st.sampled_from(sorted(OUTCOMES)), max_size=8)))
def test_planned_trials_are_judged_excluded_or_pending(outcomes: dict[str, list[str]]) -> None:
    report = report_of(comparison_of(outcomes))
    for each in [report, *report.candidates]:
        assert each.planned == each.judged + each.excluded + each.pending
    for each in report.candidates:
        found = outcomes[each.name]
        assert each.planned == len(found)
        assert each.passes == found.count("pass")
        assert each.judged == found.count("pass") + found.count("fail")
        assert each.pending == found.count("pending")
        assert sum(each.excluded_by_cause.values()) == each.excluded


def test_trials_that_the_ledger_lacks_are_pending() -> None:
    comparison = comparison_of({"a": ["pass"]})
    candidate = msgspec.structs.replace(comparison.plan.candidates[0], trials=3)
    plan = msgspec.structs.replace(comparison.plan, candidates=(candidate,))
    summary = report_of(msgspec.structs.replace(comparison, plan=plan)).candidates[0]
    assert (summary.planned, summary.judged, summary.pending) == (3, 1, 2)


def test_excluded_trials_do_not_change_the_pass_rate() -> None:
    alone = report_of(comparison_of({"a": ["pass", "fail"]})).candidates[0]
    more = report_of(comparison_of({"a": ["pass", "fail", "infra", "infra", "undecided", "unjudged"]})).candidates[0]
    assert alone.pass_rate == more.pass_rate == 0.5
    assert alone.interval == more.interval
    assert more.excluded_by_cause == {"rate_limited": 2, "undecided": 1, "unjudged": 1}


# Computed by hand with the formula of Wilson (1927), z = 1.959964.
@pytest.mark.parametrize(
    ("passes", "total", "low", "high"),
    [(0, 1, 0, 0.7935), (1, 1, 0.2065, 1), (1, 2, 0.0945, 0.9055), (2, 3, 0.2077, 0.9385), (5, 10, 0.2366, 0.7634),
     (0, 0, 0, 1)],
)  # fmt: skip
def test_wilson_interval(passes: int, total: int, low: float, high: float) -> None:
    assert wilson_interval(passes, total) == pytest.approx((low, high), abs=1e-4)


def test_impossible_numbers_of_passes_are_refused() -> None:
    with pytest.raises(ValueError, match="3 passes of 2"):
        wilson_interval(3, 2)


def test_unknown_figures_are_counted_and_never_added() -> None:
    comparison = comparison_of({"a": ["pass"]})
    trial = msgspec.structs.replace(
        comparison.trials[0],
        attempts=(
            attempt(1, cost_usd=0.10, cost_source="native", input_tokens=100),
            attempt(2, cost_usd=0.02, cost_source="computed"),
            attempt(3),
            TrialAttempt(number=4, run_id="4", started_at=0),
        ),
    )
    report = report_of(msgspec.structs.replace(comparison, trials=(trial,)))
    summary = report.candidates[0]
    assert (summary.cost.native_usd, summary.cost.computed_usd, summary.cost.unknown) == (0.10, 0.02, 2)
    assert (summary.input_tokens.value, summary.input_tokens.unknown) == (100, 3)
    assert (summary.output_tokens.value, summary.output_tokens.unknown) == (None, 4)
    assert (summary.tool_calls.value, summary.tool_calls.unknown) == (0, 1)
    assert report.trials[0].cost_usd is None


def test_reported_cost_is_kept_as_it_is() -> None:
    comparison = comparison_of({"a": ["pass"]})
    trial = msgspec.structs.replace(comparison.trials[0], attempts=(attempt(1, cost_usd=0.1, cost_source="native"),))
    summary = report_of(msgspec.structs.replace(comparison, trials=(trial,)))
    assert summary.trials[0].cost_usd == 0.1
    assert summary.candidates[0].cost.native_usd == 0.1


def test_candidates_without_runs_have_no_cost() -> None:
    cost = report_of(comparison_of({"a": ["fail"]}, {"a": "null"})).candidates[0].cost
    assert (cost.native_usd, cost.computed_usd, cost.unknown) == (None, None, 0)


BROKEN = ((CheckResult(name="tests", status="error", detail="pytest: not found"),),)
FLIPPING = ((CheckResult(name="tests", status="pass"),), (CheckResult(name="tests", status="fail"),))


@pytest.mark.parametrize(
    ("outcomes", "kinds", "more", "rule", "code", "reason"),
    [
        ({"a": ["pass"], "b": ["fail"]}, {}, {}, {}, 0, "a passed"),
        ({"a": ["fail"], "b": ["infra"]}, {}, {}, {}, 1, "0 of 1 judged trials passed"),
        ({"a": ["pass"], "b": ["fail"]}, {}, {}, {"candidate": "b"}, 1, "0 of 1"),
        ({"a": ["pass"]}, {}, {}, {"candidate": "x"}, 2, "no candidate 'x'"),
        ({"a": ["infra", "infra"]}, {}, {}, {}, 2, "no trial was judged (2 rate_limited)"),
        ({"a": ["undecided"]}, {}, {"calibration": FLIPPING}, {}, 2, "1 undecided"),
        ({"a": ["unjudged"]}, {}, {}, {}, 2, "1 unjudged"),
        ({"a": []}, {}, {}, {}, 2, "none was planned"),
        ({"a": ["fail", "pending"]}, {}, {"status": "interrupted"}, {}, 2, "1 of 2 trials have no outcome yet"),
        ({"a": ["pass", "pending"]}, {}, {"status": "interrupted"}, {}, 0, "a passed"),
        ({"a": ["pass"]}, {}, {"calibration": BROKEN}, {}, 2, "could not run on the untouched start: tests"),
        ({"a": ["pass"], "n": ["pass"]}, {"n": "null"}, {}, {}, 2, "pass for n, which changes nothing"),
        ({"a": ["fail"], "o": ["fail"]}, {"o": "oracle"}, {}, {}, 2, "fail for o, which applies the given solution"),
        ({"a": ["fail"], "o": ["pass"]}, {"o": "oracle"}, {}, {}, 1, "0 of 1"),
        ({"a": ["pass", "fail"]}, {}, {}, {"min_pass_rate": 0.6}, 1, "60% must pass"),
        ({"a": ["pass", "pass", "fail"]}, {}, {}, {"min_pass_rate": 0.6}, 0, "a passed"),
        ({"a": ["pass", "pending"]}, {}, {}, {"min_pass_rate": 0.6}, 2, "no outcome yet"),
    ],
)  # fmt: skip
def test_gate(outcomes, kinds, more, rule, code: int, reason: str) -> None:
    gate = report_of(comparison_of(outcomes, kinds, **more), GateRule(**rule)).gate
    assert (gate.exit_code, reason in gate.reason) == (code, True), gate.reason


def test_each_excluded_trial_has_a_note_with_the_next_step() -> None:
    for cause in INFRA_CAUSES:
        comparison = comparison_of({"a": ["infra"]})
        trial = msgspec.structs.replace(comparison.trials[0], outcome=TrialOutcome(verdict="infra", cause=cause))
        notes = report_of(msgspec.structs.replace(comparison, trials=(trial,))).notes
        assert [note.kind for note in notes] == ["excluded"]
        assert cause in notes[0].text
        assert "amux compare resume 01" in notes[0].next_step


def test_checks_that_cannot_judge_are_named() -> None:
    passing = ((CheckResult(name="tests", status="pass"),),) * 2
    kinds = {
        calibration: [note.kind for note in report_of(comparison_of({"a": ["fail"]}, calibration=calibration)).notes]
        for calibration in (BROKEN, FLIPPING, passing)
    }
    assert list(kinds.values()) == [["broken_check"], ["flaky_check"], ["indistinct_checks"]]


def test_report_of_the_demo_distinguishes_six_candidates(tmp_path: Path) -> None:
    report = report_of(demo_comparison(tmp_path))
    assert [(trial.candidate, trial.verdict, trial.cause) for trial in report.trials] == [
        ("claude", "pass", "completed"),
        ("codex", "fail", "completed"),
        ("gemini", "fail", "completed"),
        ("native", "fail", "denied"),
        ("pi", "infra", "rate_limited"),
        ("opencode", "fail", "length"),
    ]
    assert (report.planned, report.judged, report.excluded, report.gate.exit_code) == (6, 5, 1, 0)
    kinds = [note.kind for note in report.notes]
    assert sorted(kinds) == ["access", "excluded", "not_isolated", "start", "survivors", "tampered"]


def test_json_form_is_read_back(tmp_path: Path) -> None:
    report = report_of(demo_comparison(tmp_path))
    encoded = msgspec.json.encode(report)
    assert msgspec.json.decode(encoded, type=ComparisonReport) == report
    plain = msgspec.json.decode(encoded)
    assert plain["candidates"][5]["cost"] == {"nativeUsd": None, "computedUsd": None, "unknown": 1}
    assert plain["trials"][5]["costUsd"] is None


def test_note_that_several_trials_have_is_reported_once() -> None:
    comparison = comparison_of({"a": ["pass", "pass"]})
    trials = tuple(msgspec.structs.replace(each, notes=("unknown model", each.id)) for each in comparison.trials)
    notes = report_of(msgspec.structs.replace(comparison, trials=trials)).notes
    assert [(note.text, note.subjects) for note in notes] == [
        ("a-1, a-2: unknown model", ["a-1", "a-2"]),
        ("a-1: a-1", ["a-1"]),
        ("a-2: a-2", ["a-2"]),
    ]


def test_candidate_without_an_agent_has_no_time() -> None:
    comparison = comparison_of({"a": ["pass"], "null": ["fail"]}, {"null": "null"})
    trials = tuple(msgspec.structs.replace(each, attempts=(attempt(1),)) for each in comparison.trials)
    report = report_of(msgspec.structs.replace(comparison, trials=trials))
    assert [each.median_duration_ms for each in report.candidates] == [1000, None]


def test_reason_why_a_comparison_could_not_be_carried_out_is_its_first_note() -> None:
    report = report_of(comparison_of({"a": ["pending"]}, status="interrupted", problem="the setup command failed"))
    assert report.notes[0].text == "could not be carried out: the setup command failed"
    assert "amux compare resume 01" in report.notes[0].next_step


def test_kept_workspace_is_named() -> None:
    comparison = comparison_of({"a": ["pass"]})
    trial = msgspec.structs.replace(comparison.trials[0], workspace="/w/one")
    (note,) = report_of(msgspec.structs.replace(comparison, trials=(trial,))).notes
    assert note.text == "a-1: its workspace is kept: /w/one"
