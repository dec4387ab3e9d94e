"""The tool calls of a run, of the main agent and inside sub-agents: from their first fragment to their result."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from agent_mux import facts
from agent_mux_adapters._dialects import unified
from agent_mux_adapters._dialects.stream_json.delegation import Delegation
from agent_mux_adapters._dialects.stream_json.results import Call, mcp_facts, read_result
from agent_mux_adapters._dialects.stream_json.tools import Tools
from agent_mux_adapters._dialects.tolerant import mapping, need_text, rows

ABANDONED = "abandoned: the model's stream broke off, and the call was never made"


class ToolCalls:
    """The calls that wait for their result."""

    def __init__(self, tools: Tools, delegation: Delegation) -> None:
        self.cwd = ""
        """Where the agent works; its diffs are relative to it."""
        self.permitted = False
        """Nobody is asked and nobody can deny: a command runs as soon as it is complete."""
        self._tools = tools
        self._delegation = delegation
        self._open: dict[str, Call] = {}
        self._begun: dict[str, str] = {}
        """Calls whose input still streams: id -> name."""

    def begin(self, call_id: str, name: str) -> tuple[facts.Fact, ...]:
        """The input begins to stream. Says nothing for what is told whole."""
        if self._tools.is_told_whole(name):
            return ()
        self._begun[call_id] = name
        return (facts.ToolBegin(call_id, name),)

    def ready(self, block: Mapping[str, Any]) -> tuple[facts.Fact, ...]:
        """The input is complete: a `tool_use` block."""
        call_id, name = need_text(block, "id"), need_text(block, "name")
        if call_id in self._open:
            return ()
        self._begun.pop(call_id, None)
        arguments = mapping(block.get("input"))
        self._open[call_id] = Call(name, arguments)
        if name in self._tools.delegating:
            return (self._delegation.begin(call_id, arguments),)
        server_and_tool = self._tools.server_and_tool(name)
        if server_and_tool is not None:
            return (facts.McpBegin(call_id, *server_and_tool, block.get("input")),)
        shell = self._tools.shell_of(name, arguments)
        return (facts.ToolReady(call_id, name, block.get("input"), shell, self.permitted),)

    def results(self, content: Any, extra: Any) -> tuple[facts.Fact, ...]:
        """The `tool_result` blocks of a `user` line; `extra` belongs to them when there is only one."""
        blocks = [block for block in rows(content) if block.get("type") == "tool_result"]
        extra = extra if len(blocks) == 1 else None
        return tuple(fact for block in blocks for fact in self._result(block, extra))

    def server_result(self, block: Mapping[str, Any]) -> tuple[facts.Fact, ...]:
        """The result of a tool that the model's own server ran; it stands in the `assistant` message."""
        call_id = need_text(block, "tool_use_id")
        call = self._open.pop(call_id, None)
        failure = mapping(block.get("content")).get("error_code")
        error = str(failure) if failure is not None else None
        name = call.name if call else None
        return (facts.ToolDone(call_id, output=block.get("content"), error=error, name=name),)

    def abandon(self, call_ids: Iterable[str]) -> tuple[facts.Fact, ...]:
        """The stream broke off: calls whose input never became complete are over."""
        names = {call_id: self._begun.pop(call_id) for call_id in call_ids if call_id in self._begun}
        return tuple(facts.ToolDone(call_id, error=ABANDONED, name=name) for call_id, name in names.items())

    def _result(self, block: Mapping[str, Any], extra: Any) -> tuple[facts.Fact, ...]:
        result = read_result(block, extra)
        call = self._open.pop(result.call_id, None)
        if call is not None and call.name in self._tools.delegating:
            return self._delegation.result(result)
        if call is not None and self._tools.server_and_tool(call.name) is not None:
            return mcp_facts(result)
        return tuple(self._with_relative_diffs(fact) for fact in self._tools.done(call, result))

    def _with_relative_diffs(self, fact: facts.Fact) -> facts.Fact:
        if not isinstance(fact, facts.ToolDone) or not fact.files:
            return fact
        return replace(fact, files=tuple(unified.relative_to(self.cwd, effect) for effect in fact.files))
