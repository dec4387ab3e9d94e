"""Results of checks on the untouched start: what flips there decides nothing."""

from agent_evaluation.outcomes import CheckStatus
from agent_mux.compare.checks.flakiness import (
    calibration_notes,
    can_distinguish,
    flaky_checks,
    flaky_tests,
    with_flakiness,
)
from agent_mux.compare.records import CheckResult, TestCaseResult


def check(name: str, status: CheckStatus, **tests: CheckStatus) -> CheckResult:
    results = tuple(TestCaseResult(name=test, status=verdict) for test, verdict in tests.items())
    return CheckResult(name=name, status=status, tests=results)


def test_check_that_flips_is_flaky() -> None:
    rounds = [[check("a", "fail"), check("b", "pass")], [check("a", "pass"), check("b", "pass")]]
    assert flaky_checks(rounds) == {"a"}
    assert [one.is_flaky for one in with_flakiness(rounds[0], rounds)] == [True, False]


def test_failure_and_timeout_are_the_same_verdict() -> None:
    assert flaky_checks([[check("a", "fail")], [check("a", "timeout")]]) == frozenset()
    assert flaky_checks([[check("a", "fail")], [check("a", "error")]]) == {"a"}


def test_test_that_flips_makes_its_check_flaky_although_the_check_fails_in_both_rounds() -> None:
    rounds = [[check("a", "fail", bug="fail", odd="fail")], [check("a", "fail", bug="fail", odd="pass")]]
    assert flaky_tests(rounds) == {"a": {"odd"}}
    assert flaky_checks(rounds) == {"a"}


def test_test_that_is_missing_in_one_round_flips() -> None:
    rounds = [[check("a", "pass", one="pass", odd="pass")], [check("a", "pass", one="pass")]]
    assert flaky_tests(rounds) == {"a": {"odd"}}


def test_stable_tests_decide_a_check_that_has_flaky_ones() -> None:
    rounds = [[check("a", "fail", bug="fail", odd="fail")], [check("a", "fail", bug="fail", odd="pass")]]
    results = {
        "the bug remains": check("a", "fail", bug="fail", odd="pass"),
        "only the flaky test fails": check("a", "fail", bug="pass", odd="fail"),
        "all pass": check("a", "pass", bug="pass", odd="pass"),
        "no report": check("a", "fail"),
    }
    found = {name: with_flakiness([result], rounds)[0].is_flaky for name, result in results.items()}
    assert found == {
        "the bug remains": False,
        "only the flaky test fails": True,
        "all pass": False,
        "no report": True,
    }


def test_checks_that_pass_on_the_start_cannot_show_a_fix() -> None:
    assert not can_distinguish([[check("a", "pass")], [check("a", "pass")]])
    assert can_distinguish([[check("a", "pass"), check("b", "fail")]])
    assert calibration_notes([[check("a", "pass")]]) == (
        "all checks pass on the untouched start: they cannot show whether an agent fixed anything",
    )
    assert calibration_notes([[check("a", "pass"), check("b", "fail")]]) == (
        "these checks pass on the untouched start and can only show damage: 'a'",
    )


def test_notes_name_flaky_tests_and_checks_that_could_not_run() -> None:
    rounds = [
        [check("a", "fail", odd="fail"), check("b", "error")],
        [check("a", "pass", odd="pass"), check("b", "error")],
    ]
    assert calibration_notes(rounds) == (
        "the check 'a' is flaky: it had different results on the untouched start (tests: odd)",
        "the check 'b' could not run on the untouched start",
    )
