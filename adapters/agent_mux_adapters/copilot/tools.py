"""The tool calls of one agent, from the first fragment of their input to their result.

Copilot prints each complete input twice: in `assistant.message` and in `tool.execution_start`. The first one counts. A
call of `ask_user` is a question, so it is shown as a call only if it fails before the question was asked.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux.events.base import CostRecord
from agent_mux.sdk.facts import Fact, Ignored, McpBegin, ShellInvocation, ToolBegin, ToolInput, ToolOutput, ToolReady
from agent_mux_adapters._dialects.tolerant import mapping, need_text, text
from agent_mux_adapters.copilot.subagents import CopilotSubagents
from agent_mux_adapters.copilot.tool_results import CopilotToolCall, result_facts
from agent_mux_adapters.copilot.wire import BUILT_IN_TOOLS, QUESTION_TOOL, SHELL_TOOLS, SUBAGENT_TOOL

_QUESTION = Ignored("ask_user", "a question, which has its own event")
_IN_BACKGROUND = "async"


def shell_of(name: str, arguments: Any) -> ShellInvocation | None:
    """Return the command of a foreground shell call; None for any other call.

    A command in the background has no shell events: its exit is not the end of the call.
    """
    fields = mapping(arguments)
    command = text(fields.get("command"))
    if name not in SHELL_TOOLS or not command or fields.get("mode") == _IN_BACKGROUND or fields.get("detach") is True:
        return None
    return ShellInvocation(command)


def mcp_tool_of(row: Mapping[str, Any], name: str) -> tuple[str, str] | None:
    """Return the MCP server and its tool that a call is for; None for one of Copilot's own tools."""
    server = text(row.get("mcpServerName"))
    return (server, text(row.get("mcpToolName")) or name) if server else None


class CopilotToolCalls:
    """The calls of one agent that have no result yet."""

    def __init__(self, subagents: CopilotSubagents) -> None:
        self._subagents = subagents
        self._open: dict[str, CopilotToolCall] = {}
        self._streamed: set[str] = set()
        """The calls whose input is streamed."""
        self._asked: set[str] = set()
        """The calls of `ask_user` whose question was asked."""

    def input_delta(self, call_id: str, name: str, fragment: str) -> tuple[Fact, ...]:
        """Return the facts for a fragment of an input; empty if only the complete input is shown."""
        if call_id in self._streamed:
            return (ToolInput(call_id, fragment),)
        if name not in BUILT_IN_TOOLS:
            return ()
        self._streamed.add(call_id)
        return ToolBegin(call_id, name), ToolInput(call_id, fragment)

    def begin(self, row: Mapping[str, Any], name: str) -> tuple[Fact, ...]:
        """Return the start of a call from one of `assistant.message.toolRequests` or `tool.execution_start`."""
        call_id, arguments = need_text(row, "toolCallId"), row.get("arguments")
        if call_id in self._open:
            return (Ignored("tool.execution_start", "the message contained the call"),)
        mcp = mcp_tool_of(row, name)
        shell = shell_of(name, arguments) if mcp is None else None
        self._open[call_id] = CopilotToolCall(name, arguments, is_mcp=mcp is not None, is_command=shell is not None)
        if mcp is not None:
            return (McpBegin(call_id, *mcp, arguments),)
        if name == SUBAGENT_TOOL:
            begun = self._subagents.begin(call_id, arguments)
            return begun or (Ignored("tool.execution_start", "the sub-agent has begun before"),)
        if name == QUESTION_TOOL:
            return (_QUESTION,)
        return (ToolReady(call_id, name, arguments, shell),)

    def output(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Handle `tool.shell_output`: return a chunk of a command's output."""
        call_id = need_text(data, "toolCallId")
        call = self._open.get(call_id)
        if call is None or not call.is_command:
            return (Ignored("tool.shell_output", "output of a command that continues after its call"),)
        if data.get("stream") == "stderr":
            call.has_stderr = True
            return (ToolOutput(call_id, text(data.get("text")), "stderr"),)
        return (ToolOutput(call_id, text(data.get("text"))),)

    def question_asked(self, call_id: str) -> None:
        """Record that the question of this call was asked."""
        self._asked.add(call_id)

    def complete(self, data: Mapping[str, Any], cwd: str, cost: CostRecord | None) -> tuple[Fact, ...]:
        """Handle `tool.execution_complete`. `cost`: of the sub-agent that the call started, if any."""
        call_id = need_text(data, "toolCallId")
        call = self._open.pop(call_id, None)
        if call is None:
            call = CopilotToolCall(text(mapping(data.get("toolDescription")).get("name")), None)
        if call.name == SUBAGENT_TOOL:
            result = text(mapping(data.get("result")).get("content"))
            failure = None if data.get("success") is True else text(mapping(data.get("error")).get("message"))
            error = None if failure is None else failure or result or "the sub-agent was not started"
            return self._subagents.call_returned(call_id, result, error, cost)
        if call.name == QUESTION_TOOL:
            if call_id in self._asked or data.get("success") is True:
                return (_QUESTION,)
            return ToolReady(call_id, call.name, call.arguments), *result_facts(call, call_id, data, cwd)
        return result_facts(call, call_id, data, cwd)

    def name_of(self, call_id: str) -> str:
        """Return the tool of an open call; empty for any other call."""
        call = self._open.get(call_id)
        return "" if call is None else call.name

    @property
    def any_open(self) -> bool:
        """Whether at least one call has no result yet."""
        return bool(self._open)

    def turn_over(self) -> None:
        """Forget the calls without a result: at the end of the turn they get none any more."""
        self._open.clear()
