"""Names, gates, hooks and lifetime of MCP tools, with servers in this process."""

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations
from tests.unit.embedded.fake_provider import FakeProvider, FakeTool, calls, reply
from tests.unit.embedded.mcp.servers import PATIENCE, call_of, events_of, in_memory

from agent_loop import Agent, Behavior, ConfigurationError, LoopVariant, McpServer, ToolResult, run_parallel, tool
from agent_loop.events import HookFailed, McpBootstrapped, ToolResulted
from agent_loop.hooks.contexts import McpToolGate, McpToolTransform
from agent_loop.mcp.client import McpClient, McpToolInfo, Signals
from agent_loop.mcp.results import MAX_TEXT, to_tool_result
from agent_loop.messages import AssistantMessage, Text, ToolMessage
from agent_loop.tools.tool import is_read_only, kind_of, risk_of
from agent_loop.tools.toolset import NAME, Toolset

pytestmark = pytest.mark.anyio
LONG = "odd.name/with spaces " + "x" * 60


def server_of_tools(*names: str) -> MCPServer:
    server = MCPServer("test")
    for name in names:

        def answer(text: str = "", name: str = name) -> str:
            return f"{name}: {text}"

        server.add_tool(answer, name=name)
    return server


def agent_with(server: MCPServer, *answers: Any, **options: Any) -> Agent:
    options.setdefault("mcp_servers", [McpServer(name="test", command="in-memory")])
    return Agent(FakeProvider(*answers), mcp_connector=in_memory(server), **options)


def results(events: Any) -> list[ToolMessage]:
    return [event.message for event in events if isinstance(event, ToolResulted)]


async def test_name_that_providers_refuse_maps_both_ways() -> None:
    provider = FakeProvider(
        lambda request: reply("", calls(request.tools[0].name, text="ping")),
        reply("Done."),
    )
    agent = Agent(
        provider,
        mcp_servers=[McpServer(name="test", command="in-memory")],
        mcp_connector=in_memory(server_of_tools(LONG)),
    )
    [result] = results(await events_of(agent))
    canonical, wire = f"test__{LONG}", provider.requests[0].tools[0].name
    assert NAME.fullmatch(wire)
    assert (result.name, result.text) == (canonical, f"{LONG}: ping")
    sent = [each for each in provider.requests[1].messages if isinstance(each, AssistantMessage)]
    assert sent[0].tool_calls[0].name == wire
    stored = [each for each in agent.messages if isinstance(each, AssistantMessage)]
    assert stored[0].tool_calls[0].name == canonical


def test_history_with_a_name_of_an_absent_server_is_sent_under_its_wire_name() -> None:
    tools = Toolset()
    message = ToolMessage(tool_call_id="1", name=f"gone__{LONG}", content=(Text("x"),))
    [sent] = tools.to_wire([message])
    assert NAME.fullmatch(getattr(sent, "name", ""))
    assert tools.to_wire([message]) == (sent,)


async def test_tool_whose_name_is_taken_is_left_out_with_a_note() -> None:
    servers = [McpServer(name="a", command="x"), McpServer(name="b", command="x", prefix="a")]
    provider = FakeProvider(reply("Done."))
    agent = Agent(
        provider,
        tools=[FakeTool("a__one")],
        mcp_servers=servers,
        mcp_connector=in_memory(server_of_tools("one", "two")),
    )
    events = await events_of(agent)
    assert [tool.name for tool in provider.requests[0].tools] == ["a__one", "a__two"]
    notes = [event.text for event in events if event.__class__.__name__ == "Noted"]
    assert len(notes) == 3
    assert notes[0].startswith("the tool 'one' of the MCP server a is left out: another tool has the name")


async def test_read_only_hint_counts_only_for_servers_that_are_trusted() -> None:
    server = MCPServer("test")
    server.add_tool(lambda: "x", name="read", annotations=ToolAnnotations(read_only_hint=True))
    server.add_tool(lambda: "x", name="drop", annotations=ToolAnnotations(destructive_hint=True))
    found: dict[bool, list[Any]] = {}
    for honor in (False, True):
        configured = McpServer(name="test", command="x", honor_read_only=honor)
        async with agent_with(server, mcp_servers=[configured]) as agent:
            agent.hooks.on("loop:before", lambda _: None)
            agent.hooks.on("agent:before", lambda context, honor=honor: found.update({honor: context.tools}))
            agent.provider = FakeProvider(reply("Done."))
            await events_of(agent)
    assert [(kind_of(tool), is_read_only(tool), risk_of(tool)) for tool in found[False]] == [
        ("other", False, "medium"), ("other", False, "high"),
    ]  # fmt: skip
    assert [(kind_of(tool), is_read_only(tool)) for tool in found[True]] == [("read", True), ("other", False)]


async def test_gate_of_the_agent_applies_to_mcp_tools() -> None:
    def block(context: Any) -> None:
        context.block, context.reason = context.name == "test__one", "not today"

    agent = agent_with(server_of_tools("one"), reply("", call_of("one")), reply("Done."), hooks={"tool:gate": block})
    [result] = results(await events_of(agent))
    assert result.text == "Blocked: not today"


async def test_hooks_of_an_mcp_call_fire_inside_those_of_a_tool() -> None:
    fired: list[tuple[str, str]] = []
    names = ["tool:gate", "tool:before", "mcp:tool:gate", "mcp:tool:before", "mcp:tool:transform", "mcp:tool:after",
             "tool:transform", "tool:after"]  # fmt: skip

    def watch(name: str) -> Any:
        def handler(context: Any) -> None:
            fired.append((name, context.name))
            if isinstance(context, McpToolTransform):
                assert (context.server, context.tool, context.wire_name) == ("test", "one", "test__one")
                context.result = ToolResult((Text("changed"),))

        return handler

    agent = agent_with(
        server_of_tools("one"),
        reply("", call_of("one")),
        reply("Done."),
        tools=[FakeTool("own")],
        hooks={name: watch(name) for name in names},
    )
    [result] = results(await events_of(agent))
    assert fired == [(name, "test__one") for name in names]
    assert result.text == "changed"


async def test_mcp_gate_blocks_answers_or_fails_closed() -> None:
    def decide(context: McpToolGate) -> None:
        match context.arguments["text"]:
            case "block":
                context.block, context.reason = True, "no"
            case "answer":
                context.result = ToolResult((Text("from the gate"),))
            case "raise":
                raise ValueError("broken gate")

    texts = ["block", "answer", "raise", "pass"]
    agent = agent_with(
        server_of_tools("one"),
        *(reply("", call_of("one", number, text=text)) for number, text in enumerate(texts)),
        reply("Done."),
        hooks={"mcp:tool:gate": decide},
    )
    events = await events_of(agent)
    assert [result.text for result in results(events)] == [
        "Blocked: no", "from the gate", "Blocked: a tool gate failed", "one: pass",
    ]  # fmt: skip
    assert [event.hook for event in events if isinstance(event, HookFailed)] == ["mcp:tool:gate"]


async def test_servers_start_in_parallel_and_report_their_bootstrap() -> None:
    started = 0
    all_started = anyio.Event()

    @asynccontextmanager
    async def connect(server: McpServer, _signals: Signals) -> AsyncIterator[McpClient]:
        nonlocal started
        started += 1
        if started == 3:
            all_started.set()
        with anyio.fail_after(PATIENCE):
            await all_started.wait()
        if server.name == "c":
            raise OSError("connection refused")
        yield FakeClient()

    fired: list[tuple[str, str]] = []
    names = ("mcp:bootstrap:start", "mcp:bootstrap:end", "mcp:connect", "mcp:error")
    hooks: dict[str, Any] = {
        name: (lambda context, name=name: fired.append((name, context.server))) for name in names
    }  # fmt: skip
    servers = [McpServer(name=name, command="x", connect_timeout=PATIENCE) for name in "abc"]
    agent = Agent(FakeProvider(reply("Done.")), mcp_servers=servers, mcp_connector=connect, hooks=hooks)
    events = await events_of(agent)
    assert sorted(fired[:3]) == [("mcp:bootstrap:start", name) for name in "abc"]
    assert sorted(fired[3:]) == sorted([
        *(("mcp:bootstrap:end", name) for name in "abc"),
        ("mcp:connect", "a"), ("mcp:connect", "b"), ("mcp:error", "c"),
    ])  # fmt: skip
    outcomes = {event.server: event for event in events if isinstance(event, McpBootstrapped)}
    assert {name: (outcome.tools, outcome.error) for name, outcome in outcomes.items()} == {
        "a": (1, None), "b": (1, None), "c": (0, "connection refused"),
    }  # fmt: skip
    assert all(outcome.duration_ms >= 0 for outcome in outcomes.values())


class FakeClient:
    """A client with one tool."""

    async def list_tools(self) -> list[McpToolInfo]:
        return [McpToolInfo(name="one", input_schema={"type": "object"})]

    async def call_tool(self, name: str, arguments: dict[str, Any], on_progress: Any) -> ToolResult:
        return ToolResult((Text("called"),))


def counting() -> tuple[Any, dict[str, int]]:
    """Return a connector, and the numbers of its opened and closed connections."""
    counts = {"opened": 0, "closed": 0}

    @asynccontextmanager
    async def connect(_server: McpServer, _signals: Signals) -> AsyncIterator[McpClient]:
        counts["opened"] += 1
        try:
            yield FakeClient()
        finally:
            counts["closed"] += 1

    return connect, counts


async def test_connections_last_for_one_run_or_for_the_context_of_the_agent() -> None:
    connect, counts = counting()
    servers = [McpServer(name="test", command="x")]
    agent = Agent(FakeProvider(reply("Done."), repeat=True), mcp_servers=servers, mcp_connector=connect)
    await events_of(agent)
    await events_of(agent)
    assert counts == {"opened": 2, "closed": 2}
    async with agent:
        await anyio.wait_all_tasks_blocked()
        assert counts == {"opened": 3, "closed": 2}  # before the first run
        await agent.warmup()
        await events_of(agent)
        await events_of(agent)
        assert counts == {"opened": 3, "closed": 2}
    assert counts == {"opened": 3, "closed": 3}


async def test_error_inside_of_the_context_ends_the_connections_and_is_raised_as_it_is() -> None:
    connect, counts = counting()
    agent = Agent(FakeProvider(), mcp_servers=[McpServer(name="test", command="x")], mcp_connector=connect)
    with pytest.raises(LookupError, match="mine"):  # noqa: PT012
        async with agent:
            await agent.warmup()
            raise LookupError("mine")
    assert counts == {"opened": 1, "closed": 1}


async def test_warmup_outside_of_the_context_is_refused() -> None:
    connect, _ = counting()
    agent = Agent(FakeProvider(), mcp_servers=[McpServer(name="test", command="x")], mcp_connector=connect)
    with pytest.raises(ConfigurationError, match="async with agent"):
        await agent.warmup()


async def test_hooks_of_a_parallel_loop_fire_after_another_one_ended() -> None:
    has_begun, has_ended = anyio.Event(), anyio.Event()
    refreshed: list[str] = []

    @tool(read_only=True)
    async def wait_for_begin() -> str:
        """Wait."""
        await has_begun.wait()
        return "begun"

    @tool(read_only=True)
    async def wait_for_end() -> str:
        """Wait."""
        has_begun.set()
        await has_ended.wait()
        return "ended"

    class RefreshingClient(FakeClient):
        def __init__(self, signals: Signals) -> None:
            self._signals = signals

        async def list_tools(self) -> list[McpToolInfo]:
            return [McpToolInfo(name="one", input_schema={"type": "object"}, is_read_only=True)]

        async def call_tool(self, name: str, arguments: dict[str, Any], on_progress: Any) -> ToolResult:
            await self._signals.refresh_headers()
            return ToolResult((Text("called"),))

    @asynccontextmanager
    async def connect(_server: McpServer, signals: Signals) -> AsyncIterator[McpClient]:
        yield RefreshingClient(signals)

    agent = Agent(
        FakeProvider(),
        tools=[wait_for_begin, wait_for_end],
        mcp_servers=[McpServer(name="test", command="x", honor_read_only=True)],
        mcp_connector=connect,
        hooks={
            "oauth:refresh": lambda context: refreshed.append(context.loop_id),
            "session:end": lambda _: has_ended.set(),
        },
    )
    variants = [
        LoopVariant(provider=FakeProvider(reply("", calls("wait_for_begin")), reply("Done."))),
        LoopVariant(
            provider=FakeProvider(reply("", calls("wait_for_end")), reply("", call_of("one", 2)), reply("Done."))
        ),
    ]
    with anyio.fail_after(PATIENCE):
        result = await run_parallel(agent, "go", variants)
    assert [outcome.result.text for outcome in result.outcomes] == ["Done.", "Done."]
    assert refreshed == [result.outcomes[1].loop_id]


async def test_changed_list_of_tools_counts_from_the_next_run_on() -> None:
    listed = ["one"]
    signalled: list[Signals] = []

    class Changing(FakeClient):
        async def list_tools(self) -> list[McpToolInfo]:
            return [McpToolInfo(name=name) for name in listed]

    @asynccontextmanager
    async def connect(_server: McpServer, signals: Signals) -> AsyncIterator[McpClient]:
        signalled.append(signals)
        yield Changing()

    provider = FakeProvider(reply("Done."), repeat=True)
    agent = Agent(provider, mcp_servers=[McpServer(name="test", command="x")], mcp_connector=connect)
    async with agent:
        await events_of(agent)
        listed.append("two")
        signalled[0].tools_changed()
        await events_of(agent)
    assert [[tool.name for tool in request.tools] for request in provider.requests] == [
        ["test__one"], ["test__one", "test__two"],
    ]  # fmt: skip


async def test_server_that_cannot_list_its_tools_again_affects_no_other() -> None:
    signalled: list[Signals] = []

    class Breaking(FakeClient):
        listed = False

        async def list_tools(self) -> list[McpToolInfo]:
            if self.listed:
                raise RuntimeError("no list")
            self.listed = True
            return await super().list_tools()

    @asynccontextmanager
    async def connect(server: McpServer, signals: Signals) -> AsyncIterator[McpClient]:
        if server.name == "a":
            signalled.append(signals)
        yield Breaking()

    provider = FakeProvider(reply("Done."), repeat=True)
    servers = [McpServer(name="a", command="x"), McpServer(name="b", command="x")]
    async with Agent(provider, mcp_servers=servers, mcp_connector=connect) as agent:
        await events_of(agent)
        signalled[0].tools_changed()
        events = await events_of(agent)
    [outcome] = [event for event in events if isinstance(event, McpBootstrapped)]
    assert (outcome.server, outcome.error) == ("a", "no list")
    assert [[tool.name for tool in request.tools] for request in provider.requests] == [
        ["a__one", "b__one"],
        ["b__one"],
    ]
    assert "- a: no list" in provider.requests[1].system


def test_invalid_servers_are_refused_at_construction() -> None:
    for options, message in [
        ({"name": "a b", "command": "x"}, "invalid name"),
        ({"name": "a"}, "no command"),
        ({"name": "a", "transport": "sse", "url": "file:///x"}, "needs a URL"),
        ({"name": "a", "transport": "carrier-pigeon"}, "transport must be .*carrier-pigeon"),
        ({"name": "a", "command": "x", "timeout": 0}, "timeout"),
    ]:
        with pytest.raises(ConfigurationError, match=message):
            Agent(FakeProvider(), mcp_servers=[McpServer(**options)])
    with pytest.raises(ConfigurationError, match="name of another server"):
        Agent(FakeProvider(), mcp_servers=[McpServer(name="a", command="x")] * 2)


def test_missing_sdk_is_an_error_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_loop.mcp.servers.find_spec", lambda _name: None)
    with pytest.raises(ConfigurationError, match=r'pip install "agent-mux\[mcp\]"'):
        Agent(FakeProvider(), mcp_servers=[McpServer(name="a", command="x")])


@pytest.mark.slow
def test_agent_without_servers_imports_no_sdk() -> None:
    code = (
        "import sys, anyio\nfrom agent_loop import Agent, McpServer, ScriptedProvider\n"
        "McpServer(name='a', command='x')\nAgent('scripted:demo')\n"
        "print(sorted({'mcp', 'httpx2', 'agent_loop.mcp.host'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert done.stdout.strip() == "[]"


def test_long_result_is_cut_with_a_note() -> None:
    from mcp.types import CallToolResult, TextContent

    result = to_tool_result(CallToolResult(content=[TextContent(text="x" * (MAX_TEXT + 5)), TextContent(text="more")]))
    assert result.content == (Text("x" * MAX_TEXT), Text("[9 more characters were cut; ask for less at once]"))


def test_reprs_of_servers_hide_secrets() -> None:
    server = McpServer(
        name="a", transport="sse", url="https://x/?key=secret-1", headers={"Authorization": "Bearer secret-2"}
    )
    assert "secret" not in repr(server)
    assert server.without_secrets("got secret-2 at https://x/?key=secret-1") == "got [redacted] at [redacted]"


async def test_behavior_of_disclosure_is_validated() -> None:
    with pytest.raises(ConfigurationError, match="tool_search_limit"):
        Agent(FakeProvider(), behavior=Behavior(tool_search_limit=0))
