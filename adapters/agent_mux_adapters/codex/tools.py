"""Items that are tool calls, with the facts of their start and end, and the diffs of patches.

Both protocols share these shapes. Fields have the names of `codex exec --json`; `items.read_item` translates the
camelCase names of the app-server. Tool names are those that the model calls.
"""

from pathlib import PurePosixPath
from typing import Any

import msgspec

from agent_mux.sdk.facts import (
    Fact,
    FileDeleted,
    FileEffect,
    FilePatched,
    FileRead,
    FileWritten,
    ImageProduced,
    McpBegin,
    McpDone,
    ShellInvocation,
    ToolBegin,
    ToolDone,
    ToolReady,
)

SHELL_TOOL = "exec_command"
PATCH_TOOL = "apply_patch"
PLAN_TOOL = "update_plan"


class CodexToolCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A tool call. `status` is in_progress/inProgress, completed, failed or declined."""

    id: str
    status: str = "completed"
    duration_ms: int | None = None

    def begin_facts(self) -> tuple[Fact, ...]:
        """Return the facts for the start of the call."""
        raise NotImplementedError

    def end_facts(self) -> tuple[Fact, ...]:
        """Return the facts for the end of the call."""
        raise NotImplementedError


class CommandCall(CodexToolCall, frozen=True, kw_only=True, gc=False):
    """A shell command. Codex executes it with a shell, which is part of `command`."""

    command: str
    cwd: str | None = None
    aggregated_output: str | None = None
    """stdout and stderr together, at most 1 MiB. The streamed fragments may lack the beginning."""
    exit_code: int | None = None

    def begin_facts(self) -> tuple[Fact, ...]:
        """Return the command, which runs or waits for an approval."""
        directory = {} if self.cwd is None else {"cwd": self.cwd}
        return (
            ToolReady(
                self.id, SHELL_TOOL, {"command": self.command, **directory}, ShellInvocation(self.command, self.cwd)
            ),
        )

    def end_facts(self) -> tuple[Fact, ...]:
        """Return the exit of the command, or an error when it was declined or not run."""
        output = self.aggregated_output or ""
        error = None
        if self.status == "declined":
            error = "the command was declined"
        elif self.status == "failed" or self.exit_code:
            error = output or (f"exit code {self.exit_code}" if self.exit_code else "the command could not be run")
        return (
            ToolDone(
                self.id,
                output,
                error,
                self.duration_ms,
                stdout=self.aggregated_output,
                exit_code=self.exit_code,
                name=SHELL_TOOL,
            ),
        )


class ExecFileChange(msgspec.Struct, frozen=True, gc=False):
    """A changed file in `exec --json`: without a diff, and without the new path of a moved file."""

    path: str
    kind: str


class ExecPatchCall(CodexToolCall, frozen=True, kw_only=True, gc=False):
    """A patch in `exec --json`. Sizes and diffs are missing, so only deletions have file effects."""

    changes: list[ExecFileChange]

    def begin_facts(self) -> tuple[Fact, ...]:
        """Return the call with the files that it changes."""
        return (ToolReady(self.id, PATCH_TOOL, {"changes": msgspec.to_builtins(self.changes)}),)

    def end_facts(self) -> tuple[Fact, ...]:
        """Return the result, with the deleted files if the patch succeeded."""
        error = _patch_error(self.status)
        files = tuple(FileDeleted(change.path) for change in self.changes if change.kind == "delete")
        output = {"changes": msgspec.to_builtins(self.changes)}
        return (ToolDone(self.id, output, error, name=PATCH_TOOL, files=() if error else files),)


class FileChangeKind(msgspec.Struct, frozen=True, gc=False):
    """How one file of a patch changed."""

    type: str
    """add, update or delete."""
    move_path: str | None = None
    """Its new path, when the update also moved it. The app-server uses snake_case for this field."""


class CodexFileChange(msgspec.Struct, frozen=True, gc=False):
    """One changed file in the app-server."""

    path: str
    kind: FileChangeKind
    diff: str = ""
    """add: the new content; delete: the old content; update: the hunks, without file headers."""


class PatchCall(CodexToolCall, frozen=True, kw_only=True, gc=False):
    """A patch in the app-server, with the diffs of all files."""

    changes: list[CodexFileChange]

    def begin_facts(self) -> tuple[Fact, ...]:
        """Return the call with its changes."""
        return (ToolReady(self.id, PATCH_TOOL, {"changes": msgspec.to_builtins(self.changes)}),)

    def end_facts(self) -> tuple[Fact, ...]:
        """Return the result without file effects."""
        output = {"changes": [{"path": change.path, "kind": change.kind.type} for change in self.changes]}
        return (ToolDone(self.id, output, _patch_error(self.status), name=PATCH_TOOL),)

    def end_facts_with_files(self, cwd: str, written: set[str]) -> tuple[Fact, ...]:
        """Return the result with file effects. `written`: the files that this run has written; it is updated."""
        if _patch_error(self.status) is not None:
            return self.end_facts()
        files = tuple(file for change in self.changes for file in file_effects_of(change, cwd, written))
        return tuple(msgspec.structs.replace(fact, files=files) for fact in self.end_facts())

    @property
    def paths(self) -> tuple[str, ...]:
        """Every changed file, and the new path of every moved one."""
        moved = (change.kind.move_path for change in self.changes)
        return (*(change.path for change in self.changes), *(path for path in moved if path is not None))

    def diff(self, cwd: str) -> str:
        """Return all changes as one unified diff, to show in an approval request."""
        return "".join(unified_diff(change, cwd) for change in self.changes)


class McpToolCall(CodexToolCall, frozen=True, kw_only=True, gc=False):
    """A call of an MCP server's tool."""

    server: str
    tool: str
    arguments: Any = None
    result: Any = None
    error: Any = None
    read_only_hint: bool | None = None

    def begin_facts(self) -> tuple[Fact, ...]:
        """Return the call with its arguments."""
        return (McpBegin(self.id, self.server, self.tool, self.arguments),)

    def end_facts(self) -> tuple[Fact, ...]:
        """Return the result. A result in which the tool reports an error is a failure."""
        if self.status != "failed" and self.error is None:
            return (McpDone(self.id, self.result),)
        return (McpDone(self.id, error=_message_of(self.error) or _texts_of(self.result) or "the MCP tool failed"),)


class WebSearchCall(CodexToolCall, frozen=True, kw_only=True, gc=False):
    """A web search by the model provider. Its query may be unknown until it ends."""

    query: str = ""
    action: Any = None
    results: Any = None

    def begin_facts(self) -> tuple[Fact, ...]:
        """Return the search, with its query if that is known."""
        return (self._ready() if self.query else ToolBegin(self.id, "web_search"),)

    def end_facts(self) -> tuple[Fact, ...]:
        """Return the query and the results. Codex rarely reports results."""
        return self._ready(), ToolDone(self.id, self.results, name="web_search")

    def _ready(self) -> ToolReady:
        return ToolReady(self.id, "web_search", {"query": self.query, "action": self.action})


class DynamicToolCall(CodexToolCall, frozen=True, kw_only=True, gc=False):
    """A call of a tool that another client of the app-server offers."""

    tool: str
    arguments: Any = None
    content_items: Any = None
    success: bool | None = None

    def begin_facts(self) -> tuple[Fact, ...]:
        """Return the call with its arguments."""
        return (ToolReady(self.id, self.tool, self.arguments),)

    def end_facts(self) -> tuple[Fact, ...]:
        """Return the result or the error of the tool."""
        failed = self.status == "failed" or self.success is False
        error = (_texts_of({"content": self.content_items}) or "the tool failed") if failed else None
        return (ToolDone(self.id, self.content_items, error, self.duration_ms, name=self.tool),)


class ImageViewCall(CodexToolCall, frozen=True, kw_only=True, gc=False):
    """A call that shows an image file to the model."""

    path: str

    def begin_facts(self) -> tuple[Fact, ...]:
        """Return the call with the path of the image."""
        return (ToolReady(self.id, "view_image", {"path": self.path}),)

    def end_facts(self) -> tuple[Fact, ...]:
        """Return the end of the call with the file that was read."""
        return (ToolDone(self.id, name="view_image", files=(FileRead(self.path),)),)


class SleepCall(CodexToolCall, frozen=True, kw_only=True, gc=False):
    """A call that waits for `duration_ms`."""

    def begin_facts(self) -> tuple[Fact, ...]:
        """Return the call with its duration."""
        return (ToolReady(self.id, "sleep", {"duration_ms": self.duration_ms}),)

    def end_facts(self) -> tuple[Fact, ...]:
        """Return the end of the call, which has no result."""
        return (ToolDone(self.id, name="sleep"),)


class ImageGenerationCall(CodexToolCall, frozen=True, kw_only=True, gc=False):
    """An image generation by the model provider."""

    revised_prompt: str | None = None
    saved_path: str | None = None
    failure: Any = None

    def begin_facts(self) -> tuple[Fact, ...]:
        """Return the call with its prompt, None while that is unknown."""
        return (ToolReady(self.id, "image_generation", {"prompt": self.revised_prompt}),)

    def end_facts(self) -> tuple[Fact, ...]:
        """Return the result, and the image if it was saved."""
        error = "the image could not be generated" if self.failure is not None or self.status == "failed" else None
        done = ToolDone(self.id, self.saved_path, error, name="image_generation")
        image = () if error or self.saved_path is None else (ImageProduced("image/png", file_path=self.saved_path),)
        return done, *image


def _patch_error(status: str) -> str | None:
    return {"failed": "the patch failed", "declined": "the patch was declined"}.get(status)


def _message_of(error: Any) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else ""


def _texts_of(result: Any) -> str:
    content = result.get("content") if isinstance(result, dict) else None
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "\n".join(text for text in texts if isinstance(text, str))


# -- file effects and diffs of patches


def file_effects_of(change: CodexFileChange, cwd: str, written: set[str]) -> tuple[FileEffect, ...]:
    """Return the effects of a change on disk.

    `written`: the files that this run has written; it is updated. Adding one of them again overwrites it.
    """
    path, moved = change.path, change.kind.move_path
    match change.kind.type:
        case "add":
            created = path not in written
            written.add(path)
            return (FileWritten(path, len(change.diff.encode(errors="replace")), created),)
        case "delete":
            written.discard(path)
            return (FileDeleted(path),)
        case "update" if moved:
            written.discard(path)
            written.add(moved)
            return FileDeleted(path), FilePatched(moved, unified_diff(change, cwd))
        case "update":
            written.add(path)
            return (FilePatched(path, unified_diff(change, cwd)),)
    return ()


def unified_diff(change: CodexFileChange, cwd: str) -> str:
    """Return the change as a unified diff with file headers. Paths inside `cwd` become relative to it."""
    old = _header_path(change.path, cwd)
    new = _header_path(change.kind.move_path, cwd) if change.kind.move_path else old
    match change.kind.type:
        case "add":
            return f"--- /dev/null\n+++ b/{new}\n{_whole_file_hunk(change.diff, '+')}"
        case "delete":
            return f"--- a/{old}\n+++ /dev/null\n{_whole_file_hunk(change.diff, '-')}"
    hunks = change.diff
    if change.kind.move_path:
        # Codex appends a sentence to the hunks: "\n\nMoved to: <path>".
        hunks = hunks.removesuffix(f"\n\nMoved to: {change.kind.move_path}")
    return f"--- a/{old}\n+++ b/{new}\n{hunks}"


def _header_path(path: str, cwd: str) -> str:
    pure = PurePosixPath(path)
    return str(pure.relative_to(cwd)) if cwd and pure.is_relative_to(cwd) else path.lstrip("/")


def _whole_file_hunk(content: str, sign: str) -> str:
    lines = content.split("\n")
    complete = lines[-1] == ""
    if complete:
        lines.pop()
    if not lines:
        return ""
    span = f"1,{len(lines)}" if len(lines) > 1 else "1"
    header = f"@@ -0,0 +{span} @@\n" if sign == "+" else f"@@ -{span} +0,0 @@\n"
    body = "".join(f"{sign}{line}\n" for line in lines)
    return header + body + ("" if complete else "\\ No newline at end of file\n")
