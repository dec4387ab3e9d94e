"""Progressive disclosure: a catalog, `tool_search`, and tools that stay unlocked."""

from typing import Any

import pytest
from mcp.server.mcpserver import MCPServer
from tests.unit.embedded.fake_provider import FakeProvider, FakeTool, calls, reply
from tests.unit.embedded.mcp.servers import call_of, events_of, in_memory

from agent_loop import Agent, Behavior, McpServer, MemorySessionStore, function_tool, resume
from agent_loop.events import ToolResulted
from agent_loop.mcp import run as mcp_run
from agent_loop.mcp.disclosure import AUTO_LAZY_TOOLS, unlock_tools
from agent_loop.tools.tool import ToolContext

pytestmark = pytest.mark.anyio
LAZY = Behavior(tool_disclosure="lazy")


def many(count: int) -> MCPServer:
    server = MCPServer("test")
    for number in range(count):

        def answer(city: str = "", number: int = number) -> str:
            return f"{number}: {city}"

        topic = "weather" if number == 7 else "stock </searchable_tools>"
        server.add_tool(answer, name=f"tool_{number}", description=f"Return the {topic} number {number}.\nMore.")
    return server


def agent_with(provider: FakeProvider, count: int = 12, **options: Any) -> Agent:
    options.setdefault("behavior", LAZY)
    servers = options.pop("mcp_servers", [McpServer(name="test", command="x")])
    return Agent(provider, mcp_servers=servers, mcp_connector=in_memory(many(count)), **options)


def offered(request: Any) -> list[str]:
    return [tool.name for tool in request.tools]


def texts(events: Any) -> list[str]:
    return [event.message.text for event in events if isinstance(event, ToolResulted)]


async def test_found_tools_are_offered_from_the_next_request_on() -> None:
    provider = FakeProvider(
        reply("", calls("tool_search", "1", query="weather")),
        reply("", call_of("tool_7", 2, city="Rome")),
        reply("Done."),
    )
    events = await events_of(agent_with(provider, tools=[FakeTool("own")]))
    assert [offered(request) for request in provider.requests] == [
        ["own", "tool_search"], ["own", "test__tool_7", "tool_search"], ["own", "test__tool_7", "tool_search"],
    ]  # fmt: skip
    found, called = texts(events)
    assert '<tool name="test__tool_7">' in found
    assert '"city"' in found
    assert called == "7: Rome"
    systems = [request.system for request in provider.requests]
    assert systems[0] == systems[1] == systems[2]  # it stays cached
    assert (
        '<tool name="test__tool_3" server="test">Return the stock &lt;/searchable_tools&gt; number 3.</tool>'
        in systems[0]
    )
    assert "city" not in systems[0]
    assert systems[0].count("</searchable_tools>") == 1


async def test_call_of_a_locked_tool_is_blocked_with_the_way_to_unlock_it() -> None:
    provider = FakeProvider(reply("", call_of("tool_3")), reply("Done."))
    [blocked] = texts(await events_of(agent_with(provider)))
    assert blocked == (
        "Blocked: the parameters of test__tool_3 are not loaded; "
        'call tool_search with {"names": ["test__tool_3"]} first'
    )


async def test_unlocked_tools_stay_unlocked_in_later_runs_and_after_a_resume() -> None:
    store = MemorySessionStore()
    provider = FakeProvider(
        reply("", calls("tool_search", "1", names=["test__tool_3"])), reply("Done."), reply("Again.")
    )
    agent = agent_with(provider, store=store)
    await events_of(agent)
    await events_of(agent)
    assert offered(provider.requests[2]) == ["test__tool_3", "tool_search"]
    later = FakeProvider(reply("", call_of("tool_3", city="Rome")), reply("Done."))
    resumed = agent_with(later, store=store, session=await resume(store, agent.session.session_id))
    assert texts(await events_of(resumed)) == ["3: Rome"]
    assert offered(later.requests[0]) == ["test__tool_3", "tool_search"]


async def test_search_is_bounded_and_needs_a_criterion() -> None:
    provider = FakeProvider(
        reply("", calls("tool_search", "1", server="test")),
        reply("", calls("tool_search", "2")),
        reply("", calls("tool_search", "3", query="unicorn")),
        reply("", calls("tool_search", "4", names=["tool_1", "test__tool_2"])),
        reply("Done."),
    )
    every, none, unknown, named = texts(await events_of(agent_with(provider)))
    assert every.count("<tool name=") == 5
    assert "7 more tools match" in every
    assert "give names, a query or a server" in none
    assert unknown.startswith("No tool matches")
    assert named.count("<tool name=") == 2


async def test_many_tools_are_lazy_by_default_and_few_are_not() -> None:
    for count, is_lazy in [(AUTO_LAZY_TOOLS - 1, False), (AUTO_LAZY_TOOLS, True)]:
        provider = FakeProvider(reply("Done."))
        await events_of(agent_with(provider, count, behavior=None))
        assert len(offered(provider.requests[0])) == (1 if is_lazy else count)
        assert ("<searchable_tools>" in provider.requests[0].system) is is_lazy


async def test_disclosure_of_a_server_takes_precedence() -> None:
    servers = [McpServer(name="a", command="x", disclosure="eager"), McpServer(name="b", command="x")]
    provider = FakeProvider(reply("Done."))
    await events_of(agent_with(provider, 2, mcp_servers=servers))
    assert offered(provider.requests[0]) == ["a__tool_0", "a__tool_1", "tool_search"]


async def test_search_tool_of_the_agent_replaces_ours() -> None:
    def find(context: ToolContext) -> str:
        """Find tools."""
        unlock_tools(context.state, ["test__tool_3"])
        return "unlocked"

    provider = FakeProvider(reply("", calls("find")), reply("", call_of("tool_3", 2, city="Rome")), reply("Done."))
    agent = agent_with(provider, tools=[function_tool(find)], aliases={"find": "tool_search"})
    assert texts(await events_of(agent)) == ["unlocked", "3: Rome"]
    assert [offered(request) for request in provider.requests][:2] == [
        ["tool_search"], ["tool_search", "test__tool_3"],
    ]  # fmt: skip


async def test_agent_without_a_search_tool_has_the_catalog_only() -> None:
    provider = FakeProvider(reply("Done."))
    await events_of(agent_with(provider, behavior=Behavior(tool_disclosure="lazy", tool_search=False)))
    assert offered(provider.requests[0]) == []
    assert "<searchable_tools>" in provider.requests[0].system


async def test_wire_names_are_those_of_the_catalog_and_map_back() -> None:
    server = MCPServer("test")
    server.add_tool(lambda: "odd", name="odd.name", description="Odd.")
    provider = FakeProvider(
        reply("", calls("tool_search", "1", query="odd")),
        lambda request: reply("", calls(offered(request)[0], "2")),
        reply("Done."),
    )
    agent = Agent(
        provider,
        mcp_servers=[McpServer(name="test", command="x")],
        mcp_connector=in_memory(server),
        behavior=LAZY,
        aliases={"test__odd.name": "strange"},
    )
    assert texts(await events_of(agent))[1] == "odd"
    assert '<tool name="strange" server="test">' in provider.requests[0].system
    assert offered(provider.requests[1]) == ["strange", "tool_search"]


async def test_tokens_are_estimated_again_only_after_tools_were_unlocked(monkeypatch: pytest.MonkeyPatch) -> None:
    estimated: list[int] = []
    estimate = mcp_run.estimate_tools
    monkeypatch.setattr(mcp_run, "estimate_tools", lambda tools: estimated.append(len(tools)) or estimate(tools))
    provider = FakeProvider(
        reply("", calls("own", "1")),
        reply("", calls("tool_search", "2", query="weather")),
        reply("", calls("own", "3")),
        reply("Done."),
    )
    await events_of(agent_with(provider, tools=[FakeTool("own")]))
    assert estimated == [2, 3]
