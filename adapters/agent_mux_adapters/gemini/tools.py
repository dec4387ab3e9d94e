"""The tools of Gemini CLI 0.61.0: names, inputs, and the calls of stream-json.

Paths in inputs are absolute or relative to the working directory.
"""

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import msgspec

from agent_mux.sdk import unified_diff
from agent_mux.sdk.facts import (
    Fact,
    FileEffect,
    FilePatched,
    FileRead,
    FileWritten,
    McpBegin,
    McpDone,
    ShellInvocation,
    SkillInvoked,
    SubagentBegin,
    SubagentDone,
    ToolDone,
    ToolReady,
)
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.gemini.tool_results import read_report

SHELL = "run_shell_command"
READ = "read_file"
WRITE = "write_file"
REPLACE = "replace"
DELEGATE = "invoke_agent"
SKILL = "activate_skill"
_MCP = re.compile(r"mcp_([^_]+)_(.+)", re.DOTALL)  # the CLI parses its own names with this pattern


def mcp_tool(name: str) -> tuple[str, str] | None:
    """Return the MCP server and its tool; None for a tool of the CLI itself."""
    match = _MCP.fullmatch(name)
    return (match[1], match[2]) if match is not None else None


def shell_of(name: str, arguments: Mapping[str, Any], cwd: str) -> ShellInvocation | None:
    """Return the command of a foreground shell call; None for other calls."""
    command = text(arguments.get("command"))
    if name != SHELL or not command or arguments.get("is_background") is True:
        return None
    place = text(arguments.get("dir_path"))
    return ShellInvocation(command, absolute(place, cwd) if place else None)


def file_effects(name: str, arguments: Mapping[str, Any], cwd: str, *, was_missing: bool) -> tuple[FileEffect, ...]:
    """Return the effect of a successful call on its file, as far as its input shows.

    `was_missing` states whether the file was missing before the call.
    """
    path = absolute(text(arguments.get("file_path")), cwd)
    if not path:
        return ()
    match name:
        case "read_file":
            return (FileRead(path),)
        case "write_file":
            return (written(path, text(arguments.get("content")), created=was_missing),)
        case "replace":
            return _replaced(path, text(arguments.get("old_string")), text(arguments.get("new_string")), cwd)
    return ()


def absolute(path: str, cwd: str) -> str:
    """Return the path resolved against the working directory; empty when it is empty."""
    return str(PurePath(cwd, path)) if path else ""


def written(path: str, content: str, *, created: bool) -> FileWritten:
    """Return the effect of writing a whole file."""
    return FileWritten(path, len(content.encode("utf-8", "replace")), created)


def _replaced(path: str, old: str, new: str, cwd: str) -> tuple[FileEffect, ...]:
    if not old:  # the model creates a file by an empty `old_string`
        return (written(path, new, created=True),)
    diff = unified_diff.from_replacements(path, [(_as_lines(old), _as_lines(new))])
    return (unified_diff.relative_to(cwd, FilePatched(path, diff)),) if diff else ()


def _as_lines(fragment: str) -> str:
    """Return a replaced fragment as whole lines, because the text around it is not known."""
    return fragment if not fragment or fragment.endswith("\n") else f"{fragment}\n"


# -- calls of stream-json

MISSING_FILE = "file_not_found"
_NO_REASON = "the tool failed without a message"


class _Call(msgspec.Struct, frozen=True):
    name: str
    input: Mapping[str, Any]


class GeminiCalls:
    """The open calls of one run."""

    def __init__(self, cwd: str, *, permitted: bool) -> None:
        self._cwd = cwd
        self._permitted = permitted
        """Whether every tool runs without approval."""
        self._open: dict[str, _Call] = {}
        self._missing: set[str] = set()
        """Paths that the model could not read because the file was missing."""

    def start(self, call_id: str, name: str, arguments: Mapping[str, Any]) -> Fact:
        """Return the fact of a call with its whole input."""
        self._open[call_id] = _Call(name, arguments)
        mcp = mcp_tool(name)
        if mcp is not None:
            return McpBegin(call_id, *mcp, arguments)
        if name == DELEGATE:
            return SubagentBegin(call_id, text(arguments.get("agent_name")) or "agent", text(arguments.get("prompt")))
        shell = shell_of(name, arguments, self._cwd)
        return ToolReady(call_id, name, arguments, shell, permitted=self._permitted)

    def finish(self, call_id: str, result: Mapping[str, Any], *, created: bool = False) -> tuple[Fact, ...]:
        """Return the facts of a `tool_result` line, which ends a call.

        `created` states that its file is known to be new.
        """
        call = self._open.pop(call_id, _Call("", {}))
        output, error = text(result.get("output")), _error_of(result)
        if mcp_tool(call.name) is not None:
            return (McpDone(call_id, output, error),)
        if call.name == DELEGATE:
            return (SubagentDone(call_id, output, error),)
        if error is not None:
            self._failed(call, mapping(result.get("error")))
            return (ToolDone(call_id, error=error, name=call.name or None),)
        if call.name == SHELL:
            return (self._command_done(call_id, call, output),)
        skill = text(call.input.get("name")) if call.name == SKILL else ""
        done = ToolDone(call_id, output, files=self._files(call, created=created), name=call.name or None)
        return (done, SkillInvoked(skill)) if skill else (done,)

    def _command_done(self, call_id: str, call: _Call, output: str) -> Fact:
        if shell_of(call.name, call.input, self._cwd) is None:  # a background command has only started
            return ToolDone(call_id, output, name=call.name)
        report = read_report(output)
        return ToolDone(
            call_id, report.output, report.error, stdout=report.output, exit_code=report.exit_code, name=call.name
        )

    def _files(self, call: _Call, *, created: bool) -> tuple[Any, ...]:
        path = absolute(text(call.input.get("file_path")), self._cwd)
        was_missing = created or path in self._missing
        self._missing.discard(path)
        return file_effects(call.name, call.input, self._cwd, was_missing=was_missing)

    def _failed(self, call: _Call, error: Mapping[str, Any]) -> None:
        if error.get("type") == MISSING_FILE:
            self._missing.add(absolute(text(call.input.get("file_path")), self._cwd))


def _error_of(result: Mapping[str, Any]) -> str | None:
    """Return the error that the model was shown; None when there was none."""
    error = mapping(result.get("error"))
    if result.get("status") != "error" and not error:
        return None
    return text(error.get("message")) or text(result.get("output")) or _NO_REASON
