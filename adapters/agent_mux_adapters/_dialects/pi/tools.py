"""The tool calls of a run, from the first fragment of the input to the result."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from agent_mux.sdk import facts
from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.native_json import load_object
from agent_mux.sdk.unified_diff import relative_to
from agent_mux_adapters._dialects.pi.flavor import Flavor
from agent_mux_adapters._dialects.pi.tool_results import (
    PiShellOutput,
    PiToolResult,
    image_facts,
    read_result,
    shell_done,
)
from agent_mux_adapters._dialects.tolerant import mapping, text

Facts = tuple[facts.Fact, ...]


class PiToolCall(msgspec.Struct):
    """A tool call without a result yet."""

    name: str
    input: Mapping[str, Any]
    shell: PiShellOutput | None = None
    """The output of a foreground command; None for other tools."""
    is_started: bool = False
    """Whether the agent reported the start of its execution; in omp, that it was approved."""


class PiToolCalls:
    """The tool calls of a run that wait for their result."""

    def __init__(self, flavor: Flavor, context: CodecContext) -> None:
        self.on_background_job: Callable[[str, str], Facts] | None = None
        """Called with the call's id and the job's id when a call ends whose job continues in the background."""
        self._flavor = flavor
        self._cwd = context.cwd
        self._servers = [server.name for server in context.mcp_servers]
        self._open: dict[str, PiToolCall] = {}

    def pending(self) -> list[tuple[str, PiToolCall]]:
        """Return the calls whose execution has not started, in the model's order."""
        return [(call_id, call) for call_id, call in self._open.items() if not call.is_started]

    # -- input

    def begin(self, call_id: str, name: str) -> Facts:
        """Begin to stream the input; MCP calls and sub-agents are emitted only with their complete input."""
        return () if call_id in self._open or self._is_emitted_whole(name) else (facts.ToolBegin(call_id, name),)

    def add_input(self, call_id: str, delta: str) -> Facts:
        """Emit a fragment of the input."""
        return (facts.ToolInput(call_id, delta),) if delta else ()

    def complete_input_raw(self, block: bytes) -> Facts:
        """Emit a call whose input is complete, from the JSON text of its `toolCall` block."""
        return self.complete_input(load_object(block) or {})

    def complete_input(self, block: Mapping[str, Any]) -> Facts:
        """Emit a call whose input is complete, from its `toolCall` block."""
        return self._complete_input(text(block.get("id")), text(block.get("name")), block.get("arguments"))

    def _complete_input(self, call_id: str, name: str, arguments: Any) -> Facts:
        if not call_id or call_id in self._open:
            return ()
        fields = mapping(arguments)
        call = self._open[call_id] = PiToolCall(name, fields)
        server_and_tool = self._mcp_name(name)
        if server_and_tool is not None:
            return (facts.McpBegin(call_id, *server_and_tool, arguments),)
        if name in self._flavor.delegating_tools:
            return (facts.SubagentBegin(call_id, text(fields.get("agent")) or name, text(fields.get("task"))),)
        shell = self._flavor.shell_of(name, fields)
        call.shell = PiShellOutput() if shell is not None else None
        return (facts.ToolReady(call_id, name, arguments, shell),)

    def _is_emitted_whole(self, name: str) -> bool:
        return name in self._flavor.delegating_tools or self._mcp_name(name) is not None

    def _mcp_name(self, name: str) -> tuple[str, str] | None:
        return self._flavor.mcp_server_and_tool(name, self._servers)

    # -- execution

    def execution_started(self, line: Mapping[str, Any]) -> Facts:
        """Read `tool_execution_start`; emit the call if its input was not seen."""
        call_id = text(line.get("toolCallId"))
        emitted = self._complete_input(call_id, text(line.get("toolName")), line.get("args"))
        if call_id in self._open:
            self._open[call_id].is_started = True
        return emitted or (facts.Ignored("tool_execution_start", "emitted when its input was complete"),)

    def execution_updated(self, line: Mapping[str, Any]) -> Facts:
        """Read `tool_execution_update`, which repeats the whole result."""
        call_id = text(line.get("toolCallId"))
        call = self._open.get(call_id)
        if call is not None and call.shell is not None:
            result = read_result(call_id, line.get("partialResult"), failed=False)
            new = call.shell.new_output(self._flavor.read_shell_result(result.shown, result.details, False))
            if new:
                return (facts.ToolOutput(call_id, new),)
        return (facts.Ignored("tool_execution_update", "a preview of the result"),)

    def execution_ended(self, line: Mapping[str, Any]) -> Facts:
        """Read `tool_execution_end`: the result of a call."""
        call_id, name = text(line.get("toolCallId")), text(line.get("toolName"))
        call = self._open.pop(call_id, None) or PiToolCall(name, {})
        result = read_result(call_id, line.get("result"), failed=line.get("isError") is True)
        if self._mcp_name(call.name) is not None:
            done: facts.Fact = facts.McpDone(call_id, *((None, result.error) if result.failed else (result.output,)))
            return done, *image_facts(result)
        if call.name in self._flavor.delegating_tools:
            return self._end_subagent(result)
        if call.shell is not None:
            return shell_done(call.name, call.shell, result, self._flavor)
        return self._end_call(call, result), *image_facts(result)

    def _end_subagent(self, result: PiToolResult) -> Facts:
        background = mapping(result.details.get("async"))
        if self.on_background_job is not None and background.get("state") == "running" and not result.failed:
            return self.on_background_job(result.call_id, text(background.get("jobId")))
        return (facts.SubagentDone(result.call_id, result.shown, result.error if result.failed else None),)

    def _end_call(self, call: PiToolCall, result: PiToolResult) -> facts.ToolDone:
        if result.failed:
            return facts.ToolDone(result.call_id, error=result.error, name=call.name or None)
        effect = self._flavor.file_effects.get(call.name)
        files = effect(call.input, result.details) if effect is not None else ()
        relative = tuple(relative_to(self._cwd, file) for file in files)
        return facts.ToolDone(result.call_id, output=result.output, files=relative, name=call.name or None)
