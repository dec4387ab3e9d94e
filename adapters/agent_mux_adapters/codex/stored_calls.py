"""Tool calls in the model's response items, for rollouts without `item_completed` events of tools.

Written up to 0.147 (`codex exec`) and 0.150 (app-server). The name and the arguments are those that the model used; the
result is the text that the model got, with the exit code in a frame that changed over the releases.
"""

import re
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

from msgspec.structs import replace

from agent_mux.sdk.facts import Fact, ToolDone, ToolReady
from agent_mux.sdk.native_json import load_object
from agent_mux_adapters._dialects.tolerant import mapping, rows, text
from agent_mux_adapters.codex.stored_patches import parse_patch, patch_in_command
from agent_mux_adapters.codex.tools import (
    PATCH_TOOL,
    CodexFileChange,
    CodexToolCall,
    CommandCall,
    McpToolCall,
    PatchCall,
    WebSearchCall,
)

COMMAND_TOOLS = frozenset({"shell", "container.exec", "shell_command", "exec_command", "local_shell"})
_MCP_PREFIX = "mcp__"
_FRAME = re.compile(
    r"(?:Chunk ID: [^\n]*\n)?"
    r"(?:Exit code: (?P<code>-?\d{1,9})\n)?"
    r"Wall time: (?P<seconds>\d{1,9}(?:\.\d{1,9})?) seconds\n"
    r"(?:Process exited with code (?P<exited>-?\d{1,9})\n)?"
    r"(?P<running>Process running with session ID [^\n]*\n)?"
    r"(?:(?:Original token count|Total output lines): \d+\n)*"
    r"Output:\n"
)


class StoredCall(CodexToolCall, frozen=True, kw_only=True, gc=False):
    """A call of a tool without an item of its own."""

    tool: str
    arguments: Any = None
    output: Any = None

    def begin_facts(self) -> tuple[Fact, ...]:
        """Return the call with its arguments."""
        return (ToolReady(self.id, self.tool, self.arguments),)

    def end_facts(self) -> tuple[Fact, ...]:
        """Return the result, which is the error if the call failed."""
        error = (text(self.output) or "the tool failed") if self.status == "failed" else None
        return (ToolDone(self.id, self.output, error, self.duration_ms, name=self.tool),)


class StoredOutput(NamedTuple):
    """The result of a call, as the model got it, without its frame."""

    text: str
    exit_code: int | None = None
    duration_ms: int | None = None
    is_framed: bool = False
    """Whether the text had the frame of a command that ran."""
    is_failure: bool = False
    """Whether the result is marked as a failure."""


def read_call(item: Mapping[str, Any], cwd: str) -> CodexToolCall:
    """Return the call that a response item begins."""
    call_id, name = text(item.get("call_id")) or text(item.get("id")), text(item.get("name"))
    match item.get("type"):
        case "web_search_call":
            action = mapping(item.get("action"))
            return WebSearchCall(id=call_id, query=text(action.get("query")), action=item.get("action"))
        case "local_shell_call":
            action = mapping(item.get("action"))
            return _command(call_id, action.get("command"), text(action.get("working_directory")), cwd)
        case "custom_tool_call":
            patch = text(item.get("input"))
            changes = parse_patch(patch, cwd) if name == PATCH_TOOL else ()
            return _patch(call_id, changes) if changes else StoredCall(id=call_id, tool=name, arguments=patch)
    return _function(call_id, name, text(item.get("arguments")), cwd)


def _function(call_id: str, name: str, written: str, cwd: str) -> CodexToolCall:
    arguments = load_object(written.encode("utf-8", "replace"))
    fields = mapping(arguments)
    if name in COMMAND_TOOLS:
        return _command(call_id, fields.get("command") or fields.get("cmd"), text(fields.get("workdir")), cwd)
    if name == PATCH_TOOL:
        changes = parse_patch(text(fields.get("input")), cwd)
        if changes:
            return _patch(call_id, changes)
    server, separator, tool = name.removeprefix(_MCP_PREFIX).partition("__")
    if name.startswith(_MCP_PREFIX) and separator:
        return McpToolCall(id=call_id, server=server, tool=tool, arguments=arguments)
    return StoredCall(id=call_id, tool=name, arguments=written if arguments is None else arguments)


def _command(call_id: str, command: Any, workdir: str, cwd: str) -> CodexToolCall:
    words = [word for word in command if isinstance(word, str)] if isinstance(command, list) else None
    script = text(command) if words is None else words[-1] if words else ""
    if words is not None and words[:1] == [PATCH_TOOL]:
        changes = parse_patch(script, workdir or cwd)
    else:
        changes = patch_in_command(script, workdir or cwd)
    if changes:
        return _patch(call_id, changes)
    return CommandCall(id=call_id, command=script if words is None else shlex.join(words), cwd=workdir or None)


def _patch(call_id: str, changes: tuple[CodexFileChange, ...]) -> PatchCall:
    return PatchCall(id=call_id, changes=list(changes))


def complete(call: CodexToolCall, stored: Any) -> CodexToolCall:
    """Return the call with its result."""
    output = read_output(stored)
    status = "failed" if output.is_failure or output.exit_code else "completed"
    match call:
        case CommandCall():
            # Without a frame the text is the reason why the command did not run, or was stopped.
            return replace(
                call,
                status=status if output.is_framed else "failed",
                aggregated_output=output.text,
                exit_code=output.exit_code,
                duration_ms=output.duration_ms,
            )
        case PatchCall():
            return replace(call, status=status if output.is_framed else "failed")
        case McpToolCall():
            content = [{"type": "text", "text": output.text}]
            return replace(call, status=status, result={"content": content}, duration_ms=output.duration_ms)
        case StoredCall():
            return replace(call, status=status, output=output.text)
    return call


def read_output(stored: Any) -> StoredOutput:
    """Return the result of a response item: a text, a list of blocks, or an object with one of them."""
    if isinstance(stored, dict):
        inner = read_output(stored.get("content") or stored.get("content_items"))
        return inner._replace(is_failure=stored.get("success") is False)
    if isinstance(stored, list):
        stored = "\n".join(text(block.get("text")) for block in rows(stored))
    output = text(stored)
    if output.startswith('{"'):
        framed = load_object(output.encode("utf-8", "replace")) or {}
        metadata = framed.get("metadata")
        if isinstance(metadata, dict) and isinstance(framed.get("output"), str):
            return StoredOutput(
                framed["output"],
                _integer(metadata.get("exit_code")),
                _milliseconds(metadata.get("duration_seconds")),
                is_framed=True,
            )
    frame = _FRAME.match(output)
    if frame is None:
        return StoredOutput(output)
    code = frame["code"] or frame["exited"]
    return StoredOutput(
        output[frame.end() :],
        None if code is None else int(code),
        _milliseconds(float(frame["seconds"])),
        is_framed=True,
    )


def _integer(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 31 else None


def _milliseconds(seconds: Any) -> int | None:
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    return round(seconds * 1000) if is_number and 0 <= seconds < 1e9 else None
