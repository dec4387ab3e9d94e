"""The tools `ls`, which lists a directory, and `glob`, which finds files by a pattern of their path."""

import json
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from agent_loop.messages import Text
from agent_loop.tools.builtin.file_call import (
    check_cancelled,
    parse_arguments,
    run_in_thread,
    schema_of,
    workspace_of,
)
from agent_loop.tools.tool import ToolContext, ToolResult, result_of
from agent_loop.workspace import DirectoryEntry, glob_below
from agent_loop.workspace.entries import printable

MAX_ENTRIES = 1000
"""The most entries that `ls` lists."""
LIMIT = 100
"""The most files that `glob` lists by default."""


class ListArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of the tool `ls`."""

    path: Annotated[str, Meta(description="The directory, relative to the workspace.")] = "."


class GlobArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of the tool `glob`."""

    pattern: Annotated[
        str,
        Meta(
            description="For example **/*.py, src/**/*.{ts,tsx} or Makefile, relative to `path`. Without a slash it "
            "matches file names in any directory."
        ),
    ]
    path: Annotated[str, Meta(description="The directory to search, relative to the workspace.")] = "."
    limit: Annotated[int, Meta(ge=1, description="Maximum number of files.")] = LIMIT


class ListTool:
    """The tool `ls`, which lists one directory."""

    name = "ls"
    label = "List directory"
    kind = "read"
    risk = "low"
    description = (
        "List a directory: a JSON array of {name, type, size}, sorted by name. type is file, directory, symlink or "
        "other; size is in bytes. Not recursive: use glob for that."
    )
    parameters = schema_of(ListArguments)

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """List a directory. Raises `WorkspaceError` if it is not a directory."""
        parsed = parse_arguments(ListArguments, arguments)
        entries = await run_in_thread(lambda: workspace_of(context).list(parsed.path))
        listed = json.dumps([_to_json(entry) for entry in entries[:MAX_ENTRIES]], ensure_ascii=False)
        more = f"[{MAX_ENTRIES} of {len(entries)} entries; find the others with glob]"
        blocks = (Text(listed),) if len(entries) <= MAX_ENTRIES else (Text(listed), Text(more))
        return ToolResult(blocks, details={"entries": len(entries)})


class GlobTool:
    """The tool `glob`, which finds files by path pattern."""

    name = "glob"
    label = "Find files"
    kind = "read"
    risk = "low"
    description = (
        "Find files by a pattern of their path: *, ?, [...], {one,two}, and ** for any number of directories. Files "
        "ignored by .gitignore are omitted. One path per line, the most recently changed first."
    )
    parameters = schema_of(GlobArguments)

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Find files. Raises `ToolError` if the pattern is too large, `WorkspaceError` if `path` is not a directory."""
        parsed = parse_arguments(GlobArguments, arguments)
        found = await run_in_thread(lambda: _find(parsed, context))
        if not found:
            return result_of(f"No file matches {parsed.pattern!r} in {parsed.path!r}.{_advice(parsed.pattern)}")
        lines = [entry.name for entry in found[: parsed.limit]]
        if len(found) > parsed.limit:
            lines += ["", f"[{parsed.limit} of {len(found)} files; use a narrower pattern or a larger limit]"]
        return msgspec.structs.replace(result_of("\n".join(lines)), details={"files": len(found)})


def _to_json(entry: DirectoryEntry) -> dict[str, str | int]:
    return {"name": printable(entry.parts[-1]), "type": entry.kind, "size": entry.size}


def _advice(pattern: str) -> str:
    """Return advice for a pattern that cannot match, because it is not relative to the directory to search."""
    is_relative = not pattern.startswith(("/", "~")) and ".." not in pattern.split("/")
    return "" if is_relative else " Patterns are relative to `path`: give the directory as `path`."


def _find(arguments: GlobArguments, context: ToolContext) -> list[DirectoryEntry]:
    """Return the matching files, the most recently modified first, and sorted by name at the same time."""
    workspace = workspace_of(context)
    pattern = glob_below(workspace.resolve(arguments.path), arguments.pattern)
    start = workspace.stat(arguments.path)
    depth = len(start.parts) if start else 0
    entries = workspace.walk(arguments.path, check_cancelled)
    return sorted(
        (entry for entry in entries if pattern.matches(entry.parts[depth:])),
        key=lambda entry: (-entry.modified_ns, entry.name),
    )
