"""`grep`: lines of files by a regular expression. Source: zidane, "Tool ergonomics defaults"; hooks seed, section 6.1.

Ripgrep where it is on PATH, and otherwise a worker of ours that tells the same (`grep_worker`).
"""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import anyio
import msgspec
from msgspec import Meta

from agent_loop.errors import ToolError, WorkspaceError
from agent_loop.tools.builtin.file_arguments import parsed, schema_of
from agent_loop.tools.builtin.file_context import workspace_of
from agent_loop.tools.builtin.file_text import encoded, shown
from agent_loop.tools.builtin.grep_matches import FileMatches, MatchReader
from agent_loop.tools.builtin.grep_process import (
    MAX_SEARCHED_BYTES,
    Search,
    ripgrep,
    running_ripgrep,
    running_ripgrep_on_text,
    running_worker,
    search_files,
    worker_request,
)
from agent_loop.tools.tool import ToolContext, ToolResult, result_of
from agent_loop.workspace import DirectoryEntry, Glob, IgnoreFiles, Workspace
from agent_loop.workspace.entries import printable

HEAD_LIMIT = 250
MAX_HEAD_LIMIT = 10_000
TIMEOUT = 60.0
"""Seconds for one search."""
OutputMode = Literal["content", "files", "count"]


class GrepArguments(msgspec.Struct, frozen=True):
    """What `grep` takes."""

    pattern: Annotated[str, Meta(min_length=1, max_length=10_000, description="A regular expression, for one line.")]
    path: Annotated[str, Meta(description="The file or directory to search, relative to the workspace.")] = "."
    glob: Annotated[str | None, Meta(description="Only files that match it, for example *.py or src/**/*.ts.")] = None
    output_mode: Annotated[
        OutputMode,
        Meta(description="content: path:line number:line. files: paths. count: path:number of lines that match."),
    ] = "content"
    ignore_case: bool = False
    head_limit: Annotated[int, Meta(ge=1, le=MAX_HEAD_LIMIT, description="How many lines to tell.")] = HEAD_LIMIT
    offset: Annotated[int, Meta(ge=0, description="How many lines to pass over, to see what follows.")] = 0


@dataclass(frozen=True, slots=True)
class GrepTool:
    """Searches in files. `program`: finds ripgrep, or None for our own worker. `timeout`: seconds."""

    program: Callable[[], str | None] = ripgrep
    timeout: float = TIMEOUT
    name: str = "grep"
    label: str = "Search files"
    kind: str = "read"
    risk: str = "low"
    description: str = (
        "Search files for a regular expression, line by line. Files that .gitignore leaves out, binary files and files "
        f"over {MAX_SEARCHED_BYTES // 1024 // 1024} MiB are not searched. Tells {HEAD_LIMIT} lines; go on with offset."
    )
    parameters: dict[str, Any] = field(default_factory=lambda: schema_of(GrepArguments))

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Raises `ToolError` for an expression that is none, and for a search that takes too long."""
        asked, workspace = parsed(GrepArguments, arguments), workspace_of(context)
        encoded(asked.pattern, "pattern")
        if "\0" in asked.pattern:
            raise ToolError("the pattern has a NUL character; files with one are not searched, so leave it out")
        found = _Findings(asked)
        with anyio.move_on_after(self.timeout) as scope:
            await self._search(asked, workspace, found)
        if scope.cancelled_caught:
            raise ToolError(f"the search took longer than {self.timeout:g} seconds; name a narrower path")
        return found.told()

    async def _search(self, asked: GrepArguments, workspace: Workspace, found: "_Findings") -> None:
        start = workspace.stat(asked.path)
        if start is None:
            raise WorkspaceError(f"{asked.path!r} does not exist; look for it with glob or ls")
        scope = _Scope.of(asked, workspace, start)
        reader = MatchReader(found.needed, scope.counts)
        search, program = Search(asked.pattern, asked.path, asked.ignore_case), self.program()
        with ExitStack() as stack:
            if program is None:
                running, given = running_worker(), worker_request(search, workspace)
            elif start.kind == "directory":
                directory, place = stack.enter_context(workspace.open_directory(asked.path))
                running, given = running_ripgrep(program, search, directory, place.path), b""
            else:
                given = workspace.read_bytes(asked.path, MAX_SEARCHED_BYTES)
                running = running_ripgrep_on_text(program, search)
            await search_files(running, given, reader, lambda matches: found.take(scope.name(matches), matches))


@dataclass(frozen=True, slots=True)
class _Scope:
    """Which files are meant, and what they are called."""

    start: DirectoryEntry
    ignored: IgnoreFiles
    glob: Glob | None

    @classmethod
    def of(cls, asked: GrepArguments, workspace: Workspace, start: DirectoryEntry) -> "_Scope":
        with workspace.open_directory(asked.path if start.kind == "directory" else ".") as (_, place):
            root = place.root.path
        return cls(start, IgnoreFiles(workspace, root), None if asked.glob is None else Glob(asked.glob))

    def counts(self, name: str) -> bool:
        if self.start.kind != "directory":
            return True
        below = tuple(name.split("/"))
        depth = len(self.start.parts)
        wanted = self.glob is None or self.glob.matches(below)
        return wanted and not self.ignored.hides((*self.start.parts, *below), below=depth)

    def name(self, matches: FileMatches) -> str:
        if self.start.kind != "directory":
            return self.start.name
        return printable(matches.name if self.start.name == "." else f"{self.start.name}/{matches.name}")


@dataclass(slots=True)
class _Findings:
    """Lines of the answer, as far as they are needed."""

    asked: GrepArguments
    lines: list[str] = field(default_factory=list)

    @property
    def needed(self) -> int:
        """One more than is told: whether there is more is told, too."""
        return self.asked.offset + self.asked.head_limit + 1

    def take(self, name: str, matches: FileMatches) -> bool:
        """More are needed."""
        match self.asked.output_mode:
            case "content":
                self.lines += [f"{name}:{match.number}:{shown(match.text)}" for match in matches.matches]
            case "files":
                self.lines.append(name)
            case "count":
                self.lines.append(f"{name}:{matches.count}")
        return len(self.lines) < self.needed

    def told(self) -> ToolResult:
        end = self.asked.offset + self.asked.head_limit
        lines = self.lines[self.asked.offset : end]
        if not lines:
            more = f" after the first {self.asked.offset} lines" if self.asked.offset else ""
            return result_of(f"No match for {self.asked.pattern!r} in {self.asked.path!r}{more}.")
        if len(self.lines) > end:
            lines += ["", f"[there is more; go on with offset={end}]"]
        return result_of("\n".join(lines))
