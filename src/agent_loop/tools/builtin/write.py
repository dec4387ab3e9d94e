"""The tool `write_file`, which writes a whole file."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from agent_loop.errors import ToolError, WorkspaceError
from agent_loop.tools.builtin.file_call import encode_text, parse_arguments, run_in_thread, schema_of, workspace_of
from agent_loop.tools.builtin.file_changes import mark_changed
from agent_loop.tools.effects import FileWritten
from agent_loop.tools.tool import ToolContext, ToolResult, result_of
from agent_loop.workspace import Workspace

MAX_PRIOR_BYTES = 1024 * 1024
"""The largest previous content that `prior_content` returns."""


class WriteArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of the tool `write_file`."""

    path: Annotated[str, Meta(description="The file, relative to the workspace. Missing directories are created.")]
    content: Annotated[str, Meta(description="The complete content of the file.")]


class WriteTool:
    """The tool `write_file`, which creates or replaces a file."""

    name = "write_file"
    label = "Write file"
    kind = "edit"
    risk = "medium"
    description = (
        "Write a whole file: create it, or replace its content. The result states whether the file was created, "
        "updated, or already had this content. To change part of a file, use edit."
    )
    parameters = schema_of(WriteArguments)

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Write a file. Raises `WorkspaceError` if it cannot be written."""
        parsed = parse_arguments(WriteArguments, arguments)
        return await run_in_thread(lambda: _write(parsed, context))

    def prior_content(self, arguments: Mapping[str, Any], context: ToolContext) -> str | None:
        """Return the current content of the file that a call would write, for the hook `tool:before`.

        Returns None if there is no file, or it is too large or not readable. Blocks while it reads the file.
        """
        try:
            parsed = parse_arguments(WriteArguments, arguments)
            data = workspace_of(context).read_bytes(parsed.path, MAX_PRIOR_BYTES)
        except ToolError:
            return None
        return data.decode("utf-8", "replace")


def _write(arguments: WriteArguments, context: ToolContext) -> ToolResult:
    workspace, data = workspace_of(context), encode_text(arguments.content, "content")
    with workspace.changing:
        if _has_content(workspace, arguments.path, data):
            name = workspace.relative(arguments.path)
            mark_changed(context, name, data)
            return result_of(f"No change needed: {name} already has this content.")
        written = workspace.write_bytes(arguments.path, data)
        mark_changed(context, written.name, data)
    verb = "Created" if written.created else "Updated"
    effect = FileWritten(written.name, len(data), written.created)
    return msgspec.structs.replace(result_of(f"{verb} {written.name} ({len(data):,} bytes)."), effects=(effect,))


def _has_content(workspace: Workspace, path: str, data: bytes) -> bool:
    """Whether the file has exactly this content. False if it cannot be read: the write then reports the error."""
    try:
        known = workspace.stat(path)
        return known is not None and known.size == len(data) and workspace.read_bytes(path, len(data)) == data
    except WorkspaceError:
        return False
