"""The tool `grep`, which searches files for a regular expression.

It runs ripgrep if that is on PATH, and otherwise `grep_worker`, which produces the same output.
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import anyio
import msgspec
from msgspec import Meta

from agent_loop.errors import ToolError, WorkspaceError
from agent_loop.tools.builtin.file_call import (
    encode_text,
    parse_arguments,
    replace_surrogates,
    schema_of,
    workspace_of,
)
from agent_loop.tools.builtin.grep_process import (
    MAX_SEARCHED_BYTES,
    FileMatches,
    GrepQuery,
    MatchReader,
    find_ripgrep,
    search_files,
    start_ripgrep,
    start_ripgrep_on_input,
    start_worker,
    worker_request,
)
from agent_loop.tools.tool import ToolContext, ToolResult, result_of
from agent_loop.workspace import DirectoryEntry, Glob, IgnoreFiles, Workspace, glob_below
from agent_loop.workspace.entries import printable

HEAD_LIMIT = 250
MAX_HEAD_LIMIT = 10_000
TIMEOUT = 60.0
"""Seconds for one search."""
OutputMode = Literal["content", "files", "count"]


class GrepArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of the tool `grep`."""

    pattern: Annotated[str, Meta(min_length=1, max_length=10_000, description="A regular expression, for one line.")]
    path: Annotated[str, Meta(description="The file or directory to search, relative to the workspace.")] = "."
    glob: Annotated[str | None, Meta(description="Search only matching files, for example *.py or src/**/*.ts.")] = None
    output_mode: Annotated[
        OutputMode,
        Meta(description="content: path:line number:line. files: paths. count: path:number of lines that match."),
    ] = "content"
    ignore_case: bool = False
    head_limit: Annotated[int, Meta(ge=1, le=MAX_HEAD_LIMIT, description="Maximum number of lines.")] = HEAD_LIMIT
    offset: Annotated[int, Meta(ge=0, description="Number of lines to skip.")] = 0


@dataclass(frozen=True, slots=True)
class GrepTool:
    """The tool `grep`.

    `program` returns the path of ripgrep, None to use the worker. `timeout` is the limit of one search in seconds.
    """

    program: Callable[[], str | None] = find_ripgrep
    timeout: float = TIMEOUT
    name: str = "grep"
    label: str = "Search files"
    kind: str = "read"
    risk: str = "low"
    description: str = (
        "Search files for a regular expression, line by line. Files ignored by .gitignore, binary files and files over "
        f"{MAX_SEARCHED_BYTES // 1024 // 1024} MiB are not searched. Returns {HEAD_LIMIT} lines; continue with offset."
    )
    parameters: dict[str, Any] = field(default_factory=lambda: schema_of(GrepArguments))

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Search files. Raises `ToolError` for an invalid regular expression and for a search that takes too long."""
        parsed, workspace = parse_arguments(GrepArguments, arguments), workspace_of(context)
        encode_text(parsed.pattern, "pattern")
        if "\0" in parsed.pattern:
            raise ToolError("the pattern contains a NUL character; files with NUL characters are not searched")
        output = _GrepOutput(parsed)
        with anyio.move_on_after(self.timeout) as scope:
            await self._search(parsed, workspace, output)
        if scope.cancelled_caught:
            raise ToolError(f"the search took longer than {self.timeout:g} seconds; use a narrower path")
        return output.result()

    async def _search(self, arguments: GrepArguments, workspace: Workspace, output: "_GrepOutput") -> None:
        start = workspace.stat(arguments.path)
        if start is None:
            raise WorkspaceError(f"{arguments.path!r} does not exist; look for it with glob or ls")
        selection = _FileSelection.of(arguments, workspace, start)
        reader = MatchReader(output.needed, selection.includes)
        query, program = GrepQuery(arguments.pattern, arguments.path, arguments.ignore_case), self.program()
        with ExitStack() as stack:
            if program is None:
                process, stdin = start_worker(), worker_request(query, workspace)
            elif start.kind == "directory":
                directory, location = stack.enter_context(workspace.open_directory(arguments.path))
                process, stdin = start_ripgrep(program, query, directory, location.path), b""
            else:
                stdin = workspace.read_bytes(arguments.path, MAX_SEARCHED_BYTES)
                process = start_ripgrep_on_input(program, query)
            await search_files(process, stdin, reader, lambda found: output.add(selection.name_of(found), found))


@dataclass(frozen=True, slots=True)
class _FileSelection:
    """The files that a search includes, and their names in the output."""

    start: DirectoryEntry
    ignored: IgnoreFiles
    glob: Glob | None

    @classmethod
    def of(cls, arguments: GrepArguments, workspace: Workspace, start: DirectoryEntry) -> "_FileSelection":
        with workspace.open_directory(arguments.path if start.kind == "directory" else ".") as (_, location):
            root = location.root.path
        glob = None if arguments.glob is None else glob_below(workspace.resolve(arguments.path), arguments.glob)
        return cls(start, IgnoreFiles(workspace, root), glob)

    def includes(self, name: str) -> bool:
        if self.start.kind != "directory":
            return True
        below = tuple(name.split("/"))
        depth = len(self.start.parts)
        matches_glob = self.glob is None or self.glob.matches(below)
        return matches_glob and not self.ignored.hides((*self.start.parts, *below), below=depth)

    def name_of(self, found: FileMatches) -> str:
        if self.start.kind != "directory":
            return self.start.name
        return printable(found.name if self.start.name == "." else f"{self.start.name}/{found.name}")


@dataclass(slots=True)
class _GrepOutput:
    """The lines of the result, up to the number that is needed."""

    arguments: GrepArguments
    lines: list[str] = field(default_factory=list)

    @property
    def needed(self) -> int:
        """The number of lines to collect: one more than is shown, to detect that there are more."""
        return self.arguments.offset + self.arguments.head_limit + 1

    def add(self, name: str, found: FileMatches) -> bool:
        """Add the lines of one file. Return whether more lines are needed."""
        match self.arguments.output_mode:
            case "content":
                self.lines += [f"{name}:{line.number}:{replace_surrogates(line.text)}" for line in found.lines]
            case "files":
                self.lines.append(name)
            case "count":
                self.lines.append(f"{name}:{found.count}")
        return len(self.lines) < self.needed

    def result(self) -> ToolResult:
        end = self.arguments.offset + self.arguments.head_limit
        lines = self.lines[self.arguments.offset : end]
        if not lines:
            more = f" after the first {self.arguments.offset} lines" if self.arguments.offset else ""
            return result_of(f"No match for {self.arguments.pattern!r} in {self.arguments.path!r}{more}.")
        if len(self.lines) > end:
            lines += ["", f"[more lines follow; continue with offset={end}]"]
        return result_of("\n".join(lines))
