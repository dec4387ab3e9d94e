"""Decisions of a user on single edits of `multi_edit`, and the report of the outcome of each edit.

A client passes the decisions as the argument `_outcomes`, one for each edit. The report is the text that the model
reads; it can be parsed again from a transcript.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

OUTCOMES = "_outcomes"
OutcomeKind = Literal["applied", "denied", "failed"]
_NOT_APPLIED: tuple[OutcomeKind, ...] = ("denied", "failed")
_HEAD = re.compile(r"Edited (.*): \d{1,9}/(\d{1,9}) applied(?: · \d{1,9} (?:denied|failed))*")
_LINE = re.compile(r"\d{1,9}\. (applied|denied|failed)(?:: (.*))?")


class EditDecision(msgspec.Struct, frozen=True, omit_defaults=True):
    """The decision about one edit."""

    approved: bool
    reason: str = ""


class EditOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of one edit."""

    kind: OutcomeKind
    reason: str = ""


class EditReport(msgspec.Struct, frozen=True):
    """The outcomes of all edits of a call."""

    path: str
    outcomes: tuple[EditOutcome, ...]

    def count(self, kind: OutcomeKind) -> int:
        """Return the number of edits with this outcome."""
        return sum(outcome.kind == kind for outcome in self.outcomes)


def inject_outcomes(arguments: Mapping[str, Any], decisions: Sequence[EditDecision]) -> dict[str, Any]:
    """Return the arguments of a `multi_edit` call with the decisions added."""
    return {**arguments, OUTCOMES: [msgspec.to_builtins(decision) for decision in decisions]}


def report_text(report: EditReport) -> str:
    """Return `Edited <path>: N/M applied · K denied · F failed`, followed by a line for each edit."""
    counts = [f"{report.count('applied')}/{len(report.outcomes)} applied"]
    counts += [f"{report.count(kind)} {kind}" for kind in _NOT_APPLIED if report.count(kind)]
    lines = [f"{number}. {_outcome_line(outcome)}" for number, outcome in enumerate(report.outcomes, 1)]
    return "\n".join([f"Edited {_escape(report.path)}: {' · '.join(counts)}", *lines])


def parse_edit_outcomes(text: str) -> EditReport | None:
    """Parse the output of `report_text`; None for any other text. Spaces around reasons are lost."""
    head, *lines = text.split("\n")
    match = _HEAD.fullmatch(head)
    found = [_LINE.fullmatch(line) for line in lines]
    if match is None or len(found) != int(match[2]) or not all(found):
        return None
    outcomes = tuple(msgspec.convert({"kind": m[1], "reason": _unescape(m[2] or "")}, EditOutcome) for m in found if m)
    return EditReport(_unescape(match[1]), outcomes)


def _outcome_line(outcome: EditOutcome) -> str:
    reason = outcome.reason.strip()
    return f"{outcome.kind}: {_escape(reason)}" if reason else outcome.kind


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _unescape(text: str) -> str:
    return re.sub(r"\\([\\n])", lambda match: "\n" if match[1] == "n" else "\\", text)
