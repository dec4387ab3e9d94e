"""`glob`: files by their names. Source: hooks seed, section 6.1."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from agent_loop.tools.builtin.file_arguments import parsed, schema_of
from agent_loop.tools.builtin.file_context import check_cancelled, in_thread, workspace_of
from agent_loop.tools.tool import ToolContext, ToolResult, result_of
from agent_loop.workspace import DirectoryEntry, Glob

LIMIT = 100


class GlobArguments(msgspec.Struct, frozen=True):
    """What `glob` takes."""

    pattern: Annotated[
        str,
        Meta(
            description="For example **/*.py, src/**/*.{ts,tsx} or Makefile, relative to `path`. Without a slash it is "
            "a file name, wherever the file is."
        ),
    ]
    path: Annotated[str, Meta(description="The directory to look in, relative to the workspace.")] = "."
    limit: Annotated[int, Meta(ge=1, description="How many files to tell at most.")] = LIMIT


class GlobTool:
    """Finds files."""

    name = "glob"
    label = "Find files"
    kind = "read"
    risk = "low"
    description = (
        "Find files by a pattern of their path: *, ?, [...], {one,two}, and ** for any number of directories. Files "
        "that .gitignore leaves out are not told. One path a line, those that were changed last first."
    )
    parameters = schema_of(GlobArguments)

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Raises `ToolError` for a pattern that is too large, `WorkspaceError` for what is no directory."""
        asked = parsed(GlobArguments, arguments)
        found = await in_thread(lambda: _found(asked, context))
        if not found:
            return result_of(f"No file matches {asked.pattern!r} in {asked.path!r}.")
        lines = [entry.name for entry in found[: asked.limit]]
        if len(found) > asked.limit:
            lines += ["", f"[{asked.limit} of {len(found)} files; name a narrower pattern, or a larger limit]"]
        return msgspec.structs.replace(result_of("\n".join(lines)), details={"files": len(found)})


def _found(asked: GlobArguments, context: ToolContext) -> list[DirectoryEntry]:
    """The newest first; of the same age, by name."""
    workspace, pattern = workspace_of(context), Glob(asked.pattern)
    start = workspace.stat(asked.path)
    depth = len(start.parts) if start else 0
    entries = workspace.walk(asked.path, check_cancelled)
    return sorted(
        (entry for entry in entries if pattern.matches(entry.parts[depth:])),
        key=lambda entry: (-entry.modified_ns, entry.name),
    )
