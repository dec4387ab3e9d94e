"""MCP tools that sub-agents inherit: the hooks of their parent, and progressive disclosure."""

from typing import Any

import pytest
from tests.unit.embedded.fake_provider import FakeProvider, calls, reply
from tests.unit.embedded.mcp.servers import call_of, events_of, in_memory
from tests.unit.embedded.mcp.test_disclosure import LAZY, many, offered

from agent_loop import Agent, McpServer, ToolResult
from agent_loop.events import HookFailed, LoopEvent, SubAgentEvent, ToolResulted
from agent_loop.hooks.contexts import McpToolGate, McpToolTransform
from agent_loop.messages import Text
from agent_loop.subagents import SubAgentTool

pytestmark = pytest.mark.anyio
DELEGATE = reply("", calls("delegate", "d1", task="count"))


def agent_with(provider: FakeProvider, *, max_depth: int = 1, **options: Any) -> Agent:
    servers = [McpServer(name="test", command="x")]
    tools = [SubAgentTool(max_depth=max_depth)]
    return Agent(provider, tools=tools, mcp_servers=servers, mcp_connector=in_memory(many(12)), **options)


def innermost(event: LoopEvent) -> LoopEvent:
    while isinstance(event, SubAgentEvent):
        event = event.event
    return event


def results_inside(events: list[LoopEvent]) -> list[str]:
    """Return the results of the tool calls of sub-agents."""
    inside = [innermost(event) for event in events if isinstance(event, SubAgentEvent)]
    return [event.message.text for event in inside if isinstance(event, ToolResulted)]


async def test_mcp_gate_of_the_parent_blocks_the_call_of_a_sub_agent() -> None:
    def block(gate: McpToolGate) -> None:
        gate.block, gate.reason = True, f"not at depth {gate.depth}"

    provider = FakeProvider(DELEGATE, reply("", call_of("tool_3")), reply("Done."), reply("Done."))
    events = await events_of(agent_with(provider, hooks={"mcp:tool:gate": block}))
    assert results_inside(events) == ["Blocked: not at depth 1"]


async def test_failing_mcp_gate_of_the_parent_blocks_the_call_of_a_sub_agent() -> None:
    def broken(_: McpToolGate) -> None:
        raise LookupError("no policy")

    provider = FakeProvider(DELEGATE, reply("", call_of("tool_3")), reply("Done."), reply("Done."))
    events = await events_of(agent_with(provider, hooks={"mcp:tool:gate": broken}))
    assert results_inside(events) == ["Blocked: a tool gate failed"]
    assert [event.hook for event in events if isinstance(event, HookFailed)] == ["mcp:tool:gate"]


@pytest.mark.parametrize("depth", [0, 1, 2])
async def test_mcp_hooks_fire_once_at_each_depth(depth: int) -> None:
    fired: list[tuple[str, int, str]] = []
    names = ["mcp:tool:gate", "mcp:tool:before", "mcp:tool:transform", "mcp:tool:after"]

    def watch(name: str) -> Any:
        def handler(context: Any) -> None:
            fired.append((name, context.depth, context.tool))
            if isinstance(context, McpToolTransform):
                context.result = ToolResult((Text("changed"),))

        return handler

    delegations = [reply("", calls("delegate", f"d{number}", task="count")) for number in range(depth)]
    provider = FakeProvider(*delegations, reply("", call_of("tool_3")), *(reply("Done.") for _ in range(depth + 1)))
    events = await events_of(agent_with(provider, max_depth=2, hooks={name: watch(name) for name in names}))
    assert fired == [(name, depth, "tool_3") for name in names]
    found = [each.message.text for each in map(innermost, events) if isinstance(each, ToolResulted)]
    assert found[0] == "changed"


async def test_sub_agent_has_the_unlocked_tools_and_no_search() -> None:
    search = reply("", calls("tool_search", "1", query="weather"))
    provider = FakeProvider(
        DELEGATE, reply("none"), search, reply("", calls("delegate", "d2", task="again")), reply("one"), reply("Done.")
    )
    await events_of(agent_with(provider, behavior=LAZY))
    assert offered(provider.requests[0]) == ["delegate", "tool_search"]
    assert offered(provider.requests[1]) == []
    assert offered(provider.requests[3]) == ["delegate", "test__tool_7", "tool_search"]
    assert offered(provider.requests[4]) == ["test__tool_7"]
    assert "searchable_tools" not in provider.requests[4].system
