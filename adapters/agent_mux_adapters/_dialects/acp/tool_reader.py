"""Tool calls: what their updates report bit by bit, and what a call means.

`ToolReader` knows the meaning by ACP's own fields. An adapter whose agent reports more, or differently, overrides
methods in a subclass and passes an instance in its `AcpQuirks`. Readers keep no state.
"""

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from agent_mux.sdk import unified_diff
from agent_mux.sdk.facts import FileDeleted, FileEffect, FilePatched, FileRead, FileWritten, ShellInvocation
from agent_mux_adapters._dialects.acp.questions import AcpQuestion
from agent_mux_adapters._dialects.acp.wire import text_of
from agent_mux_adapters._dialects.tolerant import mapping, rows, text

ENDED = frozenset({"completed", "failed"})


class AcpDiff(msgspec.Struct, frozen=True):
    """A change that a tool call shows: whole files or only the replaced fragment, depending on the agent."""

    path: str
    old: str | None
    """The text before; None for a new file, for which many agents send an empty string."""
    new: str
    meta: Mapping[str, Any]


class AcpCall(msgspec.Struct):
    """The accumulated state of a tool call: each field holds the last reported value."""

    id: str
    title: str = ""
    first_title: str = ""
    """The title of the announcement; with some agents the name of the tool."""
    kind: str = ""
    """`read`, `edit`, `delete`, `move`, `search`, `execute`, `think`, `fetch`, `switch_mode`, `other`, or empty."""
    status: str = ""
    """`pending`, `in_progress`, `completed`, `failed`, or empty."""
    raw_input: Any = None
    raw_output: Any = None
    content: list[Mapping[str, Any]] = []
    announced: list[Mapping[str, Any]] = []
    """The content of the announcement: a description, not a result."""
    diffs: list[AcpDiff] = []
    """The last changes shown; a final update without changes does not clear them."""
    paths: list[str] = []
    """The paths of its locations."""
    meta: dict[str, Any] = {}
    """The merged `_meta` objects of all updates."""
    asked: Mapping[str, Any] | None = None
    """The `toolCall` of the permission request, None when there was none."""
    is_announced: bool = False
    """Whether a `tool_call` update announced it; otherwise only a permission request showed it so far."""
    name: str = ""
    """The emitted name; empty until the call is emitted."""
    mcp: tuple[str, str] | None = None
    """The MCP server and tool under which the call was emitted, None for a native tool."""
    is_subagent: bool = False
    is_shell: bool = False
    denial: str | None = None
    """Why permission was refused, None when it was not; a refused call never runs."""
    streamed: str = ""
    """The output that was emitted so far."""

    @property
    def is_emitted(self) -> bool:
        """Whether the call was emitted with its complete input."""
        return bool(self.name)

    @property
    def has_ended(self) -> bool:
        """Whether the agent reported how the call ended."""
        return self.status in ENDED

    @property
    def texts(self) -> list[str]:
        """The texts of its content, without those of the announcement."""
        shown = [item for item in self.content if item.get("type") == "content" and item not in self.announced]
        return [found for found in map(text_of, shown) if found]

    def apply(self, update: Mapping[str, Any]) -> None:
        """Apply another `tool_call` or `tool_call_update`; fields that it omits keep their values."""
        self._apply_content(update)
        self.title = text(update.get("title")) or self.title
        self.first_title = self.first_title or self.title
        self.kind = text(update.get("kind")) or self.kind
        self.status = text(update.get("status")) or self.status
        if update.get("rawInput") is not None:
            self.raw_input = update["rawInput"]
        if update.get("rawOutput") is not None:
            self.raw_output = update["rawOutput"]

    def apply_permission_request(self, asked: Mapping[str, Any]) -> None:
        """Apply the call of a permission request: it adds missing fields, and the changes to approve."""
        self.asked = asked
        if not self.is_announced:
            self.apply(asked)
            self.announced = self.content
        else:
            self._apply_diffs(rows(asked.get("content")))
            self.raw_input = self.raw_input if self.raw_input not in (None, {}) else asked.get("rawInput")
            self.kind = self.kind or text(asked.get("kind"))
            self.meta = {**self.meta, **mapping(asked.get("_meta"))}

    def deny(self, reason: str | None) -> None:
        """Record that permission was refused. Not all agents report afterwards that the call ended."""
        self.denial = reason or "permission denied"

    def _apply_content(self, update: Mapping[str, Any]) -> None:
        if isinstance(update.get("content"), list):
            self.content = rows(update["content"])
            self._apply_diffs(self.content)
        if isinstance(update.get("locations"), list):
            found = [text(row.get("path")) for row in rows(update["locations"])]
            self.paths = [path for path in found if path] or self.paths
        self.meta = {**self.meta, **mapping(update.get("_meta"))}

    def _apply_diffs(self, content: list[Mapping[str, Any]]) -> None:
        found = _diffs(content)
        # Some agents show whole files in the permission request, and only the changed fragment in the end.
        if not (len(found) == len(self.diffs) and all(map(_is_part_of, found, self.diffs))):
            self.diffs = found or self.diffs


def _diffs(content: list[Mapping[str, Any]]) -> list[AcpDiff]:
    return [
        AcpDiff(
            text(item.get("path")), _old(item.get("oldText")), text(item.get("newText")), mapping(item.get("_meta"))
        )
        for item in content
        if item.get("type") == "diff" and text(item.get("path"))
    ]


def _is_part_of(part: AcpDiff, whole: AcpDiff) -> bool:
    return part.path == whole.path and (part.old or "") in (whole.old or "") and part.new in whole.new


def _old(value: Any) -> str | None:
    return value if isinstance(value, str) else None


_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_:-]{1,99}")
_NAMES_IN_META = ("tool_name", "toolName", "name")
_PRINTED = ("aggregatedOutput", "formatted_output", "output", "stdout")
_OUTPUTS = (*_PRINTED, "text")
_EXIT_CODES = ("exitCode", "exit_code", "exit")
_INSIDE = ("metadata", "details", "result")
_WHOLE_FILE = ("content", "file_text", "newContent")
_PATCHES = ("diff", "fileDiff", "patch")
_WHOLE_OLD = ("previousContent", "originalContent")
_PATHS = ("path", "file_path", "filePath", "abs_path")


class ToolReader:
    """The meaning of tool calls by ACP's own fields."""

    # -- the call

    def name(self, call: AcpCall) -> str:
        """Return the tool's name as the model uses it; the call's kind when the name is not reported."""
        for key in _NAMES_IN_META:
            if text(call.meta.get(key)):
                return text(call.meta[key])
        title = call.first_title
        is_name = _NAME.fullmatch(title) and title not in [PurePath(path).name for path in call.paths]
        return title if is_name else call.kind or "tool"

    def is_complete(self, call: AcpCall) -> bool:
        """Return whether the input is complete. A call may be announced while the model still writes it."""
        if call.status not in ("", "pending"):
            return True
        if call.kind == "execute":
            return call.raw_input is None or bool(self._command(call.raw_input))
        return bool(call.raw_input != {})

    def input(self, call: AcpCall) -> Any:
        """Return the input as the model wrote it, or a substitute built from title, changes and locations."""
        if call.raw_input is not None:
            return call.raw_input
        if call.kind == "execute":
            return {"command": call.title}
        diff = next(iter(call.diffs), None)
        if diff is not None:
            return {"path": diff.path, "content": diff.new}
        return {"path": call.paths[0]} if call.paths else {"title": call.title}

    def shell(self, call: AcpCall) -> ShellInvocation | None:
        """Return the foreground command that the call runs; None for other calls."""
        if call.kind != "execute":
            return None
        directory = text(mapping(call.raw_input).get("cwd")) or text(mapping(call.raw_input).get("workdir"))
        command = self._command(call.raw_input)
        if not command and call.raw_input is None:
            command = call.title.removeprefix("$ ").strip("`")
        return ShellInvocation(command, directory or None) if command else None

    def mcp(self, call: AcpCall, servers: Collection[str]) -> tuple[str, str] | None:
        """Return the MCP server and its tool; None for a native tool. `servers` are the known ones of the session."""
        name = self.name(call)
        if name.startswith("mcp__") and name.count("__") > 1:
            _, server, tool = name.split("__", 2)
            return server, tool
        for server in sorted(servers, key=len, reverse=True):
            for prefix in (f"mcp_{server}_", f"{server}__", f"{server}_", f"{server}-", f"{server}:", f"{server}."):
                if name.startswith(prefix) and len(name) > len(prefix):
                    return server, name[len(prefix) :]
        return None

    def subagent(self, call: AcpCall) -> tuple[str, str] | None:
        """Return the sub-agent's name and its prompt when the call delegates a task; None otherwise."""
        fields = mapping(call.raw_input)
        name, prompt = text(fields.get("subagent_type")), text(fields.get("prompt"))
        return (name, prompt) if name and prompt else None

    def continues_step(self, call: AcpCall) -> bool:  # noqa: ARG002  # for subclasses
        """Return whether the call belongs to the same model call although an earlier call already ended."""
        return False

    # -- permission requests

    def call_for(self, asked: AcpCall, open_calls: Sequence[AcpCall]) -> str | None:  # noqa: ARG002  # for subclasses
        """Return the open call that a permission request with an unknown call id is about; None for a new call."""
        return None

    def question(self, request_id: str, asked: AcpCall, options: Mapping[str, str]) -> AcpQuestion | None:  # noqa: ARG002
        """Return the questions that a permission request stands for; None when it is a real permission request.

        `options` maps option ids to names.
        """
        return None

    # -- the result

    def output(self, call: AcpCall) -> str:
        """Return the output as text.

        The shown content is preferred; for a command the returned output is.
        """
        shown, returned = "\n".join(call.texts), self._first_text(call.raw_output, _OUTPUTS)
        return (returned or shown) if call.is_shell else (shown or returned)

    def output_so_far(self, call: AcpCall) -> str:
        """Return the output of a running command from its start; empty when the agent does not report it."""
        return self._first_text(call.raw_output, _OUTPUTS) or "".join(call.texts)

    def streams(self, call: AcpCall) -> tuple[str | None, str | None]:
        """Return all output of a command on stdout and stderr; the first has both when they are merged."""
        error = self._first_text(call.raw_output, ("stderr",))
        if error:
            return self._first_text(call.raw_output, ("stdout",)) or None, error
        printed = self._printed(call.raw_output)
        if printed is None and not self._first_text(call.raw_output, ("error",)):
            printed = self.output(call)
        return printed or None, None  # with an error, the shown content states the cause

    def exit_code(self, call: AcpCall) -> int | None:
        """Return the exit code of a command; None when it is not reported."""
        for fields in self._levels(call.raw_output):
            for key in _EXIT_CODES:
                code = fields.get(key)
                if isinstance(code, int) and not isinstance(code, bool):
                    return code if code or call.status != "failed" else None  # a failed call has no exit code 0
        return None

    def error(self, call: AcpCall) -> str | None:
        """Return why the call failed; None when it succeeded."""
        code = self.exit_code(call)
        if call.status != "failed" and not code:
            return None
        reported = self.output(call) or self._first_text(call.raw_output, ("error", "message"))
        return reported or (f"exit code {code}" if code else "the call failed")

    def result(self, call: AcpCall) -> Any:
        """Return the output for the result event."""
        return self.output(call) or call.raw_output

    def files(self, call: AcpCall, cwd: str) -> tuple[FileEffect, ...]:
        """Return the effects of the call on files."""
        if call.diffs:
            return tuple(
                unified_diff.relative_to(cwd, effect) for diff in call.diffs for effect in self.changes(call, diff)
            )
        if call.kind == "read":
            return tuple(FileRead(path) for path in call.paths)
        if call.kind == "delete":
            return tuple(FileDeleted(path) for path in call.paths)
        return tuple(self._written(call)) if call.kind == "edit" else ()

    def changes(self, call: AcpCall, diff: AcpDiff) -> Iterable[FileEffect]:
        """Return the effects of one shown change: a written file or a patch."""
        if self.created(call, diff):
            return (FileWritten(diff.path, len(diff.new.encode("utf-8", "replace")), True),)
        if diff.new in [mapping(call.raw_input).get(key) for key in _WHOLE_FILE]:
            return (FileWritten(diff.path, len(diff.new.encode("utf-8", "replace")), False),)
        hunks = self.hunks(call) if len(call.diffs) == 1 else []
        whole = unified_diff.with_header(diff.path, hunks) or unified_diff.from_texts(
            diff.path, *self.texts(call, diff)
        )
        return (FilePatched(diff.path, whole),) if whole else ()

    def hunks(self, call: AcpCall) -> list[str]:
        """Return the lines of the hunks in a returned unified diff, which have the true line numbers."""
        _, at, rest = self._first_text(mapping(call.raw_output), _PATCHES).partition("\n@@ -")
        return f"@@ -{rest}".removesuffix("\n").split("\n") if at and "\n--- " not in rest else []

    def texts(self, call: AcpCall, diff: AcpDiff) -> tuple[str, str]:
        """Return the texts before and after; of the whole file when the agent returns its previous content."""
        old = diff.old or ""
        before = next((before for key in _WHOLE_OLD if (before := mapping(call.raw_output).get(key))), None)
        if isinstance(before, str) and old and before.count(old) == 1 and before != old:
            return before, before.replace(old, diff.new)
        return old, diff.new

    def created(self, call: AcpCall, diff: AcpDiff) -> bool:
        """Return whether the change created the file."""
        existed = mapping(call.raw_output).get("fileExisted")
        if isinstance(existed, bool):
            return not existed
        return not diff.old

    def ends_silently(self, call: AcpCall) -> bool:  # noqa: ARG002  # for subclasses
        """Return whether the agent sends no update when this call succeeds, so that its next message ends the call."""
        return False

    # -- inside

    def _command(self, raw_input: Any) -> str:
        command = mapping(raw_input).get("command")
        if isinstance(command, list) and all(isinstance(part, str) for part in command):
            return shlex.join(command)
        return text(command) or text(mapping(raw_input).get("cmd"))

    def _written(self, call: AcpCall) -> Iterable[FileEffect]:
        fields = mapping(call.raw_input)
        path = next((text(fields[key]) for key in _PATHS if text(fields.get(key))), "")
        content = next((fields[key] for key in _WHOLE_FILE if isinstance(fields.get(key), str)), None)
        if content is not None and (call.paths or path):
            yield FileWritten(next(iter(call.paths), path), len(content.encode("utf-8", "replace")), False)

    def _printed(self, raw: Any) -> str | None:
        """Return what a command printed.

        Empty when the agent reports empty output; None when it reports none.
        """
        reported = [fields[key] for fields in self._levels(raw) for key in _PRINTED if isinstance(fields.get(key), str)]
        return next((printed for printed in reported if printed), "") if reported else None

    def _first_text(self, raw: Any, keys: Iterable[str]) -> str:
        if isinstance(raw, str):
            return raw
        for fields in self._levels(raw):
            for key in keys:
                if text(fields.get(key)):
                    return text(fields[key])
        return ""

    def _levels(self, raw: Any) -> list[Mapping[str, Any]]:
        fields = mapping(raw)
        return [fields, *(mapping(fields.get(key)) for key in _INSIDE)]
