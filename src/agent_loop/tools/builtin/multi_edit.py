"""`multi_edit`: several replacements in one file, all or none; or each for itself, where a person decided on them.

Source: zidane, "Tool ergonomics defaults".
"""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from agent_loop.errors import InvalidArgumentsError, ToolError
from agent_loop.messages import Text
from agent_loop.tools.builtin.edit import check_edit
from agent_loop.tools.builtin.edit_outcomes import (
    OUTCOMES,
    EditDecision,
    EditOutcome,
    EditReport,
    report_text,
)
from agent_loop.tools.builtin.edit_text import Edit, applied
from agent_loop.tools.builtin.file_arguments import parsed, schema_of
from agent_loop.tools.builtin.file_change import change_file
from agent_loop.tools.builtin.file_context import in_thread
from agent_loop.tools.tool import ToolContext, ToolResult


class MultiEditArguments(msgspec.Struct, frozen=True, rename={"outcomes": OUTCOMES}):
    """What `multi_edit` takes."""

    path: Annotated[str, Meta(description="The file, relative to the workspace.")]
    edits: Annotated[
        list[Edit], Meta(min_length=1, description="Applied in this order; each sees what those before it made.")
    ]
    outcomes: list[EditDecision] | None = None
    """What a person decided, edit by edit; models are not told of it."""


class MultiEditTool:
    """Changes several parts of a file."""

    name = "multi_edit"
    label = "Edit file"
    kind = "edit"
    risk = "medium"
    description = (
        "Replace several strings in one file, in order. As edit, but all or nothing: the first edit that cannot be "
        "applied is told, and the file stays as it was."
    )
    parameters = schema_of(MultiEditArguments)

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Raises `ToolError` where an edit does not apply, and nobody decided on them one by one."""
        asked = parsed(MultiEditArguments, arguments)
        for edit in asked.edits:
            check_edit(edit)
        if asked.outcomes is not None and len(asked.outcomes) != len(asked.edits):
            raise InvalidArgumentsError(
                f"there are {len(asked.edits)} edits and {len(asked.outcomes)} outcomes; give one for each edit"
            )
        work = _all_or_none if asked.outcomes is None else _each_for_itself
        return await in_thread(lambda: work(asked, context))


def _all_or_none(asked: MultiEditArguments, context: ToolContext) -> ToolResult:
    def change(name: str, text: str) -> tuple[str, int]:
        total = 0
        for number, edit in enumerate(asked.edits, 1):
            try:
                done = applied(text, edit)
            except ToolError as error:
                raise ToolError(f"{name} was not changed: edit {number} of {len(asked.edits)}: {error}") from error
            text, total = done.text, total + done.count
        return text, total

    name, total, effects = change_file(context, asked.path, change)
    places = "1 place" if total == 1 else f"{total} places"
    text = f"Edited {name}: applied {len(asked.edits)} edits, replaced {places}."
    return ToolResult((Text(text),), details={"replaced": total}, effects=effects)


def _each_for_itself(asked: MultiEditArguments, context: ToolContext) -> ToolResult:
    name, outcomes, effects = change_file(context, asked.path, lambda _name, text: _decided(asked, text))
    report = EditReport(name, outcomes)
    nothing = report.count("applied") == 0 and report.count("failed") > 0
    details = {"outcomes": msgspec.to_builtins(outcomes)}
    return ToolResult((Text(report_text(report)),), is_error=nothing, details=details, effects=effects)


def _decided(asked: MultiEditArguments, text: str) -> tuple[str, tuple[EditOutcome, ...]]:
    outcomes: list[EditOutcome] = []
    for edit, decision in zip(asked.edits, asked.outcomes or (), strict=True):
        if not decision.approved:
            outcomes.append(EditOutcome("denied", decision.reason))
            continue
        try:
            text = applied(text, edit).text
            outcomes.append(EditOutcome("applied"))
        except ToolError as error:
            outcomes.append(EditOutcome("failed", str(error)))
    return text, tuple(outcomes)
