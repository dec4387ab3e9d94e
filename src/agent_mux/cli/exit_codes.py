"""The exit codes of `amux`. See docs/spec/run-api.md, section 8.

Three choices go beyond the specification: a reached turn limit is 16, like a budget (both are limits set by the
caller); a full queue is 14, like a rate limit (retry later); a reader that closes standard output (`amux ... | head
-1`) is 141, as for any program that SIGPIPE ends.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent_mux.errors import AnyCode

if TYPE_CHECKING:
    from agent_mux.assembler import ExitReason


OK = 0
GENERAL = 1
USAGE = 2
NOT_MEASURED = 2  # `amux compare`: nothing could be measured
ABORTED = 13
CONDITION_MET = 17
NOT_FOUND = 20
BROKEN_PIPE = 141

MEANINGS: Mapping[int, str] = {
    OK: "ok",
    GENERAL: "agent failed or was cut off, or other error",
    USAGE: "usage: invalid options or input",
    3: "agent not found",
    4: "agent not installed",
    5: "not authenticated",
    6: "capability not supported by the agent",
    7: "configuration",
    8: "session",
    9: "profile",
    10: "plugin",
    11: "timeout",
    12: "agent crashed or was killed",
    ABORTED: "aborted or interrupted",
    14: "rate limited, or queue full",
    15: "context exceeded",
    16: "limit reached: budget or turns",
    CONDITION_MET: "condition of --fail-on is met",
    18: "run lost: its server was killed or cannot be reached",
    19: "network: the model's provider cannot be reached",
    NOT_FOUND: "no such run, comparison, worktree or token",
    BROKEN_PIPE: "reader of the output is gone",
}

_BY_CODE: Mapping[AnyCode, int] = {
    "VALIDATION_ERROR": USAGE,
    "AGENT_NOT_FOUND": 3,
    "AGENT_NOT_INSTALLED": 4,
    "AUTH_ERROR": 5,
    "UNAUTHENTICATED": 5,
    "CAPABILITY_ERROR": 6,
    "CONFIG_ERROR": 7,
    "CONFIG_LOCK_ERROR": 7,
    "SESSION_NOT_FOUND": 8,
    "PROFILE_NOT_FOUND": 9,
    "PLUGIN_ERROR": 10,
    "TIMEOUT": 11,
    "INACTIVITY_TIMEOUT": 11,
    "AGENT_CRASH": 12,
    "SPAWN_ERROR": 12,
    "ABORTED": ABORTED,
    "RATE_LIMITED": 14,
    "LIMIT_EXCEEDED": 14,
    "CONTEXT_EXCEEDED": 15,
    "BUDGET_EXCEEDED": 16,
    "TURN_LIMIT": 16,
    "RUN_LOST": 18,
    "NETWORK_ERROR": 19,
    "RUN_NOT_FOUND": NOT_FOUND,
    "NOT_FOUND": NOT_FOUND,
}

_BY_REASON: "Mapping[ExitReason, int]" = {
    "completed": OK,
    "truncated": GENERAL,
    "aborted": ABORTED,
    "interrupted": ABORTED,
    "timeout": 11,
    "inactivity": 11,
    "turn_limit": 16,
    "budget": 16,
    "crashed": 12,
    "killed": 12,
    "lost": 18,
}


def for_error(code: AnyCode) -> int:
    """Return the exit code for an error that prevented the command from completing."""
    return _BY_CODE.get(code, GENERAL)


def for_run(reason: "ExitReason", code: AnyCode | None) -> int:
    """Return the exit code for a finished run.

    A `failed` run is classified by its error; an error of the model's API is general.
    """
    if reason in _BY_REASON:
        return _BY_REASON[reason]
    return GENERAL if code is None or code == "AGENT_CRASH" else for_error(code)
