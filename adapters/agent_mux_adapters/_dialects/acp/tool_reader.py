"""One tool call, as its announcement, the request for permission and its updates tell it bit by bit."""

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import msgspec

from agent_mux.facts import FileDeleted, FileEffect, FilePatched, FileRead, FileWritten, Shell
from agent_mux_adapters._dialects import unified_diff
from agent_mux_adapters._dialects.acp.questions import AcpQuestion
from agent_mux_adapters._dialects.acp.wire import text_of
from agent_mux_adapters._dialects.tolerant import mapping, rows, text

ENDED = frozenset({"completed", "failed"})


class AcpDiff(msgspec.Struct, frozen=True):
    """A change that a tool call shows: whole files, or only the replaced fragment, as the agent likes."""

    path: str
    old: str | None
    """None: the file is new. Many agents say an empty text instead."""
    new: str
    meta: Mapping[str, Any]


class AcpCall(msgspec.Struct):
    """What is known of a tool call: in each field what was told last. The adapter's `ToolReader` makes sense of it."""

    id: str
    title: str = ""
    first_title: str = ""
    """The title it was announced with: with some agents the name of the tool."""
    kind: str = ""
    """read, edit, delete, move, search, execute, think, fetch, switch_mode, other, or empty."""
    status: str = ""
    """pending, in_progress, completed, failed, or empty."""
    raw_input: Any = None
    raw_output: Any = None
    content: list[Mapping[str, Any]] = []
    announced: list[Mapping[str, Any]] = []
    """The content it was announced with: a description, no result."""
    diffs: list[AcpDiff] = []
    """The last changes shown; an end without any does not take them back."""
    paths: list[str] = []
    """Its locations."""
    meta: dict[str, Any] = {}
    """Everything its `_meta` said so far."""
    asked: Mapping[str, Any] | None = None
    """The `toolCall` of the request for permission, if there was one."""
    is_announced: bool = False
    """A `tool_call` told it; else only the request for permission did, so far."""
    name: str = ""
    """As it was told; empty before."""
    mcp: tuple[str, str] | None = None
    """The MCP server and its tool, once it was told as such a call."""
    is_subagent: bool = False
    is_shell: bool = False
    denial: str | None = None
    """Why permission was refused, if it was: the call never ran."""
    streamed: str = ""
    """The output that was told so far."""

    @property
    def is_told(self) -> bool:
        """The call was shown, with its complete input."""
        return bool(self.name)

    @property
    def has_ended(self) -> bool:
        """The agent said how it ended."""
        return self.status in ENDED

    @property
    def texts(self) -> list[str]:
        """The texts of its content, without those that only announced it."""
        shown = [item for item in self.content if item.get("type") == "content" and item not in self.announced]
        return [found for found in map(text_of, shown) if found]

    def take(self, update: Mapping[str, Any]) -> None:
        """Another `tool_call` or `tool_call_update`: what it does not mention stays."""
        self._take_content(update)
        self.title = text(update.get("title")) or self.title
        self.first_title = self.first_title or self.title
        self.kind = text(update.get("kind")) or self.kind
        self.status = text(update.get("status")) or self.status
        if update.get("rawInput") is not None:
            self.raw_input = update["rawInput"]
        if update.get("rawOutput") is not None:
            self.raw_output = update["rawOutput"]

    def take_asked(self, asked: Mapping[str, Any]) -> None:
        """The call as a request for permission shows it: it adds what nobody told yet, and the changes."""
        self.asked = asked
        if not self.is_announced:
            self.take(asked)
            self.announced = self.content
        else:
            self._take_diffs(rows(asked.get("content")))
            self.raw_input = self.raw_input if self.raw_input not in (None, {}) else asked.get("rawInput")
            self.kind = self.kind or text(asked.get("kind"))
            self.meta = {**self.meta, **mapping(asked.get("_meta"))}

    def deny(self, reason: str | None) -> None:
        """Permission was refused. Not all agents say that this was the end of the call; those that do, say it soon."""
        self.denial = reason or "permission denied"

    def _take_content(self, update: Mapping[str, Any]) -> None:
        if isinstance(update.get("content"), list):
            self.content = rows(update["content"])
            self._take_diffs(self.content)
        if isinstance(update.get("locations"), list):
            found = [text(row.get("path")) for row in rows(update["locations"])]
            self.paths = [path for path in found if path] or self.paths
        self.meta = {**self.meta, **mapping(update.get("_meta"))}

    def _take_diffs(self, content: list[Mapping[str, Any]]) -> None:
        found = _diffs(content)
        # Some agents show whole files when they ask for permission, and only the changed fragment at the end.
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


# TODO What a tool call means, from the fields that ACP itself gives it. An agent that says more has a reader of its own.
#
# `ToolReader` is the slot for knowledge about one agent: its adapter makes a subclass, overrides the few methods where
# the agent differs, and passes an instance in its `AcpQuirks`. Readers keep no state.

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
    """The meaning of tool calls, by ACP's own fields."""

    # -- the call

    def name(self, call: AcpCall) -> str:
        """The tool, as the model calls it; where that is not told, its kind."""
        for key in _NAMES_IN_META:
            if text(call.meta.get(key)):
                return text(call.meta[key])
        title = call.first_title
        is_name = _NAME.fullmatch(title) and title not in [PurePath(path).name for path in call.paths]
        return title if is_name else call.kind or "tool"

    def is_complete(self, call: AcpCall) -> bool:
        """Its input is all there. A call may be announced while the model still writes it."""
        if call.status not in ("", "pending"):
            return True
        if call.kind == "execute":
            return call.raw_input is None or bool(self._command(call.raw_input))
        return bool(call.raw_input != {})

    def input(self, call: AcpCall) -> Any:
        """Its input: as the model gave it, where that is told."""
        if call.raw_input is not None:
            return call.raw_input
        if call.kind == "execute":
            return {"command": call.title}
        diff = next(iter(call.diffs), None)
        if diff is not None:
            return {"path": diff.path, "content": diff.new}
        return {"path": call.paths[0]} if call.paths else {"title": call.title}

    def shell(self, call: AcpCall) -> Shell | None:
        """The foreground command it runs."""
        if call.kind != "execute":
            return None
        place = text(mapping(call.raw_input).get("cwd")) or text(mapping(call.raw_input).get("workdir"))
        command = self._command(call.raw_input)
        if not command and call.raw_input is None:
            command = call.title.removeprefix("$ ").strip("`")
        return Shell(command, place or None) if command else None

    def mcp(self, call: AcpCall, servers: Collection[str]) -> tuple[str, str] | None:
        """The MCP server and its tool. `servers`: those of the session, where known."""
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
        """The sub-agent's name and its prompt, when the call delegates a task."""
        fields = mapping(call.raw_input)
        name, prompt = text(fields.get("subagent_type")), text(fields.get("prompt"))
        return (name, prompt) if name and prompt else None

    def continues_step(self, call: AcpCall) -> bool:  # noqa: ARG002  # for agents that tell
        """It comes after the end of another call, and yet from the same model call."""
        return False

    # -- requests for permission

    def call_for(self, asked: AcpCall, open_calls: Sequence[AcpCall]) -> str | None:  # noqa: ARG002  # for agents that tell
        """The open call that is meant, when a request for permission names one that was not told. None: a new one."""
        return None

    def question(self, request_id: str, asked: AcpCall, options: Mapping[str, str]) -> AcpQuestion | None:  # noqa: ARG002
        """The questions that a request for permission really is. `options`: id -> name. None: it is a permission."""
        return None

    # -- the result

    def output(self, call: AcpCall) -> str:
        """The output as a text: what is shown of it, else what was returned; of a command, the other way round."""
        shown, returned = "\n".join(call.texts), self._told(call.raw_output, _OUTPUTS)
        return (returned or shown) if call.is_shell else (shown or returned)

    def output_so_far(self, call: AcpCall) -> str:
        """The output of a command that still runs, from its beginning; empty where the agent does not tell."""
        return self._told(call.raw_output, _OUTPUTS) or "".join(call.texts)

    def streams(self, call: AcpCall) -> tuple[str | None, str | None]:
        """All that a command printed on standard output and standard error; both together come as the first."""
        error = self._told(call.raw_output, ("stderr",))
        if error:
            return self._told(call.raw_output, ("stdout",)) or None, error
        printed = self._printed(call.raw_output)
        if printed is None and not self._told(call.raw_output, ("error",)):
            printed = self.output(call)
        return printed or None, None  # beside an error, what is shown says what went wrong

    def exit_code(self, call: AcpCall) -> int | None:
        """How the command exited, where that is told."""
        for fields in self._levels(call.raw_output):
            for key in _EXIT_CODES:
                code = fields.get(key)
                if isinstance(code, int) and not isinstance(code, bool):
                    return code if code or call.status != "failed" else None  # what failed did not exit well
        return None

    def error(self, call: AcpCall) -> str | None:
        """Why the call failed; None when it did not."""
        code = self.exit_code(call)
        if call.status != "failed" and not code:
            return None
        told = self.output(call) or self._told(call.raw_output, ("error", "message"))
        return told or (f"exit code {code}" if code else "the call failed")

    def result(self, call: AcpCall) -> Any:
        """What the call gave, for its result event."""
        return self.output(call) or call.raw_output

    def files(self, call: AcpCall, cwd: str) -> tuple[FileEffect, ...]:
        """What it did to files."""
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
        """What a shown change did: a whole file, or a part of it."""
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
        """The hunks of a unified diff that the agent returned, by lines; they know their place in the file."""
        _, at, rest = self._told(mapping(call.raw_output), _PATCHES).partition("\n@@ -")
        return f"@@ -{rest}".removesuffix("\n").split("\n") if at and "\n--- " not in rest else []

    def texts(self, call: AcpCall, diff: AcpDiff) -> tuple[str, str]:
        """The texts before and after: of the whole file, where the agent tells what it was."""
        old = diff.old or ""
        before = next((before for key in _WHOLE_OLD if (before := mapping(call.raw_output).get(key))), None)
        if isinstance(before, str) and old and before.count(old) == 1 and before != old:
            return before, before.replace(old, diff.new)
        return old, diff.new

    def created(self, call: AcpCall, diff: AcpDiff) -> bool:
        """The file was not there before."""
        existed = mapping(call.raw_output).get("fileExisted")
        if isinstance(existed, bool):
            return not existed
        return not diff.old

    def ends_silently(self, call: AcpCall) -> bool:  # noqa: ARG002  # for agents that do
        """A call that succeeds is not heard of again: the agent's next message tells that it is over."""
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
        """What a command printed: empty where the agent says that it printed nothing, None where it does not say."""
        told = [fields[key] for fields in self._levels(raw) for key in _PRINTED if isinstance(fields.get(key), str)]
        return next((printed for printed in told if printed), "") if told else None

    def _told(self, raw: Any, keys: Iterable[str]) -> str:
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
