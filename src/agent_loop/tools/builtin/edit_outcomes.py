"""Edits that a person decides on one by one: what was decided, and the report of what came of it.

Whoever decides puts an `_outcomes` list into the arguments of `multi_edit`, one for each edit. The report is text that
the model reads, and that can be read back from a transcript. Source: zidane, `injectOutcomesIntoInput`,
`parseEditOutcomesFromResult`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

OUTCOMES = "_outcomes"
OutcomeKind = Literal["applied", "denied", "failed"]


class EditDecision(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was decided about one edit."""

    approved: bool
    reason: str = ""


class EditOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """What came of one edit."""

    kind: OutcomeKind
    reason: str = ""


class EditReport(msgspec.Struct, frozen=True):
    """What came of all edits of a call."""

    path: str
    outcomes: tuple[EditOutcome, ...]

    def count(self, kind: OutcomeKind) -> int:
        """How many edits went that way."""
        return sum(outcome.kind == kind for outcome in self.outcomes)


def inject_outcomes(arguments: Mapping[str, Any], decisions: Sequence[EditDecision]) -> dict[str, Any]:
    """The arguments of a `multi_edit` call together with what was decided."""
    return {**arguments, OUTCOMES: [msgspec.to_builtins(decision) for decision in decisions]}


def report_text(report: EditReport) -> str:
    """`Edited <path>: N/M applied · K denied · F failed`, and a line for each edit."""
    counts = [f"{report.count('applied')}/{len(report.outcomes)} applied"]
    counts += [f"{report.count(kind)} {kind}" for kind in _OTHERS if report.count(kind)]
    lines = [f"{number}. {_line(outcome)}" for number, outcome in enumerate(report.outcomes, 1)]
    return "\n".join([f"Edited {_escaped(report.path)}: {' · '.join(counts)}", *lines])


def parse_edit_outcomes(text: str) -> EditReport | None:
    """The report that a text is. None: it is none. The inverse of `report_text`, but for spaces around reasons."""
    head, *lines = text.split("\n")
    match = _HEAD.fullmatch(head)
    found = [_LINE.fullmatch(line) for line in lines]
    if match is None or len(found) != int(match[2]) or not all(found):
        return None
    outcomes = tuple(msgspec.convert({"kind": m[1], "reason": _plain(m[2] or "")}, EditOutcome) for m in found if m)
    return EditReport(_plain(match[1]), outcomes)


_OTHERS: tuple[OutcomeKind, ...] = ("denied", "failed")
_HEAD = re.compile(r"Edited (.*): \d{1,9}/(\d{1,9}) applied(?: · \d{1,9} (?:denied|failed))*")
_LINE = re.compile(r"\d{1,9}\. (applied|denied|failed)(?:: (.*))?")


def _line(outcome: EditOutcome) -> str:
    reason = outcome.reason.strip()
    return f"{outcome.kind}: {_escaped(reason)}" if reason else outcome.kind


def _escaped(text: str) -> str:
    """On one line, and so that it can be undone."""
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _plain(text: str) -> str:
    return re.sub(r"\\([\\n])", lambda match: "\n" if match[1] == "n" else "\\", text)
