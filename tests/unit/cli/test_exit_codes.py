from typing import get_args

import pytest

from agent_mux.assembler import ExitReason
from agent_mux.cli import exit_codes
from agent_mux.errors import ERROR_CODES, SERVICE_CODES, AnyCode


@pytest.mark.parametrize(
    ("reason", "code", "expected"),
    [
        ("completed", None, 0),
        ("failed", "AGENT_CRASH", 1),
        ("failed", "AUTH_ERROR", 5),
        ("failed", "RATE_LIMITED", 14),
        ("failed", "CONTEXT_EXCEEDED", 15),
        ("failed", "NETWORK_ERROR", 19),
        ("failed", "SESSION_NOT_FOUND", 8),
        ("failed", None, 1),
        ("truncated", "AGENT_CRASH", 1),
        ("aborted", "ABORTED", 13),
        ("interrupted", "ABORTED", 13),
        ("timeout", "TIMEOUT", 11),
        ("inactivity", "INACTIVITY_TIMEOUT", 11),
        ("turn_limit", "TURN_LIMIT", 16),
        ("budget", "BUDGET_EXCEEDED", 16),
        ("crashed", "AGENT_CRASH", 12),
        ("crashed", "SPAWN_ERROR", 12),
        ("killed", "AGENT_CRASH", 12),
        ("lost", "RUN_LOST", 18),
    ],
)
def test_the_exit_code_reflects_the_outcome_of_the_run(reason: ExitReason, code: str | None, expected: int) -> None:
    assert exit_codes.for_run(reason, code) == expected  # type: ignore[arg-type]


def test_every_reason_and_every_error_has_a_code_that_is_explained() -> None:
    reasons = {exit_codes.for_run(reason, None) for reason in get_args(ExitReason)}
    errors = {exit_codes.for_error(code) for code in (*ERROR_CODES, *SERVICE_CODES)}
    assert reasons | errors | {exit_codes.CONDITION_MET, exit_codes.BROKEN_PIPE} == set(exit_codes.MEANINGS)
    assert 0 not in errors


@pytest.mark.parametrize(
    ("code", "expected"),
    [("SESSION_NOT_FOUND", 8), ("PROFILE_NOT_FOUND", 9), ("RUN_NOT_FOUND", 20), ("NOT_FOUND", 20)],
)
def test_what_does_not_exist_has_a_code_of_its_own(code: AnyCode, expected: int) -> None:
    assert exit_codes.for_error(code) == expected
