"""The tools `edit`, one replacement in a file, and `multi_edit`, several replacements in one file.

`multi_edit` applies all edits or none. If a user decided on them one by one, each edit succeeds or fails on its own: a
client passes the decisions as the argument `_outcomes`, and the result is a report of the outcome of each edit, which
can be parsed again from a transcript.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from agent_loop.errors import InvalidArgumentsError, ToolError
from agent_loop.messages import Text
from agent_loop.tools.builtin.file_call import encode_text, parse_arguments, run_in_thread, schema_of
from agent_loop.tools.builtin.file_changes import change_file
from agent_loop.tools.builtin.replacements import Edit, Replacement, apply_edit
from agent_loop.tools.tool import ToolContext, ToolResult

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


class EditArguments(Edit, frozen=True, kw_only=True):
    """The arguments of the tool `edit`."""

    path: Annotated[str, Meta(description="The file, relative to the workspace.")]


class MultiEditArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"outcomes": OUTCOMES}):
    """The arguments of the tool `multi_edit`."""

    path: Annotated[str, Meta(description="The file, relative to the workspace.")]
    edits: Annotated[
        list[Edit], Meta(min_length=1, description="Applied in this order, each to the result of the edits before it.")
    ]
    outcomes: list[EditDecision] | None = None
    """The decisions of a user, one for each edit. Not part of the schema for models."""


class EditTool:
    """The tool `edit`, which replaces one string in a file."""

    name = "edit"
    label = "Edit file"
    kind = "edit"
    risk = "medium"
    description = (
        "Replace old_string by new_string in a file. old_string must be copied exactly and occur once; add "
        "surrounding lines until it is unique, or set replace_all. Line numbers of read_file may be left in."
    )
    parameters = schema_of(EditArguments)

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Apply an edit. Raises `ToolError` and leaves the file unchanged if it does not apply."""
        parsed = parse_arguments(EditArguments, arguments)
        _check_encoding(parsed)
        return await run_in_thread(lambda: _edit(parsed, context))


class MultiEditTool:
    """The tool `multi_edit`, which applies a list of edits to one file."""

    name = "multi_edit"
    label = "Edit file"
    kind = "edit"
    risk = "medium"
    description = (
        "Replace several strings in one file, in order. As edit, but all or nothing: if an edit cannot be applied, "
        "the error names it and the file is not changed."
    )
    parameters = schema_of(MultiEditArguments)

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Apply the edits. Raises `ToolError` if one does not apply, unless a user decided on them one by one."""
        parsed = parse_arguments(MultiEditArguments, arguments)
        for edit in parsed.edits:
            _check_encoding(edit)
        if parsed.outcomes is not None and len(parsed.outcomes) != len(parsed.edits):
            raise InvalidArgumentsError(
                f"there are {len(parsed.edits)} edits and {len(parsed.outcomes)} outcomes; give one for each edit"
            )
        work = _apply_all if parsed.outcomes is None else _apply_approved
        return await run_in_thread(lambda: work(parsed, context))


# -- reports of user decisions


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


# -- calls


def _check_encoding(edit: Edit) -> None:
    """Raise `ToolError` for text that cannot be encoded as UTF-8."""
    encode_text(edit.old_string, "old_string")
    encode_text(edit.new_string, "new_string")


def _edit(arguments: EditArguments, context: ToolContext) -> ToolResult:
    def change(name: str, text: str) -> tuple[str, Replacement]:
        try:
            replacement = apply_edit(text, arguments)
        except ToolError as error:
            raise ToolError(f"{name} was not changed: {error}") from error
        return replacement.text, replacement

    name, made, effects = change_file(context, arguments.path, change)
    places = "1 place" if made.count == 1 else f"{made.count} places"
    text = f"Edited {name}: replaced {places}{_difference_note([made])}."
    return ToolResult((Text(text),), details={"replaced": made.count}, effects=effects)


def _difference_note(made: Sequence[Replacement]) -> str:
    differences = dict.fromkeys(each.difference for each in made if each.difference)
    return f" (old_string differed from the file in {'; '.join(differences)})" if differences else ""


def _apply_all(arguments: MultiEditArguments, context: ToolContext) -> ToolResult:
    def change(name: str, text: str) -> tuple[str, list[Replacement]]:
        made = []
        for number, edit in enumerate(arguments.edits, 1):
            try:
                replacement = apply_edit(text, edit)
            except ToolError as error:
                which = f"edit {number} of {len(arguments.edits)}{', in the result of those before it' * (number > 1)}"
                raise ToolError(f"{name} was not changed: {which}: {error}") from error
            text = replacement.text
            made.append(replacement)
        return text, made

    name, made, effects = change_file(context, arguments.path, change)
    total = sum(each.count for each in made)
    places = "1 place" if total == 1 else f"{total} places"
    text = f"Edited {name}: applied {len(arguments.edits)} edits, replaced {places}{_difference_note(made)}."
    return ToolResult((Text(text),), details={"replaced": total}, effects=effects)


def _apply_approved(arguments: MultiEditArguments, context: ToolContext) -> ToolResult:
    name, outcomes, effects = change_file(context, arguments.path, lambda _name, text: _apply_each(arguments, text))
    report = EditReport(name, outcomes)
    is_error = report.count("applied") == 0 and report.count("failed") > 0
    details = {"outcomes": msgspec.to_builtins(outcomes)}
    return ToolResult((Text(report_text(report)),), is_error=is_error, details=details, effects=effects)


def _apply_each(arguments: MultiEditArguments, text: str) -> tuple[str, tuple[EditOutcome, ...]]:
    """Apply the approved edits that match; return the text and the outcome of each edit."""
    outcomes: list[EditOutcome] = []
    for edit, decision in zip(arguments.edits, arguments.outcomes or (), strict=True):
        if not decision.approved:
            outcomes.append(EditOutcome("denied", decision.reason))
            continue
        try:
            text = apply_edit(text, edit).text
            outcomes.append(EditOutcome("applied"))
        except ToolError as error:
            outcomes.append(EditOutcome("failed", str(error)))
    return text, tuple(outcomes)
