"""The tool calls of one agent, from the first fragment of their input to their result.

A call is told when its input is complete: in `assistant.message`, and again in `tool.execution_start`. A call of
`ask_user` is a question: it is told only if it fails before anybody was asked.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux.events.cost import CostRecord
from agent_mux.facts import Fact, Ignored, McpBegin, ToolBegin, ToolInput, ToolOutput, ToolReady
from agent_mux_adapters._dialects.tolerant import mapping, need_text, text
from agent_mux_adapters.copilot import tools
from agent_mux_adapters.copilot.delegation import Delegation
from agent_mux_adapters.copilot.results import Call, done

_ASKED = Ignored("ask_user", "a question, which is told as such")


class Calls:
    """The calls that have no result yet."""

    def __init__(self, delegation: Delegation) -> None:
        self._delegation = delegation
        self._open: dict[str, Call] = {}
        self._streamed: set[str] = set()
        self._asked: set[str] = set()

    def input(self, call_id: str, name: str, fragment: str) -> tuple[Fact, ...]:
        """`assistant.tool_call_delta`: a fragment of an input. Nothing, if the call is told when that is complete."""
        if call_id in self._streamed:
            return (ToolInput(call_id, fragment),)
        if name not in tools.STREAMED:
            return ()
        self._streamed.add(call_id)
        return ToolBegin(call_id, name), ToolInput(call_id, fragment)

    def requested(self, row: Mapping[str, Any], name: str) -> tuple[Fact, ...]:
        """A call with its complete input: one of `assistant.message.toolRequests`, or `tool.execution_start`."""
        call_id, arguments = need_text(row, "toolCallId"), row.get("arguments")
        if call_id in self._open:
            return (Ignored("tool.execution_start", "the call was told with the message"),)
        mcp = tools.mcp_tool(row, name)
        shell = tools.shell_of(name, arguments) if mcp is None else None
        self._open[call_id] = Call(name, arguments, is_mcp=mcp is not None, is_command=shell is not None)
        if mcp is not None:
            return (McpBegin(call_id, *mcp, arguments),)
        if name == tools.DELEGATING_TOOL:
            return self._delegation.begin(call_id, arguments)
        if name == tools.QUESTION_TOOL:
            return (_ASKED,)
        return (ToolReady(call_id, name, arguments, shell),)

    def output(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """`tool.shell_output`: a chunk of what a command prints."""
        call_id = need_text(data, "toolCallId")
        call = self._open.get(call_id)
        if call is None or not call.is_command:
            return (Ignored("tool.shell_output", "of a command that runs on after its call"),)
        if data.get("stream") == "stderr":
            call.told_stderr = True
            return (ToolOutput(call_id, text(data.get("text")), "stderr"),)
        return (ToolOutput(call_id, text(data.get("text"))),)

    def asked(self, call_id: str) -> None:
        """The question of this call was asked."""
        self._asked.add(call_id)

    def completed(self, data: Mapping[str, Any], cwd: str, cost: CostRecord | None) -> tuple[Fact, ...]:
        """`tool.execution_complete`. `cost`: of the sub-agent, if the call made one."""
        call_id = need_text(data, "toolCallId")
        call = self._open.pop(call_id, None) or Call(text(mapping(data.get("toolDescription")).get("name")), None)
        if call.name == tools.DELEGATING_TOOL:
            shown = text(mapping(data.get("result")).get("content"))
            failed = None if data.get("success") is True else text(mapping(data.get("error")).get("message"))
            error = None if failed is None else failed or shown or "the sub-agent was not started"
            return self._delegation.returned(call_id, shown, error, cost)
        if call.name == tools.QUESTION_TOOL:
            if call_id in self._asked or data.get("success") is True:
                return (_ASKED,)
            return ToolReady(call_id, call.name, call.arguments), *done(call, call_id, data, cwd)
        return done(call, call_id, data, cwd)

    def name_of(self, call_id: str) -> str:
        """The tool of an open call; empty when it is none."""
        call = self._open.get(call_id)
        return "" if call is None else call.name

    @property
    def any_open(self) -> bool:
        """At least one has no result yet."""
        return bool(self._open)

    def turn_over(self) -> None:
        """What has no result by now gets none."""
        self._open.clear()
