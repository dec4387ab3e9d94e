"""Run the checks of a trial in a checkout. Blocking, and bounded by the time limits of the checks."""

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from agent_mux._util.sanitize import one_line, sanitize
from agent_mux.compare.checks.commands import run_command
from agent_mux.compare.checks.context import CheckedTrial
from agent_mux.compare.checks.definitions import CheckDefinition, CommandCheck, FileCheck, PythonCheck, SchemaCheck
from agent_mux.compare.checks.isolated import run_file, run_python, run_schema
from agent_mux.compare.checks.programs import check_environment
from agent_mux.compare.records import CheckResult, TestCaseResult
from agent_mux.errors import AgentMuxError
from agent_mux.redaction import Redactor, secret_values

MAX_DETAIL = 300  # characters
MAX_TESTS = 1000  # of a report that are kept: the first ones, and as many that failed


def run_checks(  # noqa: PLR0913  # most have a default
    definitions: Sequence[CheckDefinition],
    checkout: Path,
    environ: Mapping[str, str],
    *,
    result: Mapping[str, Any] | None = None,
    changed: Collection[str] = (),
    temporary: Path | None = None,
    is_wanted: Callable[[], bool] = lambda: True,
) -> tuple[CheckResult, ...]:
    """Run checks one after the other.

    Args:
        definitions: The checks, as `read_checks` returns them.
        checkout: The working directory of the task, in a checkout that only these checks use: they may write into it.
        environ: The complete environment of the caller. Nothing is added of what the agent had.
        result: The result of the run (`RunResult.to_dict()`), for schemas and functions.
        changed: Paths that the trial changed, relative to `checkout`; none for the untouched start.
        temporary: Existing directory for the temporary directories of the checks; default: that of the system.
        is_wanted: Polled while checks run; the current one is ended once this returns False.

    Returns:
        The results in the order of the definitions. Secrets of the environment are hidden in output, details and names
        and messages of tests, and so are control sequences. Of a long report, `MAX_TESTS` tests are kept.

    Raises:
        AgentMuxError: ABORTED once `is_wanted` returns False.
    """
    trial = CheckedTrial(
        checkout=Path(os.path.realpath(checkout)), result=result, changed=tuple(sorted(changed)), is_wanted=is_wanted
    )
    redactor = Redactor(secret_values(environ))
    results = []
    for check in definitions:
        if not is_wanted():
            raise AgentMuxError("ABORTED", f"the check {check.name!r} was not started: its result is no longer wanted")
        began = time.monotonic()
        with check_environment(environ, temporary) as own:
            found = _run(check, trial, own)
        results.append(
            msgspec.structs.replace(
                found,
                duration_ms=round((time.monotonic() - began) * 1000),
                output=redactor.mask_text(sanitize(found.output)),
                tests=_kept_tests(found.tests, redactor),
                detail=_line(found.detail, redactor),
            )
        )
    return tuple(results)


def _kept_tests(tests: Sequence[TestCaseResult], redactor: Redactor) -> tuple[TestCaseResult, ...]:
    """Return the tests that are stored, sorted by name: names and messages come from files that an agent can write."""
    # The first ones are the same in each round on the untouched start, so that a missing test is one that flips.
    failed = [test for test in tests if test.status != "pass"]
    kept = {test.name: test for test in (*tests[:MAX_TESTS], *failed[:MAX_TESTS])}
    return tuple(
        TestCaseResult(name=_line(name, redactor), status=test.status, message=_line(test.message, redactor))
        for name, test in sorted(kept.items())
    )


def _line(text: str, redactor: Redactor) -> str:
    # Sanitized first: a secret may have control characters in it.
    return one_line(redactor.mask_text(sanitize(text)), MAX_DETAIL)


def _run(check: CheckDefinition, trial: CheckedTrial, environ: Mapping[str, str]) -> CheckResult:
    match check:
        case CommandCheck():
            return run_command(check, trial, environ)
        case FileCheck():
            return run_file(check, trial, environ)
        case SchemaCheck():
            return run_schema(check, trial, environ)
        case PythonCheck():
            return run_python(check, trial, environ)
