"""`edit`: replace a string in a file. Source: zidane, "Tool ergonomics defaults"; hooks seed, `edit_file`."""

from typing import Annotated, Any

from msgspec import Meta

from agent_loop.errors import ToolError
from agent_loop.messages import Text
from agent_loop.tools.builtin.edit_text import Edit, applied
from agent_loop.tools.builtin.file_arguments import parsed, schema_of
from agent_loop.tools.builtin.file_change import change_file
from agent_loop.tools.builtin.file_context import in_thread
from agent_loop.tools.builtin.file_text import encoded
from agent_loop.tools.tool import ToolContext, ToolResult


class EditArguments(Edit, frozen=True, kw_only=True):
    """What `edit` takes."""

    path: Annotated[str, Meta(description="The file, relative to the workspace.")]


class EditTool:
    """Changes part of a file."""

    name = "edit"
    label = "Edit file"
    kind = "edit"
    risk = "medium"
    description = (
        "Replace old_string by new_string in a file. old_string must be exactly as in the file and occur once; add "
        "lines around it until it does, or set replace_all. Line numbers that read_file shows may be left in."
    )
    parameters = schema_of(EditArguments)

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Raises `ToolError` where it does not apply; the file is as it was then."""
        asked = parsed(EditArguments, arguments)
        check_edit(asked)
        return await in_thread(lambda: _edit(asked, context))


def check_edit(edit: Edit) -> None:
    """Raises `ToolError` for text that no file can hold."""
    encoded(edit.old_string, "old_string")
    encoded(edit.new_string, "new_string")


def _edit(asked: EditArguments, context: ToolContext) -> ToolResult:
    def change(name: str, text: str) -> tuple[str, int]:
        try:
            done = applied(text, asked)
        except ToolError as error:
            raise ToolError(f"{name} was not changed: {error}") from error
        return done.text, done.count

    name, count, effects = change_file(context, asked.path, change)
    places = "1 place" if count == 1 else f"{count} places"
    return ToolResult((Text(f"Edited {name}: replaced {places}."),), details={"replaced": count}, effects=effects)
