"""`ls`: what is in a directory. Source: hooks seed, section 6.1."""

import json
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from agent_loop.messages import Text
from agent_loop.tools.builtin.file_arguments import parsed, schema_of
from agent_loop.tools.builtin.file_context import in_thread, workspace_of
from agent_loop.tools.tool import ToolContext, ToolResult
from agent_loop.workspace import DirectoryEntry
from agent_loop.workspace.entries import printable

MAX_ENTRIES = 1000


class ListArguments(msgspec.Struct, frozen=True):
    """What `ls` takes."""

    path: Annotated[str, Meta(description="The directory, relative to the workspace.")] = "."


class ListTool:
    """Shows directories."""

    name = "ls"
    label = "List directory"
    kind = "read"
    risk = "low"
    description = (
        "List a directory: a JSON array of {name, type, size}, by name. type is file, directory, symlink or other; "
        "size is in bytes. Not recursive: use glob for that."
    )
    parameters = schema_of(ListArguments)

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Raises `WorkspaceError` for what is no directory."""
        asked = parsed(ListArguments, arguments)
        entries = await in_thread(lambda: workspace_of(context).list(asked.path))
        listed = json.dumps([_described(entry) for entry in entries[:MAX_ENTRIES]], ensure_ascii=False)
        more = f"[{MAX_ENTRIES} of {len(entries)} entries; find the others with glob]"
        blocks = (Text(listed),) if len(entries) <= MAX_ENTRIES else (Text(listed), Text(more))
        return ToolResult(blocks, details={"entries": len(entries)})


def _described(entry: DirectoryEntry) -> dict[str, str | int]:
    return {"name": printable(entry.parts[-1]), "type": entry.kind, "size": entry.size}
