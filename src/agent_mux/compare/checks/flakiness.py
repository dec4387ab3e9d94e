"""What the results of checks on the untouched start show: which checks flip, and which can show a fix at all.

Before the first trial, the checks run on the start in several rounds. A check or a test with different results without
a change is flaky: what only it reports decides nothing.
"""

from collections.abc import Mapping, Sequence

import msgspec

from agent_mux._util.listing import list_names
from agent_mux.compare.records import CheckResult

Rounds = Sequence[Sequence[CheckResult]]
_MAX_NAMED = 3  # tests that are named in a note


def flaky_checks(rounds: Rounds) -> frozenset[str]:
    """Return the names of checks that flip between rounds, or that have a test that flips."""
    return frozenset(_flipping(rounds) | flaky_tests(rounds).keys())


def flaky_tests(rounds: Rounds) -> Mapping[str, frozenset[str]]:
    """Return the names of tests that flip, by check; a test that is missing in one round flips, too.

    A round in which the check has no report at all is not compared.
    """
    reports: dict[str, list[Mapping[str, bool]]] = {}
    for result in (result for one in rounds for result in one):
        if result.tests:
            reports.setdefault(result.name, []).append({test.name: test.status == "pass" for test in result.tests})
    found: dict[str, frozenset[str]] = {}
    for name, verdicts in reports.items():
        tests = {test for verdict in verdicts for test in verdict}
        if flips := frozenset(test for test in tests if len({verdict.get(test) for verdict in verdicts}) > 1):
            found[name] = flips
    return found


def with_flakiness(results: Sequence[CheckResult], rounds: Rounds) -> tuple[CheckResult, ...]:
    """Return the results of a trial with `is_flaky` set on those that decide nothing.

    Where single tests are known, they are more precise than the check: a failure of a stable test is not a flaky
    result, and a check whose tests all pass passes.
    """
    checks, tests = flaky_checks(rounds), flaky_tests(rounds)
    return tuple(
        msgspec.structs.replace(result, is_flaky=_is_flaky(result, tests.get(result.name, frozenset())))
        if result.name in checks
        else result
        for result in results
    )


def can_distinguish(rounds: Rounds) -> bool:
    """Return whether some check does not pass on the untouched start: only such a check can show a fix."""
    return bool({result.name for one in rounds for result in one} - _passing(rounds))


def calibration_notes(rounds: Rounds) -> tuple[str, ...]:
    """Return sentences for a person about what the checks showed on the untouched start."""
    passing, tests = _passing(rounds), flaky_tests(rounds)
    notes = []
    if passing and not can_distinguish(rounds):
        notes.append("all checks pass on the untouched start: they cannot show whether an agent fixed anything")
    elif passing:
        names = ", ".join(repr(name) for name in sorted(passing))
        notes.append(f"these checks pass on the untouched start and can only show damage: {names}")
    for name in sorted(flaky_checks(rounds)):
        flips = sorted(tests.get(name, ()))
        which = f" (tests: {list_names(flips, _MAX_NAMED)})" if flips else ""
        notes.append(f"the check {name!r} is flaky: it had different results on the untouched start{which}")
    broken = sorted({result.name for one in rounds for result in one if result.status == "error"})
    notes += [f"the check {name!r} could not run on the untouched start" for name in broken]
    return tuple(notes)


def _is_flaky(result: CheckResult, tests: frozenset[str]) -> bool:
    if not result.tests or not tests:
        return True
    failed = {test.name for test in result.tests if test.status != "pass"}
    return result.status != "pass" and failed <= tests


def _flipping(rounds: Rounds) -> set[str]:
    verdicts: dict[str, set[str]] = {}
    for result in (result for one in rounds for result in one):
        status = "fail" if result.status == "timeout" else result.status
        verdicts.setdefault(result.name, set()).add(status)
    return {name for name, found in verdicts.items() if len(found) > 1} | {
        result.name for one in rounds for result in one if result.is_flaky
    }


def _passing(rounds: Rounds) -> set[str]:
    """Return the checks that pass in every round."""
    results = [result for one in rounds for result in one]
    return {result.name for result in results} - {result.name for result in results if result.status != "pass"}
