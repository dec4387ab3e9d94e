"""The lines that state the facts of a comparison."""

from types import SimpleNamespace
from typing import Any

from agent_mux.cli.compare_progress import progress_lines
from agent_mux.cli.layout import indented_rows
from agent_mux.compare.ledger import Begun, Calibrated
from agent_mux.compare.records import CheckResult


def test_second_run_of_the_checks_on_the_start_is_marked() -> None:
    results = [(CheckResult(name="tests", status="fail"),) for _ in range(2)]
    run: Any = SimpleNamespace(comparison=SimpleNamespace(calibration=tuple(results)))
    assert [progress_lines(Calibrated(at=0, checks=one), run) for one in results] == [
        ["checks on the untouched start: tests fail"],
        ["checks on the untouched start, again: tests fail"],
    ]


def test_long_line_is_broken_between_words_and_indented() -> None:
    assert indented_rows("a-1: fail: completed (failed: pytest)", 20) == ["a-1: fail: completed", "  (failed: pytest)"]
    assert indented_rows("short", 20) == ["short"]


def test_earlier_start_of_a_resumed_comparison_states_the_planned_trials() -> None:
    trials = [SimpleNamespace(outcome=None), SimpleNamespace(outcome="pass")]
    run: Any = SimpleNamespace(id="01", comparison=SimpleNamespace(trials=trials))
    assert progress_lines(Begun(at=0), run) == ["comparison 01 started: 2 trials to run"]
    assert progress_lines(Begun(at=0, is_resumed=True), run) == ["comparison 01 resumed: 1 of 2 trials left"]
