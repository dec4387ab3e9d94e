"""Starting the test server, and running an agent with it."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.server.mcpserver import MCPServer
from tests.unit.embedded.fake_provider import FakeProvider, calls, reply

from agent_loop import Agent, McpServer
from agent_loop.events import LoopEvent, ToolResulted
from agent_loop.mcp.client import Connector, McpClient, Signals
from agent_loop.mcp.sdk import SdkClient
from agent_loop.messages import ToolCall, ToolMessage

SERVER = str(Path(__file__).with_name("server.py"))
PATIENCE = 120.0
"""Seconds; allows for a slow machine. The server imports the SDK."""


def stdio_server(name: str = "test", *, env: dict[str, str] | None = None, **options: Any) -> McpServer:
    options = {"connect_timeout": PATIENCE, **options}
    return McpServer(name=name, command=sys.executable, args=[SERVER, "stdio"], env=env or {}, **options)


@asynccontextmanager
async def http_server(transport: str, directory: Path, **environ: str) -> AsyncIterator[str]:
    """Start the server on loopback and return its URL."""
    port_file = directory / f"port-{transport}"
    command = [sys.executable, SERVER, transport, str(port_file)]
    process = subprocess.Popen(command, env={**os.environ, **environ})  # noqa: ASYNC220  # returns at once
    try:
        with anyio.fail_after(PATIENCE):
            while not port_file.exists():
                assert process.poll() is None, "the server ended"
                await anyio.sleep(0.05)
        yield f"http://127.0.0.1:{port_file.read_text()}/{'sse' if transport == 'sse' else 'mcp'}"
    finally:
        process.kill()
        process.wait(timeout=PATIENCE)


async def results_of(server: McpServer, *called: ToolCall, **options: Any) -> list[ToolMessage]:
    """Return the results of calls, each in a turn of its own, of one run."""
    answers = [reply("", call) for call in called]
    agent = Agent(FakeProvider(*answers, reply("Done.")), mcp_servers=[server], **options)
    events = await events_of(agent)
    return [event.message for event in events if isinstance(event, ToolResulted)]


def call_of(tool: str, number: int = 1, server: str = "test", **arguments: Any) -> ToolCall:
    """Return a call of a tool of the server."""
    return calls(f"{server}__{tool}", str(number), **arguments)


def in_memory(server: MCPServer) -> Connector:
    """Return a connector to a server of this process, by the SDK."""

    @asynccontextmanager
    async def connect(_server: McpServer, _signals: Signals) -> AsyncIterator[McpClient]:
        async with Client(server, cache=None) as client:
            yield SdkClient(client)

    return connect


async def events_of(agent: Agent, prompt: str = "go", **options: Any) -> list[LoopEvent]:
    """Return the events of a run."""
    events: list[LoopEvent] = []

    async def watch(event: LoopEvent) -> None:
        events.append(event)

    with anyio.fail_after(PATIENCE):
        await agent.run(prompt, on_event=watch, **options)
    return events


async def wait_until_ended(pid: int) -> None:
    """Wait until no process has this id."""
    with anyio.fail_after(PATIENCE):
        while is_alive(pid):  # noqa: ASYNC110  # a process that is not our child
            await anyio.sleep(0.05)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
