"""What the exit code of `amux` says. Source: run API, section 8.

Three choices that the source leaves open: a turn limit that was reached is 16, like a budget (a limit that the caller
set); a queue that takes no more runs is 14, like a rate limit (try later); a reader that goes away
(`amux ... | head -1`) is 141, as for any program that SIGPIPE ends.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent_mux.errors import AnyCode

if TYPE_CHECKING:
    from agent_mux.assembler import ExitReason


OK = 0
GENERAL = 1
USAGE = 2
ABORTED = 13
BROKEN_PIPE = 141

MEANINGS: Mapping[int, str] = {
    OK: "ok",
    GENERAL: "the agent failed or was cut off, or another error",
    USAGE: "usage: bad options or input",
    3: "agent not found",
    4: "agent not installed",
    5: "not authenticated",
    6: "the agent cannot do that",
    7: "configuration",
    8: "session",
    9: "profile",
    10: "plugin",
    11: "timeout",
    12: "the agent crashed or was killed",
    ABORTED: "aborted or interrupted",
    14: "rate limited, or too many runs wait",
    15: "context exceeded",
    16: "a limit was reached: budget or turns",
    BROKEN_PIPE: "nobody reads the output any more",
}

_BY_CODE: Mapping[AnyCode, int] = {
    "VALIDATION_ERROR": USAGE,
    "AGENT_NOT_FOUND": 3,
    "AGENT_NOT_INSTALLED": 4,
    "AUTH_ERROR": 5,
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
}


def for_error(code: AnyCode) -> int:
    """For an error that kept the command from doing its work."""
    return _BY_CODE.get(code, GENERAL)


def for_run(reason: "ExitReason", code: AnyCode | None) -> int:
    """For a run that ended. One that `failed` is told apart by its error; an error of the model's API is general."""
    if reason in _BY_REASON:
        return _BY_REASON[reason]
    return GENERAL if code is None or code == "AGENT_CRASH" else for_error(code)
