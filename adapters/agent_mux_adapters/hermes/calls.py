"""Tool calls: how they begin, what they are asked, what comes of them.

`tool.start` says which tool, `tool.complete` says with which arguments. With the progress set to `verbose` the start
tells the arguments, too, for people to read: shortened when long, and masked where they look like a secret. They are
believed only when neither can have happened.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from agent_mux.facts import Fact, McpBegin, McpDone, Shell, SkillInvoked, ToolBegin, ToolDone, ToolReady
from agent_mux.native_json import load_object
from agent_mux_adapters._dialects.tolerant import LARGEST, as_json, mapping, text
from agent_mux_adapters.hermes.edits import Edits
from agent_mux_adapters.hermes.servers import Servers

SHELL = "terminal"
SCRIPT = "execute_code"
QUESTION = "clarify"
DELEGATION = "delegate_task"
SKILL = "skill_view"
BLOCKED = "blocked"
_FAILED = frozenset({"error", "failed", "timeout", "interrupted", BLOCKED})
_MASKS = ("***", "...", "«redacted")
_REMARK = re.compile(r"\n*\[Command (?:interrupted|timed out after \d+s)\]\Z")
"""Hermes' own words at the end of an output."""
_SILENT = "the tool failed and said nothing"


class Call(msgspec.Struct, kw_only=True):
    """A call that has not ended."""

    id: str
    name: str
    arguments: Mapping[str, Any] | None = None
    """None: not known for certain before the end."""

    @property
    def command(self) -> str:
        """What it runs, if it is known to run something."""
        return text((self.arguments or {}).get("command"))


class Calls:
    """The open calls of the main agent."""

    def __init__(self, cwd: str, servers: Servers) -> None:
        self._servers = servers
        self._edits = Edits(cwd)
        self._open: dict[str, Call] = {}
        self.unasked = False
        """Nothing is asked for: commands start at once."""

    @property
    def open(self) -> Iterable[Call]:
        """In the order they began."""
        return self._open.values()

    def begun(self, payload: Mapping[str, Any]) -> tuple[Fact, ...]:
        """`tool.start` of an ordinary tool."""
        call = Call(id=text(payload.get("tool_id")), name=text(payload.get("name")), arguments=_told_early(payload))
        self._open[call.id] = call
        if self._servers.is_mcp(call.name):
            return self._ready(call) if call.arguments is not None else ()
        begin = ToolBegin(call.id, call.name)
        return (begin,) if call.arguments is None else (begin, *self._ready(call))

    def called(self, call_id: str, name: str, arguments: Mapping[str, Any]) -> tuple[Fact, ...]:
        """A call of which everything is known, as a stored message has it."""
        call = self._open[call_id] = Call(id=call_id, name=name, arguments=arguments)
        return self._ready(call)

    def done(self, payload: Mapping[str, Any]) -> tuple[Fact, ...]:
        """`tool.complete`."""
        call_id, name = text(payload.get("tool_id")), text(payload.get("name"))
        call = Call(id=call_id, name=name, arguments=mapping(payload.get("args")))
        return *self._ready(call), *self.ended(call, payload)

    def ended(self, call: Call, payload: Mapping[str, Any]) -> tuple[Fact, ...]:
        """What came of it: the `result`, and beside it what else `tool.complete` tells."""
        self._open.pop(call.id, None)
        name, result = call.name, payload.get("result")
        error = error_of(result)
        if self._servers.is_mcp(name):
            output = mapping(result).get("result", result)
            return (McpDone(call.id, None if error else output, error),)
        took = _milliseconds(payload.get("duration_s"))
        if name == SHELL:
            return (_shell_done(call.id, mapping(result), result, took),)
        if error is not None:
            return (ToolDone(call.id, error=error, duration_ms=took, name=name),)
        files = self._edits.of(name, call.arguments or {}, payload)
        done = ToolDone(call.id, result, duration_ms=took, files=files, name=name)
        skill = text((call.arguments or {}).get("name")) if name == SKILL else ""
        return done, *((SkillInvoked(skill),) if skill else ())

    def forget(self) -> None:
        """The turn is over."""
        self._open.clear()

    def _ready(self, call: Call) -> tuple[Fact, ...]:
        arguments = dict(call.arguments or {})
        if self._servers.is_mcp(call.name):
            server, tool = self._servers.split(call.name)
            return (McpBegin(call.id, server, tool, arguments),)
        return (ToolReady(call.id, call.name, arguments, _shell_of(call), permitted=self.unasked),)


def error_of(result: Any) -> str | None:
    """What a result says went wrong; None when it says nothing of the kind."""
    fields = mapping(result)
    said = fields.get("error")
    if said:
        return said if isinstance(said, str) else as_json(said)
    if fields.get("success") is False or fields.get("status") in _FAILED:
        return text(fields.get("message")) or text(fields.get("output")) or _SILENT
    return None


def _shell_of(call: Call) -> Shell | None:
    """A command whose exit belongs to the call."""
    if call.name != SHELL or not call.command or (call.arguments or {}).get("background"):
        return None
    return Shell(call.command, text((call.arguments or {}).get("workdir")) or None)


def _shell_done(call_id: str, fields: Mapping[str, Any], result: Any, took: int | None) -> ToolDone:
    """The streams are not told apart."""
    output = text(fields.get("output")) if fields else text(result)
    error, code = error_of(result), fields.get("exit_code")
    if fields.get("status") == BLOCKED:  # it never ran
        return ToolDone(call_id, error=error, duration_ms=took, name=SHELL)
    exit_code = code if isinstance(code, int) and not isinstance(code, bool) else None
    if error is None and exit_code:
        error = output or f"exit code {exit_code}"
    return ToolDone(
        call_id,
        None if error else output,
        error,
        took,
        stdout=_REMARK.sub("", output),
        exit_code=exit_code,
        name=SHELL,
    )


def _milliseconds(seconds: Any) -> int | None:
    """None where nobody said, or said what cannot be."""
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    return round(seconds * 1000) if is_number and 0 <= seconds <= LARGEST else None


def _told_early(payload: Mapping[str, Any]) -> Mapping[str, Any] | None:
    shown = text(payload.get("args_text"))
    if not shown or any(mask in shown for mask in _MASKS):
        return None
    return load_object(shown.encode("utf-8", "replace"))
