"""The tools `edit`, one replacement in a file, and `multi_edit`, several replacements in one file.

`multi_edit` applies all edits or none. If a user decided on them one by one, each edit succeeds or fails on its own.
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from agent_loop.errors import InvalidArgumentsError, ToolError
from agent_loop.messages import Text
from agent_loop.tools.builtin.edit_outcomes import OUTCOMES, EditDecision, EditOutcome, EditReport, report_text
from agent_loop.tools.builtin.file_call import encode_text, parse_arguments, run_in_thread, schema_of
from agent_loop.tools.builtin.file_changes import change_file
from agent_loop.tools.builtin.replacements import Edit, apply_edit
from agent_loop.tools.tool import ToolContext, ToolResult


class EditArguments(Edit, frozen=True, kw_only=True):
    """The arguments of `edit`."""

    path: Annotated[str, Meta(description="The file, relative to the workspace.")]


class MultiEditArguments(msgspec.Struct, frozen=True, rename={"outcomes": OUTCOMES}):
    """The arguments of `multi_edit`."""

    path: Annotated[str, Meta(description="The file, relative to the workspace.")]
    edits: Annotated[
        list[Edit], Meta(min_length=1, description="Applied in this order, each to the result of the edits before it.")
    ]
    outcomes: list[EditDecision] | None = None
    """The decisions of a user, one for each edit. Not part of the schema for models."""


class EditTool:
    """The tool `edit`."""

    name = "edit"
    label = "Edit file"
    kind = "edit"
    risk = "medium"
    description = (
        "Replace old_string by new_string in a file. old_string must match the file exactly and occur once; add "
        "surrounding lines until it is unique, or set replace_all. Line numbers of read_file may be left in."
    )
    parameters = schema_of(EditArguments)

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Apply an edit. Raises `ToolError` and leaves the file unchanged if it does not apply."""
        parsed = parse_arguments(EditArguments, arguments)
        _check_encoding(parsed)
        return await run_in_thread(lambda: _edit(parsed, context))


class MultiEditTool:
    """The tool `multi_edit`."""

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


def _check_encoding(edit: Edit) -> None:
    """Raise `ToolError` for text that cannot be encoded as UTF-8."""
    encode_text(edit.old_string, "old_string")
    encode_text(edit.new_string, "new_string")


def _edit(arguments: EditArguments, context: ToolContext) -> ToolResult:
    def change(name: str, text: str) -> tuple[str, int]:
        try:
            replacement = apply_edit(text, arguments)
        except ToolError as error:
            raise ToolError(f"{name} was not changed: {error}") from error
        return replacement.text, replacement.count

    name, count, effects = change_file(context, arguments.path, change)
    places = "1 place" if count == 1 else f"{count} places"
    return ToolResult((Text(f"Edited {name}: replaced {places}."),), details={"replaced": count}, effects=effects)


def _apply_all(arguments: MultiEditArguments, context: ToolContext) -> ToolResult:
    def change(name: str, text: str) -> tuple[str, int]:
        total = 0
        for number, edit in enumerate(arguments.edits, 1):
            try:
                replacement = apply_edit(text, edit)
            except ToolError as error:
                raise ToolError(f"{name} was not changed: edit {number} of {len(arguments.edits)}: {error}") from error
            text, total = replacement.text, total + replacement.count
        return text, total

    name, total, effects = change_file(context, arguments.path, change)
    places = "1 place" if total == 1 else f"{total} places"
    text = f"Edited {name}: applied {len(arguments.edits)} edits, replaced {places}."
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
