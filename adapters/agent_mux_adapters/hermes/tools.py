"""Tool calls of Hermes: their inputs and results, and what file tools changed on disk.

`tool.start` names the tool, `tool.complete` has its arguments. With the progress set to `verbose`, `tool.start` shows
the arguments, too, formatted for people: shortened when long, and masked where they look like a secret. They are used
only when neither can have happened.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from agent_mux.sdk.facts import (
    Fact,
    FileDeleted,
    FileEffect,
    FilePatched,
    FileRead,
    FileWritten,
    McpBegin,
    McpDone,
    ShellInvocation,
    SkillInvoked,
    ToolBegin,
    ToolDone,
    ToolReady,
)
from agent_mux.sdk.native_json import load_object
from agent_mux.sdk.unified_diff import NO_NEWLINE, from_replacements, relative_to, with_header
from agent_mux_adapters._dialects.tolerant import LARGEST, as_json, mapping, text
from agent_mux_adapters.hermes.mcp_servers import HermesMcpServers, is_mcp_tool

SHELL = "terminal"
SCRIPT = "execute_code"
QUESTION = "clarify"
DELEGATION = "delegate_task"
SKILL = "skill_view"
BLOCKED = "blocked"
_FAILED = frozenset({"error", "failed", "timeout", "interrupted", BLOCKED})
_MASKS = ("***", "...", "«redacted")
_OUTPUT_REMARK = re.compile(r"\n*\[Command (?:interrupted|timed out after \d+s)\]\Z")
"""A remark that Hermes itself appends to the output of a command."""
_NO_ERROR_TEXT = "the tool failed without an error message"


class HermesCall(msgspec.Struct, kw_only=True):
    """A tool call that has not ended."""

    id: str
    name: str
    arguments: Mapping[str, Any] | None = None
    """None when they are not certain before the end of the call."""

    @property
    def command(self) -> str:
        """The command that the call runs; empty when it runs none or its arguments are not certain."""
        return text((self.arguments or {}).get("command"))


class HermesTools:
    """The open tool calls of the main agent."""

    def __init__(self, cwd: str, servers: HermesMcpServers) -> None:
        self._servers = servers
        self._edits = HermesEdits(cwd)
        self._open: dict[str, HermesCall] = {}
        self.is_unattended = False
        """Whether Hermes asks for no permissions, so that commands start at once."""

    @property
    def open_calls(self) -> Iterable[HermesCall]:
        """The open calls in the order of their starts."""
        return self._open.values()

    def start(self, payload: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Read `tool.start` of a tool that is neither a question nor a delegation."""
        call = HermesCall(
            id=text(payload.get("tool_id")), name=text(payload.get("name")), arguments=_early_arguments(payload)
        )
        self._open[call.id] = call
        if is_mcp_tool(call.name):
            return self._ready(call) if call.arguments is not None else ()
        begin = ToolBegin(call.id, call.name)
        return (begin,) if call.arguments is None else (begin, *self._ready(call))

    def start_stored(self, call_id: str, name: str, arguments: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Return the facts of a call in a stored message, whose arguments are complete."""
        call = self._open[call_id] = HermesCall(id=call_id, name=name, arguments=arguments)
        return self._ready(call)

    def complete(self, payload: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Read `tool.complete`, which has the arguments and the result."""
        call_id, name = text(payload.get("tool_id")), text(payload.get("name"))
        call = HermesCall(id=call_id, name=name, arguments=mapping(payload.get("args")))
        return *self._ready(call), *self.end(call, payload)

    def end(self, call: HermesCall, payload: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Return the facts of a result: `result` of the payload, with the duration and the diff beside it."""
        self._open.pop(call.id, None)
        name, result = call.name, payload.get("result")
        error = error_of(result)
        if is_mcp_tool(name):
            output = mapping(result).get("result", result)
            return (McpDone(call.id, None if error else output, error),)
        duration = _milliseconds(payload.get("duration_s"))
        if name == SHELL:
            return (_shell_done(call.id, mapping(result), result, duration),)
        if error is not None:
            return (ToolDone(call.id, error=error, duration_ms=duration, name=name),)
        files = self._edits.effects_of(name, call.arguments or {}, payload)
        done = ToolDone(call.id, result, duration_ms=duration, files=files, name=name)
        skill = text((call.arguments or {}).get("name")) if name == SKILL else ""
        return done, *((SkillInvoked(skill),) if skill else ())

    def clear(self) -> None:
        """Drop the open calls at the end of a turn."""
        self._open.clear()

    def _ready(self, call: HermesCall) -> tuple[Fact, ...]:
        arguments = dict(call.arguments or {})
        if is_mcp_tool(call.name):
            server, tool = self._servers.split_tool_name(call.name)
            return (McpBegin(call.id, server, tool, arguments),)
        return (ToolReady(call.id, call.name, arguments, _shell_of(call), permitted=self.is_unattended),)


def error_of(result: Any) -> str | None:
    """Return the error in a result; None when the result reports success."""
    fields = mapping(result)
    error = fields.get("error")
    if error:
        return error if isinstance(error, str) else as_json(error)
    if fields.get("success") is False or text(fields.get("status")) in _FAILED:
        return text(fields.get("message")) or text(fields.get("output")) or _NO_ERROR_TEXT
    return None


def _shell_of(call: HermesCall) -> ShellInvocation | None:
    """Return the command of a call that ends with it; None for other tools and for background commands."""
    if call.name != SHELL or not call.command or (call.arguments or {}).get("background"):
        return None
    return ShellInvocation(call.command, text((call.arguments or {}).get("workdir")) or None)


def _shell_done(call_id: str, fields: Mapping[str, Any], result: Any, duration: int | None) -> ToolDone:
    """Return the end of a command. Hermes merges stdout and stderr."""
    output = text(fields.get("output")) if fields else text(result)
    error, code = error_of(result), fields.get("exit_code")
    if fields.get("status") == BLOCKED:  # the command never ran
        return ToolDone(call_id, error=error, duration_ms=duration, name=SHELL)
    exit_code = code if isinstance(code, int) and not isinstance(code, bool) else None
    if error is None and exit_code:
        error = output or f"exit code {exit_code}"
    return ToolDone(
        call_id,
        None if error else output,
        error,
        duration,
        stdout=_OUTPUT_REMARK.sub("", output),
        exit_code=exit_code,
        name=SHELL,
    )


def _milliseconds(seconds: Any) -> int | None:
    """Convert a duration in seconds; None when it is missing or impossible."""
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    return round(seconds * 1000) if is_number and 0 <= seconds <= LARGEST else None


def _early_arguments(payload: Mapping[str, Any]) -> Mapping[str, Any] | None:
    shown = text(payload.get("args_text"))
    if not shown or any(mask in shown for mask in _MASKS):
        return None
    return load_object(shown.encode("utf-8", "replace"))


# -- files

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_NEW_FILE_HUNK = re.compile(r"@@ -0,0 \+")
_FILE_HEADER = re.compile(r"^--- (?:a/(.+)|/dev/null)\n\+\+\+ (?:b/(.+)|/dev/null)\n", re.MULTILINE)
_MOVED = re.compile(r"^# Moved: (.+) -> .+$", re.MULTILINE)
_MAX_NUMBER_LENGTH = 9  # digits


class HermesEdits:
    """Effects of file tools, from their arguments, their results and the diffs that Hermes shows.

    Hermes prints Python's `difflib` output: a line without a final newline runs into the next one, and lines are
    counted as `str.splitlines` counts them. Where that makes the diff invalid, a diff is built from the replacement
    instead.
    """

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self._seen: set[str] = set()

    def effects_of(self, name: str, arguments: Mapping[str, Any], payload: Mapping[str, Any]) -> tuple[FileEffect, ...]:
        """Return the effects of a call that succeeded; none when the tool is not a file tool."""
        reader = _EDIT_READERS.get(name)
        found = tuple(reader(self, arguments, payload)) if reader is not None else ()
        self._seen.update(effect.path for effect in found)
        return tuple(relative_to(self._cwd, effect) for effect in found)

    def read_file(self, arguments: Mapping[str, Any], _: Mapping[str, Any]) -> Iterator[FileEffect]:
        """Yield the effect of `read_file`."""
        if text(arguments.get("path")):
            yield FileRead(text(arguments["path"]))

    def write_file(self, arguments: Mapping[str, Any], payload: Mapping[str, Any]) -> Iterator[FileEffect]:
        """Yield the effect of `write_file`. Only the diff shows whether the file is new."""
        path = _edited_path(arguments, payload)
        content = text(arguments.get("content"))
        diff = text(payload.get("inline_diff"))
        is_new = _NEW_FILE_HUNK.search(diff) is not None or not (diff or content)
        if path:
            created = is_new and path not in self._seen
            yield FileWritten(path, len(content.encode("utf-8", "replace")), created)

    def patch(self, arguments: Mapping[str, Any], payload: Mapping[str, Any]) -> Iterator[FileEffect]:
        """Yield the effects of `patch`: one replacement, or in mode `patch` a patch of several files."""
        diff = text(mapping(payload.get("result")).get("diff"))
        if arguments.get("mode") == "patch":
            yield from _file_sections(diff)
            yield from (FileDeleted(found[1]) for found in _MOVED.finditer(diff))
            return
        path = _edited_path(arguments, payload)
        replacement = text(arguments.get("old_string")), text(arguments.get("new_string"))
        file_diff = _valid_diff(path, _FILE_HEADER.sub("", diff, count=1)) or from_replacements(path, [replacement])
        if path and file_diff:
            yield FilePatched(path, file_diff)


def _edited_path(arguments: Mapping[str, Any], payload: Mapping[str, Any]) -> str:
    return text(mapping(payload.get("result")).get("resolved_path")) or text(arguments.get("path"))


def _file_sections(diff: str) -> Iterator[FileEffect]:
    headers = [*_FILE_HEADER.finditer(diff)]
    ends = [*(header.start() for header in headers[1:]), len(diff)]
    for header, end in zip(headers, ends, strict=True):
        body = _MOVED.sub("", diff[header.end() : end])
        before, after = header[1], header[2]
        if before is None and after is not None:
            added = "\n".join(line[1:] for line in body.split("\n") if line.startswith("+"))
            yield FileWritten(after, len(added.encode("utf-8", "replace")), created=True)
        elif after is None and before is not None:
            yield FileDeleted(before)
        elif after is not None and (file_diff := _valid_diff(after, body)):
            yield FilePatched(after, file_diff)


def _valid_diff(path: str, hunks: str) -> str:
    """Return these hunks with a file header; empty when they have other line counts than their headers announce."""
    lines = hunks.rstrip("\n").split("\n")
    taken: list[str] = []
    old = new = 0
    for line in lines:
        header = _HUNK.match(line)
        if header is not None and not (old or new):
            old, new = _line_count(header[1]), _line_count(header[2])
        elif not (old or new) and not line:
            continue  # a blank line between two files
        else:
            old, new = old - (line[:1] in " -"), new - (line[:1] in " +")
            if old < 0 or new < 0 or line[:1] not in (" ", "-", "+"):
                return ""
        taken.append(line)
    if old or new:
        return ""
    return with_header(path, [*taken, *([] if hunks.endswith("\n") else [NO_NEWLINE])]) if hunks.strip() else ""


def _line_count(digits: str | None) -> int:
    return 1 if digits is None else int(digits[:_MAX_NUMBER_LENGTH])


_EditReader = Callable[[HermesEdits, Mapping[str, Any], Mapping[str, Any]], Iterator[FileEffect]]
_EDIT_READERS: Mapping[str, _EditReader] = {
    "read_file": HermesEdits.read_file,
    "write_file": HermesEdits.write_file,
    "patch": HermesEdits.patch,
}
