"""The tool calls of stream-json, from their input to their end."""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_mux.facts import (
    Fact,
    McpBegin,
    McpDone,
    SkillInvoked,
    SubagentBegin,
    SubagentDone,
    ToolDone,
    ToolReady,
)
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.gemini import tools
from agent_mux_adapters.gemini.shell_report import read_report

MISSING_FILE = "file_not_found"
_NO_REASON = "the tool failed and said nothing"


class _Call(msgspec.Struct, frozen=True):
    name: str
    input: Mapping[str, Any]


class Calls:
    """The calls of one run."""

    def __init__(self, cwd: str, *, unasked: bool) -> None:
        self._cwd = cwd
        self._unasked = unasked
        """Every tool runs as soon as it is called."""
        self._open: dict[str, _Call] = {}
        self._missing: set[str] = set()
        """Files that the model asked for in vain."""

    def begun(self, call_id: str, name: str, given: Mapping[str, Any]) -> Fact:
        """A call, with its whole input."""
        self._open[call_id] = _Call(name, given)
        mcp = tools.mcp_tool(name)
        if mcp is not None:
            return McpBegin(call_id, *mcp, given)
        if name == tools.DELEGATE:
            return SubagentBegin(call_id, text(given.get("agent_name")) or "agent", text(given.get("prompt")))
        shell = tools.shell_of(name, given, self._cwd)
        return ToolReady(call_id, name, given, shell, permitted=self._unasked)

    def ended(self, call_id: str, result: Mapping[str, Any], *, created: bool = False) -> tuple[Fact, ...]:
        """The end of a call, as a `tool_result` line tells it. `created`: its file is known to be a new one."""
        call = self._open.pop(call_id, _Call("", {}))
        shown, error = text(result.get("output")), _error_of(result)
        if tools.mcp_tool(call.name) is not None:
            return (McpDone(call_id, shown, error),)
        if call.name == tools.DELEGATE:
            return (SubagentDone(call_id, shown, error),)
        if error is not None:
            self._failed(call, mapping(result.get("error")))
            return (ToolDone(call_id, error=error, name=call.name or None),)
        if call.name == tools.SHELL:
            return (self._command_done(call_id, call, shown),)
        skill = text(call.input.get("name")) if call.name == tools.SKILL else ""
        done = ToolDone(call_id, shown, files=self._files(call, created=created), name=call.name or None)
        return (done, SkillInvoked(skill)) if skill else (done,)

    def _command_done(self, call_id: str, call: _Call, shown: str) -> Fact:
        if tools.shell_of(call.name, call.input, self._cwd) is None:  # in the background: it only began
            return ToolDone(call_id, shown, name=call.name)
        report = read_report(shown)
        return ToolDone(
            call_id, report.output, report.error, stdout=report.output, exit_code=report.exit_code, name=call.name
        )

    def _files(self, call: _Call, *, created: bool) -> tuple[Any, ...]:
        path = tools.absolute(text(call.input.get("file_path")), self._cwd)
        was_missing = created or path in self._missing
        self._missing.discard(path)
        return tools.file_effects(call.name, call.input, self._cwd, was_missing=was_missing)

    def _failed(self, call: _Call, error: Mapping[str, Any]) -> None:
        if error.get("type") == MISSING_FILE:
            self._missing.add(tools.absolute(text(call.input.get("file_path")), self._cwd))


def _error_of(result: Mapping[str, Any]) -> str | None:
    """What the model was told of a failure; None when there was none."""
    error = mapping(result.get("error"))
    if result.get("status") != "error" and not error:
        return None
    return text(error.get("message")) or text(result.get("output")) or _NO_REASON
