"""Functions of the caller as tools of a run: they are served as long as the run lasts, and their token stays secret."""

import json
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.process.scripted import scripted_adapter

from agent_mux import AgentMux, CapabilityError, McpServer, RunResult, Tool
from agent_mux.client.remote import RemoteMux
from agent_mux.sdk.adapter import Adapter, SpawnArgs, SpawnEnvironment
from agent_mux.sdk.options import RunOptions
from agent_mux.sdk.registry import AdapterRegistry

pytestmark = pytest.mark.anyio
CALLER = """
import http.client, os
server = json.loads(os.environ["SERVER"])
host, _, path = server["url"].removeprefix("http://").partition("/")
def call(name, **arguments):
    connection = http.client.HTTPConnection(host, timeout=60)
    params = {"name": name, "arguments": arguments}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    connection.request("POST", "/" + path, body, server["headers"])
    result = json.loads(connection.getresponse().read())["result"]
    return result["content"][0]["text"] + (" (error)" if result["isError"] else "")
emit(session="S1")
emit(text=call("shout", word="hi") + ", " + call("fail") + ", " + server["headers"]["Authorization"])
"""
OVER = "\nemit(over=1); emit(done=1); drain()\n"


def shout(word: str) -> str:
    return word.upper()


async def fail() -> None:
    raise RuntimeError("not today")


def calling_adapter(body: str, seen: list[McpServer], **capabilities: Any) -> Adapter:
    """Return the adapter of an agent that calls the tools over HTTP."""
    adapter = scripted_adapter(CALLER + body)

    def spawn(options: RunOptions, environment: SpawnEnvironment) -> SpawnArgs:
        (server,) = options.mcp_servers
        seen.append(server)
        plain = {"url": server.url, "headers": dict(server.headers)}
        return replace(adapter.spawn(options, environment), env={"SERVER": json.dumps(plain)})

    declared = replace(adapter.capabilities, **capabilities)
    return replace(adapter, spawn=spawn, tools_over="streamable-http", capabilities=declared)


def client(directory: Path, adapter: Adapter) -> AgentMux:
    registry = AdapterRegistry()
    registry.register(adapter)
    return AgentMux(adapters=registry, config_dir=directory, default_agent="scripted")


def is_served(server: McpServer) -> bool:
    host, _, port = str(server.url).removeprefix("http://").partition("/")[0].partition(":")
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except ConnectionRefusedError:
        return False
    return True


async def run(directory: Path, body: str, seen: list[McpServer], **options: Any) -> RunResult:
    with anyio.fail_after(60):
        async with client(directory, calling_adapter(body, seen)) as mux:
            return await mux.run(prompt="go", tools=[shout, fail], **options)


async def test_functions_are_called_and_their_results_reach_the_agent(tmp_path: Path) -> None:
    seen: list[McpServer] = []
    result = await run(tmp_path, OVER, seen)
    assert result.exit_reason == "completed"
    assert result.text.startswith("HI, RuntimeError: not today (error), ")
    assert not is_served(seen[0])


async def test_token_is_neither_in_events_nor_in_the_journal(tmp_path: Path) -> None:
    seen: list[McpServer] = []
    result = await run(tmp_path, OVER, seen, collect_events=True)
    token = seen[0].headers["Authorization"].removeprefix("Bearer ")
    assert token not in repr(result)
    assert result.journal is not None
    journal = Path(result.journal).read_bytes()  # noqa: ASYNC240
    assert token.encode() not in journal
    assert b'"shout"' in journal  # the options name the functions


@pytest.mark.parametrize("how", ["abort", "crash", "leave"])
async def test_server_ends_with_the_run_however_it_ends(tmp_path: Path, how: str) -> None:
    seen: list[McpServer] = []
    body = "\nsys.exit(3)" if how == "crash" else "\nread(); drain()"
    with anyio.fail_after(60):
        async with client(tmp_path, calling_adapter(body, seen)) as mux:
            handle = mux.run(prompt="go", tools=[shout, fail], grace_period=0.2)
            async for event in handle:
                if event.type == "text_delta":
                    assert is_served(seen[0])
                    break
            if how == "abort":
                await handle.abort()
            elif how == "crash":
                await handle
    assert not is_served(seen[0])


@pytest.mark.slow
async def test_retried_run_calls_the_same_functions(tmp_path: Path) -> None:
    words: list[str] = []

    def count(word: str) -> str:
        words.append(word)
        return word

    body = f"""
import pathlib
first = pathlib.Path({str(tmp_path / "first")!r})
if not first.exists():
    first.touch()
    sys.exit(3)
emit(over=1); emit(done=1); drain()
"""
    seen: list[McpServer] = []
    with anyio.fail_after(60):
        async with client(tmp_path, calling_adapter(body, seen)) as mux:
            retry = {"max_attempts": 2, "base_delay": 0.01, "retry_on": ["AGENT_CRASH"]}
            tools = [Tool(count, name="shout"), fail]
            result = await mux.run(prompt="go", tools=tools, retry_policy=retry)
    assert (result.exit_reason, words) == ("completed", ["hi", "hi"])


def test_agent_without_mcp_is_a_capability_error(tmp_path: Path) -> None:
    mux = client(tmp_path, calling_adapter("", [], mcp=False))
    with pytest.raises(CapabilityError, match="scripted does not support MCP servers, over which `tools` are offered"):
        mux.plan(prompt="go", tools=[shout], cwd=str(tmp_path))


async def test_remote_client_refuses_functions() -> None:
    async with RemoteMux("http://127.0.0.1:9", token="x") as mux:  # noqa: S106
        with pytest.raises(CapabilityError, match="functions cannot be sent"):
            await mux.start(agent="scripted", prompt="go", tools=[shout])


@pytest.mark.slow
def test_plan_without_tools_imports_no_server() -> None:
    import subprocess

    program = "import agent_mux.run.runner, agent_mux.client, sys; print('agent_mux.loopback.http' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "False"
