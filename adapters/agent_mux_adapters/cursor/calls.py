"""The tool calls of a run: started with their complete input, completed with their result. Nothing streams."""

from collections.abc import Container, Mapping
from typing import Any

from msgspec.structs import replace

from agent_mux import facts
from agent_mux_adapters._dialects import unified_diff
from agent_mux_adapters._dialects.tolerant import mapping, need_mapping, need_text, text
from agent_mux_adapters.cursor import tools
from agent_mux_adapters.cursor.results import Call, Result, mcp_facts, read_result, subagent_fact, tool_facts

Facts = tuple[facts.Fact, ...]
LONGEST_NUMBER = 16  # digits of a time in milliseconds


class ToolCalls:
    """The calls that wait for their result."""

    def __init__(self, told_denied: Container[str], *, permitted: bool) -> None:
        self.cwd = ""
        """Where the agent works; its diffs are relative to it."""
        self._told_denied = told_denied
        """Calls whose denial was told with the CLI's own query."""
        self._permitted = permitted
        """Nobody is asked: a command runs as soon as it is complete."""
        self._open: dict[str, Call] = {}

    def started(self, line: Mapping[str, Any]) -> Facts:
        """`tool_call/started`. Raises `WrongShapeError`."""
        tool_call = need_mapping(line, "tool_call")
        call_id, (name, told) = _call_id_of(line, tool_call), tools.split(tool_call)
        call = self._open[call_id] = Call(name, mapping(told.get("args")))
        if name == tools.TASK:
            prompt = text(call.input.get("prompt")) or text(call.input.get("description"))
            return (facts.SubagentBegin(call_id, _agent_name(call.input), prompt),)
        if name == tools.MCP:
            return (facts.McpBegin(call_id, *tools.server_and_tool(call.input), call.input.get("args")),)
        return (facts.ToolReady(call_id, name, told.get("args"), tools.shell_of(name, call.input), self._permitted),)

    def completed(self, line: Mapping[str, Any]) -> Facts:
        """`tool_call/completed`, which may leave the input out. Raises `WrongShapeError`."""
        tool_call = need_mapping(line, "tool_call")
        call_id, (name, told) = _call_id_of(line, tool_call), tools.split(tool_call)
        begun = () if call_id in self._open else self.started(line)  # seen from the middle on
        call = self._open.pop(call_id)
        result = read_result(call_id, told.get("result"), _duration(tool_call))
        is_news = result.was_denied(name) and call_id not in self._told_denied
        denied = _denial(call, result) if is_news else ()
        if call.name == tools.TASK:
            return (*begun, *denied, subagent_fact(result))
        if call.name == tools.MCP:
            return (*begun, *denied, *mcp_facts(result))
        return (*begun, *denied, *map(self._with_relative_diffs, tool_facts(call, result)))

    def _with_relative_diffs(self, fact: facts.Fact) -> facts.Fact:
        if not isinstance(fact, facts.ToolDone) or not fact.files:
            return fact
        return replace(fact, files=tuple(unified_diff.relative_to(self.cwd, effect) for effect in fact.files))


def _call_id_of(line: Mapping[str, Any], tool_call: Mapping[str, Any]) -> str:
    """The id of the call; it may contain a newline."""
    return text(line.get("call_id")) or need_text(tool_call, "toolCallId")


def _denial(call: Call, result: Result) -> Facts:
    """A rule or the mode refused, and nobody was asked: shown as an approval that was denied at once."""
    asked = facts.ApprovalAsked(
        f"denied:{result.call_id}",
        tools.action_of(call.name, call.input),
        tools.detail_of(call.name, call.input),
        tools.risk_of(call.name, call.input),
        call.name,
        result.call_id,
    )
    return (asked, facts.RequestSettled(asked.request_id, granted=False, reason=result.error))


def _agent_name(arguments: Mapping[str, Any]) -> str:
    """`subagentType` is a name, or an object with one key: `{"custom": {"name": ...}}`, `{"unspecified": {}}`."""
    kind = arguments.get("subagentType")
    if isinstance(kind, dict):
        return text(mapping(kind.get("custom")).get("name")) or next(iter(kind), "")
    return text(kind) or "unspecified"


def _duration(tool_call: Mapping[str, Any]) -> int | None:
    """Milliseconds, from times that are told as texts."""
    begun, ended = (text(tool_call.get(field)) for field in ("startedAtMs", "completedAtMs"))
    told = all(time.isascii() and time.isdigit() and len(time) < LONGEST_NUMBER for time in (begun, ended))
    return max(int(ended) - int(begun), 0) if told else None
