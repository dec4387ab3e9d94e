"""The outcome of a trial: one attempt of an agent at a task, judged by checks.

    verdict     meaning                                                             counts for the score
    pass        every check passed                                                  yes
    fail        a check failed; the cause states how the agent's run ended          yes
    infra       the attempt ended for a reason outside of the agent: network, ...   no; it may be repeated
    undecided   only checks failed or decided that also flip without a change       no
    unjudged    there are no checks                                                 no

The checks decide, whatever the agent reports: a run that crashed after its fix passes, and a run that completed
without one fails. The exit reason is reported with the verdict and never replaces it.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

import msgspec

TrialVerdict = Literal["pass", "fail", "infra", "undecided", "unjudged"]
VERDICTS: tuple[TrialVerdict, ...] = get_args(TrialVerdict)

TrialCause = Literal[
    "completed",
    "no_change",
    "denied",
    "length",
    "filtered",
    "timeout",
    "budget",
    "truncated",
    "failed",
    "crashed",
    "spawn",
    "network",
    "auth",
    "rate_limited",
    "lost",
    "aborted",
    "internal",
]
"""How the run of the trial ended, in one word. From `spawn` on, the causes of `infra`."""
INFRA_CAUSES: tuple[TrialCause, ...] = ("spawn", "network", "auth", "rate_limited", "lost", "aborted", "internal")

CheckStatus = Literal["pass", "fail", "timeout", "error"]
"""`error`: the check itself could not run, so that it is no evidence about the agent."""

_INFRA_BY_CODE: Mapping[str, TrialCause] = {
    "AGENT_NOT_FOUND": "spawn",
    "AGENT_NOT_INSTALLED": "spawn",
    "SPAWN_ERROR": "spawn",
    "PTY_NOT_AVAILABLE": "spawn",
    "NETWORK_ERROR": "network",
    "AUTH_ERROR": "auth",
    "RATE_LIMITED": "rate_limited",
    "RUN_LOST": "lost",
    "CAPABILITY_ERROR": "internal",
    "VALIDATION_ERROR": "internal",
    "CONFIG_ERROR": "internal",
    "INTERNAL": "internal",
    "LIMIT_EXCEEDED": "internal",
    "UNAVAILABLE": "internal",
}
"""Error codes of a run after which its attempt is excluded from the score."""
_INFRA_BY_REASON: Mapping[str, TrialCause] = {"aborted": "aborted", "interrupted": "aborted", "lost": "lost"}
_CAUSES_BY_REASON: Mapping[str, TrialCause] = {
    "timeout": "timeout",
    "inactivity": "timeout",
    "turn_limit": "budget",
    "budget": "budget",
    "truncated": "truncated",
    "failed": "failed",
    "crashed": "crashed",
    "killed": "crashed",
}


class RunEnd(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the end of an agent's run, in the words of agent-mux."""

    exit_reason: str
    error_code: str | None = None
    stop_reason: str | None = None
    """Why the last answer of the model ended: `end`, `length`, `filtered`, ..."""
    has_denials: bool = False
    has_changes: bool = True
    """Whether the workspace differs from its start."""


class JudgedCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The status of one check of a trial."""

    name: str
    status: CheckStatus
    is_flaky: bool = False
    """Whether the check also flips without a change, so that it decides nothing."""


class TrialOutcome(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The verdict on a trial with its cause."""

    verdict: TrialVerdict
    cause: TrialCause
    exit_reason: str = ""
    """Exit reason of the agent's run."""
    detail: str = ""
    """One sentence: the error of the run, or the checks that decided."""

    @property
    def is_scored(self) -> bool:
        """Whether the trial counts for the score of its candidate."""
        return self.verdict in {"pass", "fail"}


def cause_of(end: RunEnd) -> TrialCause:
    """Return how a run ended, in one word."""
    infra = _INFRA_BY_CODE.get(end.error_code or "") or _INFRA_BY_REASON.get(end.exit_reason)
    if infra is not None and end.exit_reason not in {"timeout", "inactivity", "turn_limit", "budget", "completed"}:
        return infra
    if end.stop_reason == "filtered" or end.error_code == "CONTENT_FILTERED":
        return "filtered"
    if end.exit_reason in _CAUSES_BY_REASON:
        return _CAUSES_BY_REASON[end.exit_reason]
    if end.stop_reason == "length":
        return "length"
    if end.has_changes:
        return "completed"
    return "denied" if end.has_denials else "no_change"


def judge(end: RunEnd, checks: Sequence[JudgedCheck], detail: str = "") -> TrialOutcome:
    """Return the outcome of a trial, from the end of its run and the results of its checks.

    Args:
        end: How the agent's run ended.
        checks: The results of all checks; empty if the task has none, or if none ran because of an infra cause.
        detail: One sentence about the run, used where no check failed.
    """
    cause = cause_of(end)
    verdict, decided = _verdict(cause, checks)
    return TrialOutcome(verdict=verdict, cause=cause, exit_reason=end.exit_reason, detail=decided or detail)


def _verdict(cause: TrialCause, checks: Sequence[JudgedCheck]) -> tuple[TrialVerdict, str]:
    if cause in INFRA_CAUSES:
        return "infra", ""
    if not checks:
        return "unjudged", ""
    broken = [check.name for check in checks if check.status == "error"]
    firm = [check for check in checks if not check.is_flaky and check.status != "error"]
    failed = [check.name for check in firm if check.status != "pass"]
    if failed:
        return "fail", f"failed: {', '.join(failed)}"
    if broken:
        return "infra", f"could not run: {', '.join(broken)}"
    flaky = [check.name for check in checks if check.is_flaky]
    return ("undecided", f"flaky: {', '.join(flaky)}") if flaky else ("pass", "")
