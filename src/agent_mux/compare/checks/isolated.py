"""Checks that are evaluated in a process of their own: regular expressions, schemas, functions.

Matching a regular expression on text of an agent can take unbounded time, and would block every thread of this process.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_mux._util.sanitize import to_json_bytes
from agent_mux.compare.checks.commands import exit_in_words
from agent_mux.compare.checks.context import CheckedTrial
from agent_mux.compare.checks.definitions import PYTHON_GROUP, CheckDefinition, FileCheck, PythonCheck, SchemaCheck
from agent_mux.compare.checks.files import problem_of_file, read_file, reason_of
from agent_mux.compare.checks.programs import run_bounded
from agent_mux.compare.records import CheckResult
from agent_mux.errors import AgentMuxError

_CHILD = Path(__file__).with_name("child.py")
_SOURCE = str(Path(__file__).parents[3])
"""The directory that contains our packages, for the child."""


def run_file(check: FileCheck, trial: CheckedTrial, environ: Mapping[str, str]) -> CheckResult:
    """Evaluate the assertions about a file. Raises ABORTED, as `run_bounded`."""
    problem = problem_of_file(check, trial)
    if problem or check.matches is None:
        return CheckResult(name=check.name, status="fail" if problem else "pass", detail=problem)
    text = read_file(trial.checkout, check.file).decode("utf-8", "replace")
    request = {"kind": "match", "pattern": check.matches, "text": text, "file": check.file}
    return _run_child(check, trial, environ, request)


def run_schema(check: SchemaCheck, trial: CheckedTrial, environ: Mapping[str, str]) -> CheckResult:
    """Validate the structured output or a JSON file. Raises ABORTED, as `run_bounded`."""
    what = check.file or "the structured output"
    if check.file is None:
        value = (trial.result or {}).get("structuredOutput")
        if value is None:
            return CheckResult(name=check.name, status="fail", detail="the run has no structured output")
    else:
        try:
            value = json.loads(read_file(trial.checkout, check.file))
        except (OSError, ValueError, RecursionError) as error:
            detail = f"{what} cannot be read as JSON: {reason_of(error)}"
            return CheckResult(name=check.name, status="fail", detail=detail)
    request = {"kind": "schema", "schema": check.schema, "value": value, "what": what, "source": _SOURCE}
    return _run_child(check, trial, environ, request)


def run_python(check: PythonCheck, trial: CheckedTrial, environ: Mapping[str, str]) -> CheckResult:
    """Call the function. Raises ABORTED, as `run_bounded`."""
    request = {
        "kind": "python",
        "python": check.python,
        "group": PYTHON_GROUP,
        "path": [check.directory or str(Path.cwd()), *filter(os.path.isabs, sys.path)],
        "checkout": str(trial.checkout),
        "result": trial.result,
        "changed": trial.changed,
        "arguments": check.arguments,
    }
    return _run_child(check, trial, environ, request)


def _run_child(
    check: CheckDefinition, trial: CheckedTrial, environ: Mapping[str, str], request: Mapping[str, Any]
) -> CheckResult:
    verdict = Path(environ["TMPDIR"]) / "verdict.json"
    try:
        ended = run_bounded(
            (sys.executable, "-I", str(_CHILD)),
            cwd=trial.checkout,
            environ=environ,
            timeout=check.timeout,
            stdin=to_json_bytes({**request, "verdict": str(verdict)}),
            is_wanted=trial.is_wanted,
        )
    except AgentMuxError as error:
        if error.code == "ABORTED":
            raise
        return CheckResult(name=check.name, status="error", detail=error.message)
    output = ended.output.decode("utf-8", "replace")
    if ended.exit_code is None:
        detail = f"it did not end within {check.timeout:g} s"
        return CheckResult(name=check.name, status="timeout", output=output, detail=detail)
    try:
        answer = json.loads(verdict.read_bytes())
        return CheckResult(name=check.name, status=answer["status"], output=output, detail=answer["detail"])
    except (OSError, ValueError, KeyError, TypeError):
        detail = f"its process ended without a verdict: {exit_in_words(ended.exit_code)}"
        return CheckResult(name=check.name, status="fail", output=output, detail=detail)
