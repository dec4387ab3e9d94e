"""Run a command of a check and judge its end: the exit code, and the JUnit report that it wrote.

`error` means that the check could not run for a reason that no agent can cause: its program is not installed. What a
trial can cause is a failure: a missing report, a deleted script of the checkout. Otherwise an agent could exclude
itself from the score.
"""

import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path

import msgspec

from agent_mux._util.listing import list_names
from agent_mux.compare.checks.context import CheckedTrial
from agent_mux.compare.checks.definitions import CommandCheck
from agent_mux.compare.checks.files import read_file, reason_of
from agent_mux.compare.checks.junit import MAX_REPORT, JUnitError, JUnitReport, read_junit
from agent_mux.compare.checks.programs import BoundedRun, run_bounded
from agent_mux.compare.records import CheckResult
from agent_mux.errors import AgentMuxError

_MAX_NAMED = 3  # tests that are named in a detail


def run_command(check: CommandCheck, trial: CheckedTrial, environ: Mapping[str, str]) -> CheckResult:
    """Run the command in the checkout. Raises ABORTED, as `run_bounded`."""
    program, problem = _find_program(check.command[0], trial.checkout, environ)
    if problem is not None:
        return msgspec.structs.replace(problem, name=check.name)
    if check.junit is not None and (refusal := _remove_report(trial.checkout, check.junit)) is not None:
        return CheckResult(name=check.name, status="fail", detail=refusal)
    try:
        ended = run_bounded(
            (program, *check.command[1:]),
            cwd=trial.checkout,
            environ=environ,
            timeout=check.timeout,
            is_wanted=trial.is_wanted,
        )
    except AgentMuxError as error:
        if error.code == "ABORTED":
            raise
        is_own = _is_in_checkout(check.command[0])
        return CheckResult(name=check.name, status="fail" if is_own else "error", detail=error.message)
    found = _judge_exit(check, ended)
    return found if check.junit is None or found.status == "timeout" else _judge_report(check, found, trial.checkout)


def _find_program(word: str, checkout: Path, environ: Mapping[str, str]) -> tuple[str, CheckResult | None]:
    if _is_in_checkout(word):
        program = checkout / word
        if program.is_file() and os.access(program, os.X_OK):
            return str(program), None
        reason = "is not executable" if program.exists() else "does not exist"
        return "", CheckResult(name="", status="fail", detail=f"the program {word} {reason} in the checkout")
    # A relative directory of PATH would be looked up in our own working directory.
    path = os.pathsep.join(part for part in environ.get("PATH", os.defpath).split(os.pathsep) if part[:1] == os.sep)
    found = shutil.which(word, path=path)
    if found is None:
        detail = f"the program {word} is not installed: it is not on PATH; install it, or correct the check"
        return "", CheckResult(name="", status="error", detail=detail)
    return found, None


def _is_in_checkout(word: str) -> bool:
    return os.sep in word and not word.startswith(os.sep)


def _judge_exit(check: CommandCheck, ended: BoundedRun) -> CheckResult:
    output = ended.output.decode("utf-8", "replace")
    if ended.exit_code is None:
        detail = f"it did not end within {check.timeout:g} s"
        return CheckResult(name=check.name, status="timeout", output=output, detail=detail)
    if ended.exit_code == check.exit_code:
        return CheckResult(name=check.name, status="pass", exit_code=ended.exit_code, output=output)
    detail = exit_in_words(ended.exit_code)
    if check.exit_code:
        detail += f" instead of {check.exit_code}"
    return CheckResult(name=check.name, status="fail", exit_code=ended.exit_code, output=output, detail=detail)


def exit_in_words(code: int) -> str:
    """Return `exit code 1` or `ended by SIGKILL`."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"


def _remove_report(checkout: Path, report: str) -> str | None:
    """Remove a report that is there before the check has run. Returns why that is impossible."""
    path = checkout / report
    try:
        if os.path.realpath(path.parent) != str(path.parent):
            return f"the directory of {report} is a symbolic link in the checkout, which is not followed"
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        return f"{report} cannot be removed from the checkout: {error.strerror or error}"
    return None


def _judge_report(check: CommandCheck, found: CheckResult, checkout: Path) -> CheckResult:
    try:
        content = read_file(checkout, check.junit or "", MAX_REPORT)
        report = read_junit(content)
    except (OSError, ValueError, JUnitError) as error:
        if found.status != "pass":
            return found
        detail = f"{exit_in_words(check.exit_code)}, but the report {check.junit} cannot be used: {reason_of(error)}"
        return msgspec.structs.replace(found, status="fail", detail=detail)
    problem = _problem_of_report(report)
    if problem:
        detail = f"{found.detail}: {problem}" if found.detail else problem
        return msgspec.structs.replace(found, status="fail", tests=report.tests, detail=detail)
    return msgspec.structs.replace(found, tests=report.tests)


def _problem_of_report(report: JUnitReport) -> str:
    """Return what does not pass in a report; empty if it is fine."""
    if report.failed:
        names = list_names([test.name for test in report.failed], _MAX_NAMED)
        return f"{len(report.failed)} of {len(report.tests)} tests failed: {names}"
    if not report.tests:
        return f"all {report.skipped} tests were skipped" if report.skipped else "the report has no tests"
    return ""
