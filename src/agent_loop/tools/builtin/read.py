"""`read_file`: part of a text file, or a picture. Source: zidane, "Tool ergonomics"; phi-core, "File System"."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from agent_loop.errors import ToolError
from agent_loop.messages import Shown, Text
from agent_loop.tools.builtin.file_arguments import parsed, schema_of
from agent_loop.tools.builtin.file_context import behavior_of, in_thread, workspace_of
from agent_loop.tools.builtin.read_images import MAX_IMAGE_BYTES, image_of, mime_type_of
from agent_loop.tools.builtin.read_marks import is_repeated, mark_of, note_read
from agent_loop.tools.builtin.read_pages import is_binary, page_of, rendered
from agent_loop.tools.effects import FileRead
from agent_loop.tools.tool import ToolContext, ToolResult
from agent_loop.workspace import FileContent

LIMIT = 2000
MAX_BYTES = 256 * 1024


class ReadArguments(msgspec.Struct, frozen=True):
    """What `read_file` takes."""

    path: Annotated[str, Meta(description="The file, relative to the workspace.")]
    offset: Annotated[int, Meta(ge=1, description="Number of the first line to show, from 1.")] = 1
    limit: Annotated[int, Meta(ge=0, description="How many lines to show; 0: all of them.")] = LIMIT
    max_bytes: Annotated[int, Meta(ge=0, description="How many bytes of text to show at most; 0: no limit.")] = (
        MAX_BYTES
    )


class ReadTool:
    """Shows files."""

    name = "read_file"
    label = "Read file"
    kind = "read"
    risk = "low"
    description = (
        f"Read a text file, or a picture (PNG, JPEG, GIF, WebP). Shows {LIMIT} lines, or {MAX_BYTES // 1024} KiB, from "
        "line `offset` on; what is left is told at the end. Lines may begin with their number and a tab: these are "
        "no part of the file. Use glob or ls to find files and grep to search in them."
    )
    parameters = schema_of(ReadArguments)

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Raises `WorkspaceError` for what is no readable file, `ToolError` for an offset behind its end."""
        asked = parsed(ReadArguments, arguments)
        return await in_thread(lambda: _read(asked, context))


def _read(asked: ReadArguments, context: ToolContext) -> ToolResult:
    content, behavior = workspace_of(context).read_file(asked.path), behavior_of(context)
    mark = mark_of(content, asked.offset, asked.limit, asked.max_bytes)
    if behavior.dedup_reads and is_repeated(context.state, content.name, mark):
        return _result(content, Text(_unchanged(content.name)), unchanged=True)
    shown = _shown(content, asked, numbered=behavior.read_line_numbers)
    note_read(context.state, content.name, mark)
    return _result(content, shown)


def _result(content: FileContent, shown: Shown, *, unchanged: bool = False) -> ToolResult:
    details = {"path": content.name, "bytes": len(content.data), "unchanged": unchanged}
    return ToolResult((shown,), details=details, effects=(FileRead(content.name),))


def _shown(content: FileContent, asked: ReadArguments, *, numbered: bool) -> Shown:
    mime_type = mime_type_of(content.data)
    if mime_type is not None:
        return _picture(content, mime_type)
    if is_binary(content.data):
        return Text(f"[{content.name} is a binary file of {len(content.data):,} bytes; its content is not shown]")
    page = page_of(content.data.decode("utf-8", "replace"), asked.offset, asked.limit, asked.max_bytes)
    return Text(rendered(page, numbered=numbered))


def _picture(content: FileContent, mime_type: str) -> Shown:
    if len(content.data) > MAX_IMAGE_BYTES:
        raise ToolError(
            f"{content.name} is a picture of {len(content.data):,} bytes; at most {MAX_IMAGE_BYTES:,} can be shown"
        )
    return image_of(content.data, mime_type)


def _unchanged(name: str) -> str:
    return f"[{name} is unchanged since you last read it with these arguments; what you saw then still holds]"
