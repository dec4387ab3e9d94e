"""The tool calls of a run, from their first fragment to their result."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from agent_mux import facts
from agent_mux.adapter import CodecContext
from agent_mux.native_json import load_object
from agent_mux_adapters._dialects.pi.flavor import Flavor
from agent_mux_adapters._dialects.pi.results import Result, images, read_result
from agent_mux_adapters._dialects.pi.shell import ShellOutput, shell_done
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters._dialects.unified_diff import relative_to

Facts = tuple[facts.Fact, ...]


class Call(msgspec.Struct):
    """A call that waits for its result."""

    name: str
    input: Mapping[str, Any]
    shell: ShellOutput | None = None
    """Of a foreground command."""
    starts: bool = False
    """The agent said that it executes it; in omp that it was approved."""


class ToolCalls:
    """The calls that were told, and wait for their result."""

    def __init__(self, flavor: Flavor, context: CodecContext) -> None:
        self.goes_on: Callable[[str, str], Facts] | None = None
        """Who is told that a call ended whose work goes on in the background, and the name of that work."""
        self._flavor = flavor
        self._cwd = context.cwd
        self._servers = [server.name for server in context.mcp_servers]
        self._open: dict[str, Call] = {}

    def get(self, call_id: str) -> Call | None:
        """A call that waits for its result."""
        return self._open.get(call_id)

    def waiting(self) -> list[tuple[str, Call]]:
        """The calls whose execution the agent has not told yet, in the order the model made them."""
        return [(call_id, call) for call_id, call in self._open.items() if not call.starts]

    # -- the input

    def begin(self, call_id: str, name: str) -> Facts:
        """The input begins to stream. What is told whole says nothing yet."""
        return () if call_id in self._open or self._is_told_whole(name) else (facts.ToolBegin(call_id, name),)

    def add_input(self, call_id: str, delta: str) -> Facts:
        """A fragment of the input."""
        return (facts.ToolInput(call_id, delta),) if delta else ()

    def ready_raw(self, block: bytes) -> Facts:
        """The input is complete; JSON text of the block."""
        return self.ready(load_object(block) or {})

    def ready(self, block: Mapping[str, Any]) -> Facts:
        """The input is complete: a `toolCall` block."""
        return self._ready(text(block.get("id")), text(block.get("name")), block.get("arguments"))

    def _ready(self, call_id: str, name: str, arguments: Any) -> Facts:
        if not call_id or call_id in self._open:
            return ()
        fields = mapping(arguments)
        call = self._open[call_id] = Call(name, fields)
        server_and_tool = self._mcp_name(name)
        if server_and_tool is not None:
            return (facts.McpBegin(call_id, *server_and_tool, arguments),)
        if name in self._flavor.delegating:
            return (facts.SubagentBegin(call_id, text(fields.get("agent")) or name, text(fields.get("task"))),)
        shell = self._flavor.shell_of(name, fields)
        call.shell = ShellOutput() if shell is not None else None
        return (facts.ToolReady(call_id, name, arguments, shell),)

    def _is_told_whole(self, name: str) -> bool:
        return name in self._flavor.delegating or self._mcp_name(name) is not None

    def _mcp_name(self, name: str) -> tuple[str, str] | None:
        return self._flavor.mcp_name(name, self._servers)

    # -- the execution

    def started(self, line: Mapping[str, Any]) -> Facts:
        """`tool_execution_start`."""
        call_id = text(line.get("toolCallId"))
        told = self._ready(call_id, text(line.get("toolName")), line.get("args"))
        if call_id in self._open:
            self._open[call_id].starts = True
        return told or (facts.Ignored("tool_execution_start", "told when its input was complete"),)

    def updated(self, line: Mapping[str, Any]) -> Facts:
        """`tool_execution_update`: all of the result so far."""
        call_id = text(line.get("toolCallId"))
        call = self._open.get(call_id)
        if call is not None and call.shell is not None:
            result = read_result(call_id, line.get("partialResult"), failed=False)
            fresh = call.shell.advance(self._flavor.printed(result.shown, result.details, False))
            if fresh:
                return (facts.ToolOutput(call_id, fresh),)
        return (facts.Ignored("tool_execution_update", "a preview of the result"),)

    def ended(self, line: Mapping[str, Any]) -> Facts:
        """`tool_execution_end`."""
        call_id, name = text(line.get("toolCallId")), text(line.get("toolName"))
        call = self._open.pop(call_id, None) or Call(name, {})
        result = read_result(call_id, line.get("result"), failed=line.get("isError") is True)
        if self._mcp_name(call.name) is not None:
            done: facts.Fact = facts.McpDone(call_id, *((None, result.error) if result.failed else (result.output,)))
            return done, *images(result)
        if call.name in self._flavor.delegating:
            return self._delegated(result)
        if call.shell is not None:
            return shell_done(call.name, call.shell, result, self._flavor)
        return self._done(call, result), *images(result)

    def _delegated(self, result: Result) -> Facts:
        background = mapping(result.details.get("async"))
        if self.goes_on is not None and background.get("state") == "running" and not result.failed:
            return self.goes_on(result.call_id, text(background.get("jobId")))
        return (facts.SubagentDone(result.call_id, result.shown, result.error if result.failed else None),)

    def _done(self, call: Call, result: Result) -> facts.ToolDone:
        if result.failed:
            return facts.ToolDone(result.call_id, error=result.error, name=call.name or None)
        effect = self._flavor.effects.get(call.name)
        files = effect(call.input, result.details) if effect is not None else ()
        relative = tuple(relative_to(self._cwd, file) for file in files)
        return facts.ToolDone(result.call_id, output=result.output, files=relative, name=call.name or None)
