"""`write_file`: a whole file. Source: zidane, "Tool ergonomics defaults"; hooks seed, section 6.1."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from agent_loop.errors import ToolError, WorkspaceError
from agent_loop.tools.builtin.file_arguments import parsed, schema_of
from agent_loop.tools.builtin.file_context import in_thread, workspace_of
from agent_loop.tools.builtin.file_text import encoded
from agent_loop.tools.builtin.read_marks import note_change
from agent_loop.tools.effects import FileWritten
from agent_loop.tools.tool import ToolContext, ToolResult, result_of
from agent_loop.workspace import Workspace

MAX_PRIOR_BYTES = 1024 * 1024
"""Of what a file held before, for hooks."""


class WriteArguments(msgspec.Struct, frozen=True):
    """What `write_file` takes."""

    path: Annotated[str, Meta(description="The file, relative to the workspace. Directories on the way are made.")]
    content: Annotated[str, Meta(description="Everything the file is to hold.")]


class WriteTool:
    """Writes files."""

    name = "write_file"
    label = "Write file"
    kind = "edit"
    risk = "medium"
    description = (
        "Write a whole file: a new one, or over what was there. Says whether the file was created or updated, or held "
        "this content already. To change part of a file, use edit."
    )
    parameters = schema_of(WriteArguments)

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Raises `WorkspaceError` where it cannot be written."""
        asked = parsed(WriteArguments, arguments)
        return await in_thread(lambda: _write(asked, context))

    def prior_content(self, arguments: Mapping[str, Any], context: ToolContext) -> str | None:
        """What the file holds that a call would write, for `tool:before`. None: no file, or none that can be shown.

        Blocks for the length of one read: call it in a thread.
        """
        try:
            asked = parsed(WriteArguments, arguments)
            data = workspace_of(context).read_bytes(asked.path, MAX_PRIOR_BYTES)
        except ToolError:
            return None
        return data.decode("utf-8", "replace")


def _write(asked: WriteArguments, context: ToolContext) -> ToolResult:
    workspace, data = workspace_of(context), encoded(asked.content, "content")
    with workspace.changing:
        if _holds(workspace, asked.path, data):
            name = workspace.relative(asked.path)
            note_change(context.state, name, data)
            return result_of(f"No change needed: {name} holds this content already.")
        written = workspace.write_bytes(asked.path, data)
        note_change(context.state, written.name, data)
    verb = "Created" if written.created else "Updated"
    effect = FileWritten(written.name, len(data), written.created)
    return msgspec.structs.replace(result_of(f"{verb} {written.name} ({len(data):,} bytes)."), effects=(effect,))


def _holds(workspace: Workspace, path: str, data: bytes) -> bool:
    """The file is there, and like this. Whatever cannot be read is left to the write to tell."""
    try:
        known = workspace.stat(path)
        return known is not None and known.size == len(data) and workspace.read_bytes(path, len(data)) == data
    except WorkspaceError:
        return False
