"""The gate of a comparison: the exit code that a script or a pipeline acts on.

    exit code   meaning
    0           the gate passed
    1           the gate failed: the trials were judged, and not enough of them passed
    2           it could not be measured: no trial was judged, trials that could decide are missing, or the checks
                cannot judge

By default the gate passes if at least one trial of any agent passes. Candidates that do nothing (`null`) or apply a
given patch (`oracle`) never make it pass; they show whether the checks can judge at all.
"""

from collections.abc import Sequence

import msgspec

from agent_mux.api.comparisons import CandidateSummary, GateResult, GateStatus
from agent_mux.compare.notes import broken_checks
from agent_mux.compare.records import Comparison
from agent_mux.errors import FieldError, ValidationError
from agent_mux.sdk.checked import Checked

_EXIT_CODES: dict[GateStatus, int] = {"passed": 0, "failed": 1, "not_measured": 2}


class GateRule(Checked, msgspec.Struct, frozen=True, kw_only=True):
    """What must hold for the gate to pass."""

    candidate: str | None = None
    """The candidate that must pass; None: any agent."""
    min_pass_rate: float | None = None
    """Share of its judged trials that must pass, from 0 to 1; None: one passed trial is enough."""

    def check(self) -> None:
        """Raise `ValidationError` for a rate that is no share."""
        if self.min_pass_rate is not None and not 0 <= self.min_pass_rate <= 1:
            raise ValidationError([FieldError("GateRule.min_pass_rate", self.min_pass_rate, "a number from 0 to 1")])


def evaluate_gate(comparison: Comparison, candidates: Sequence[CandidateSummary], rule: GateRule) -> GateResult:
    """Return whether the rule holds for these candidates."""
    status, reason = _evaluate(comparison, candidates, rule)
    return GateResult(status=status, exit_code=_EXIT_CODES[status], reason=reason, candidate=rule.candidate)


def _evaluate(comparison: Comparison, candidates: Sequence[CandidateSummary], rule: GateRule) -> tuple[GateStatus, str]:
    asked = [each for each in candidates if each.name == rule.candidate] if rule.candidate else _agents(candidates)
    if not asked:
        return "not_measured", f"there is no candidate {rule.candidate!r}" if rule.candidate else "there is no agent"
    unusable = _why_unusable(comparison, candidates)
    if unusable is not None:
        return "not_measured", unusable
    passed = [each.name for each in asked if _holds(each, rule)]
    if passed:
        return "passed", f"{', '.join(passed)} passed"
    pending = sum(each.pending for each in asked)
    if pending:
        return "not_measured", f"{pending} of {sum(each.planned for each in asked)} trials have no outcome yet"
    judged = sum(each.judged for each in asked)
    if not judged:
        return "not_measured", f"no trial was judged ({_exclusions(asked)})"
    needed = "" if rule.min_pass_rate is None else f"; {rule.min_pass_rate:.0%} must pass"
    passes = sum(each.passes for each in asked)
    return "failed", f"{passes} of {judged} judged trials passed{needed}"


def _agents(candidates: Sequence[CandidateSummary]) -> list[CandidateSummary]:
    return [each for each in candidates if each.kind == "agent"]


def _holds(candidate: CandidateSummary, rule: GateRule) -> bool:
    if candidate.pass_rate is None:
        return False
    if rule.min_pass_rate is None:
        return candidate.passes > 0
    # Trials without an outcome could still lower the rate.
    return candidate.pass_rate >= rule.min_pass_rate and not candidate.pending


def _why_unusable(comparison: Comparison, candidates: Sequence[CandidateSummary]) -> str | None:
    """Return why the checks cannot judge the candidates; None if they can."""
    broken = broken_checks(comparison)
    if broken:
        return f"checks could not run on the untouched start: {', '.join(broken)}"
    for each in candidates:
        if each.kind == "null" and each.passes:
            return f"the checks pass for {each.name}, which changes nothing"
        if each.kind == "oracle" and each.judged and not each.passes:
            return f"the checks fail for {each.name}, which applies the given solution"
    return None


def _exclusions(candidates: Sequence[CandidateSummary]) -> str:
    causes: dict[str, int] = {}
    for each in candidates:
        for cause, number in each.excluded_by_cause.items():
            causes[cause] = causes.get(cause, 0) + number
    return ", ".join(f"{number} {cause}" for cause, number in causes.items()) or "none was planned"
