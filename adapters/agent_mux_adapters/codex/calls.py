"""The items that are tool calls, and what they say when they begin and end. Both protocols share these shapes.

Fields are named as `exec --json` names them; the app-server's camelCase names are translated by `items.load`. The tool
names are the ones the model calls.
"""

from typing import Any

import msgspec

from agent_mux.facts import (
    Fact,
    FileDeleted,
    FileRead,
    ImageProduced,
    McpBegin,
    McpDone,
    Shell,
    ToolBegin,
    ToolDone,
    ToolReady,
)
from agent_mux_adapters.codex.diffs import Change, effects_of, unified

SHELL_TOOL = "exec_command"
PATCH_TOOL = "apply_patch"


class Call(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A tool call. `status` is in_progress/inProgress, completed, failed or declined."""

    id: str
    status: str = "completed"
    duration_ms: int | None = None

    def begun(self) -> tuple[Fact, ...]:
        """The call as it begins."""
        raise NotImplementedError

    def ended(self) -> tuple[Fact, ...]:
        """The call as it ends."""
        raise NotImplementedError


class Command(Call, frozen=True, kw_only=True, gc=False):
    """A shell command, as it is executed: with the shell that Codex wraps around it."""

    command: str
    cwd: str | None = None
    aggregated_output: str | None = None
    """stdout and stderr together, at most 1 MiB; the streamed fragments may lack the beginning."""
    exit_code: int | None = None

    def begun(self) -> tuple[Fact, ...]:
        """A command runs, or waits for permission."""
        place = {} if self.cwd is None else {"cwd": self.cwd}
        return (ToolReady(self.id, SHELL_TOOL, {"command": self.command, **place}, Shell(self.command, self.cwd)),)

    def ended(self) -> tuple[Fact, ...]:
        """Its exit, or that it never ran."""
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


class PathChange(msgspec.Struct, frozen=True, gc=False):
    """A changed file as `exec --json` tells it: without what changed, and without the new path of a moved file."""

    path: str
    kind: str


class PathChanges(Call, frozen=True, kw_only=True, gc=False):
    """A patch in `exec --json`. Sizes and diffs are not told, so only deletions can be shown as file events."""

    changes: list[PathChange]

    def begun(self) -> tuple[Fact, ...]:
        """The files it is about."""
        return (ToolReady(self.id, PATCH_TOOL, {"changes": msgspec.to_builtins(self.changes)}),)

    def ended(self) -> tuple[Fact, ...]:
        """Done, or failed."""
        error = _patch_error(self.status)
        files = tuple(FileDeleted(change.path) for change in self.changes if change.kind == "delete")
        output = {"changes": msgspec.to_builtins(self.changes)}
        return (ToolDone(self.id, output, error, name=PATCH_TOOL, files=() if error else files),)


class FileChanges(Call, frozen=True, kw_only=True, gc=False):
    """A patch in the app-server: with everything it changes."""

    changes: list[Change]

    def begun(self) -> tuple[Fact, ...]:
        """The files it is about."""
        return (ToolReady(self.id, PATCH_TOOL, {"changes": msgspec.to_builtins(self.changes)}),)

    def ended(self) -> tuple[Fact, ...]:
        """Done, or failed; without saying what happened on disk."""
        output = {"changes": [{"path": change.path, "kind": change.kind.type} for change in self.changes]}
        return (ToolDone(self.id, output, _patch_error(self.status), name=PATCH_TOOL),)

    def ended_with_files(self, cwd: str, written: set[str]) -> tuple[Fact, ...]:
        """As `ended`, with the effects on disk. `written`: the files that this run is known to have made."""
        if _patch_error(self.status) is not None:
            return self.ended()
        files = tuple(file for change in self.changes for file in effects_of(change, cwd, written))
        return tuple(msgspec.structs.replace(fact, files=files) for fact in self.ended())

    @property
    def paths(self) -> tuple[str, ...]:
        """Every file it changes, and where it moves one to."""
        moved = (change.kind.move_path for change in self.changes)
        return (*(change.path for change in self.changes), *(path for path in moved if path is not None))

    def diff(self, cwd: str) -> str:
        """All of it as one unified diff, for whoever has to approve it."""
        return "".join(unified(change, cwd) for change in self.changes)


class McpCall(Call, frozen=True, kw_only=True, gc=False):
    """A tool of an MCP server."""

    server: str
    tool: str
    arguments: Any = None
    result: Any = None
    error: Any = None
    read_only_hint: bool | None = None

    def begun(self) -> tuple[Fact, ...]:
        """The call with its arguments."""
        return (McpBegin(self.id, self.server, self.tool, self.arguments),)

    def ended(self) -> tuple[Fact, ...]:
        """Its result; a result whose tool reports an error is a failure."""
        if self.status != "failed" and self.error is None:
            return (McpDone(self.id, self.result),)
        return (McpDone(self.id, error=_message_of(self.error) or _texts_of(self.result) or "the MCP tool failed"),)


class WebSearch(Call, frozen=True, kw_only=True, gc=False):
    """A search by the provider. The query may be known only at its end."""

    query: str = ""
    action: Any = None
    results: Any = None

    def begun(self) -> tuple[Fact, ...]:
        """The search, if it is known what for."""
        return (self._ready() if self.query else ToolBegin(self.id, "web_search"),)

    def ended(self) -> tuple[Fact, ...]:
        """Codex shows what was looked for, rarely what was found."""
        return self._ready(), ToolDone(self.id, self.results, name="web_search")

    def _ready(self) -> ToolReady:
        return ToolReady(self.id, "web_search", {"query": self.query, "action": self.action})


class DynamicCall(Call, frozen=True, kw_only=True, gc=False):
    """A tool that another client of the app-server offers."""

    tool: str
    arguments: Any = None
    content_items: Any = None
    success: bool | None = None

    def begun(self) -> tuple[Fact, ...]:
        """The call with its arguments."""
        return (ToolReady(self.id, self.tool, self.arguments),)

    def ended(self) -> tuple[Fact, ...]:
        """Its result."""
        failed = self.status == "failed" or self.success is False
        error = (_texts_of({"content": self.content_items}) or "the tool failed") if failed else None
        return (ToolDone(self.id, self.content_items, error, self.duration_ms, name=self.tool),)


class ImageView(Call, frozen=True, kw_only=True, gc=False):
    """The agent looks at an image file."""

    path: str

    def begun(self) -> tuple[Fact, ...]:
        """Which file."""
        return (ToolReady(self.id, "view_image", {"path": self.path}),)

    def ended(self) -> tuple[Fact, ...]:
        """It was read."""
        return (ToolDone(self.id, name="view_image", files=(FileRead(self.path),)),)


class Sleep(Call, frozen=True, kw_only=True, gc=False):
    """The agent waits."""

    def begun(self) -> tuple[Fact, ...]:
        """For how long."""
        return (ToolReady(self.id, "sleep", {"duration_ms": self.duration_ms}),)

    def ended(self) -> tuple[Fact, ...]:
        """It waited."""
        return (ToolDone(self.id, name="sleep"),)


class ImageGeneration(Call, frozen=True, kw_only=True, gc=False):
    """The provider draws."""

    revised_prompt: str | None = None
    saved_path: str | None = None
    failure: Any = None

    def begun(self) -> tuple[Fact, ...]:
        """What is to be drawn, as far as it is known yet."""
        return (ToolReady(self.id, "image_generation", {"prompt": self.revised_prompt}),)

    def ended(self) -> tuple[Fact, ...]:
        """The image, where it was saved."""
        error = "the image could not be made" if self.failure is not None or self.status == "failed" else None
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
