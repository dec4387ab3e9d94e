"""A delegating agent: the official MCP client, connected to `amux mcp-server` over pipes."""

import json
import os
import select
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import anyio
from mcp import Client, StdioServerParameters, stdio_client
from tests.process.installed_command import Installed

from agent_mux.process.marker import processes_of

PATIENCE = 60.0  # seconds; allows for a slow machine, not for a slow server
HELLO = "read(); emit(session='s'); emit(text='hello'); emit(over=1); emit(done=1); drain()"
"""A scripted agent that answers with one message."""
WORKS = "read(); emit(session='s'); emit(text='ready'); emit(over=1); time.sleep(1000)"
"""A scripted agent that never ends."""
ASKS = """
read(); emit(session='s')
emit(ask='rm -rf build')
emit(text='the answer was ' + read()['answer']); emit(over=1); emit(done=1); drain()
"""
"""A scripted agent that asks for permission."""
Mode = Literal["auto", "legacy"]


class Refusal(Exception):  # noqa: N818  # an expected answer to a model, not a failure of the test
    """The refusal that a tool returned."""


class Delegator:
    """The caller of the server's tools."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def __call__(self, tool: str, **arguments: Any) -> Any:
        """Call a tool and return its structured answer, which equals its text. Raise `Refusal` for an error result."""
        with anyio.fail_after(PATIENCE):
            result = await self.client.call_tool(tool, arguments)
        [content] = result.content
        assert content.type == "text"
        if result.is_error:
            raise Refusal(content.text)
        assert json.loads(content.text) == result.structured_content
        return result.structured_content

    async def start(self, **more: Any) -> str:
        """Start a run of the scripted agent and return its id."""
        started = await self("start_run", **{"agent": "scripted", "prompt": "go", **more})
        return str(started["runId"])

    async def watch_to_end(self, run_id: str) -> Any:
        """Watch a run to its end and return the last answer with the entries of all answers."""
        entries: list[Any] = []
        with anyio.fail_after(PATIENCE):
            while "result" not in (seen := await self("watch_run", runId=run_id)):
                entries += seen.get("entries", [])
        return {**seen, "entries": entries + seen.get("entries", [])}


def command(*flags: object) -> list[str]:
    return [sys.executable, "-m", "agent_mux.cli.main", "mcp-server", *map(str, flags)]


def environment(installed: Installed, body: str, extra: dict[str, str] | None = None) -> dict[str, str]:
    """Return the environment of the installed command, with the PYTHONPATH of the test process first."""
    variables = installed.environment(body, extra)
    paths = [os.environ.get("PYTHONPATH", ""), variables["PYTHONPATH"]]
    return {**variables, "PYTHONPATH": ":".join(path for path in paths if path)}


@asynccontextmanager
async def delegator(
    installed: Installed, *flags: object, body: str = HELLO, mode: Mode = "auto", **extra: str
) -> AsyncIterator[Delegator]:
    """Start a server and yield its client; the server must not write to standard error."""
    program, *arguments = command(*flags)
    server = StdioServerParameters(
        command=program, args=arguments, env=environment(installed, body, extra), cwd=installed.home
    )
    stderr_log = installed.home.parent / "stderr"
    with stderr_log.open("w") as errors:
        async with Client(stdio_client(server, errlog=errors), mode=mode) as client:
            yield Delegator(client)
    assert stderr_log.read_text() == ""


def start_raw(installed: Installed, *flags: object, body: str = HELLO, **extra: str) -> "subprocess.Popen[bytes]":
    """Start a server with pipes that the test reads and writes."""
    return subprocess.Popen(
        command(*flags),
        env=environment(installed, body, extra),
        cwd=installed.home,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )


def write(server: "subprocess.Popen[bytes]", data: bytes) -> None:
    """Write all bytes to the server's standard input."""
    assert server.stdin is not None
    rest = memoryview(data)
    while rest:
        rest = rest[server.stdin.write(rest) :]


def send_message(server: "subprocess.Popen[bytes]", **message: Any) -> None:
    """Send one JSON-RPC message."""
    write(server, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def read_message(server: "subprocess.Popen[bytes]") -> Any:
    """Read the next message."""
    assert server.stdout is not None
    ready, _, _ = select.select([server.stdout], [], [], PATIENCE)
    assert ready, "no message arrived"
    return json.loads(server.stdout.readline())


def initialize(server: "subprocess.Popen[bytes]") -> None:
    """Perform the MCP handshake."""
    known = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    send_message(server, id=0, method="initialize", params=known)
    assert read_message(server)["result"]["serverInfo"]["name"] == "agent-mux"
    send_message(server, method="notifications/initialized")


def call_tool(server: "subprocess.Popen[bytes]", number: int, tool: str, **arguments: Any) -> Any:
    """Call a tool and return its structured content."""
    send_message(server, id=number, method="tools/call", params={"name": tool, "arguments": arguments})
    answer = read_message(server)
    assert answer["id"] == number, answer
    return answer["result"]["structuredContent"]


async def wait_until_gone(*runs: str) -> None:
    """Wait until no process of these runs is alive."""
    with anyio.fail_after(PATIENCE):
        while any(processes_of(run) for run in runs):  # noqa: ASYNC110  # no event reports it
            await anyio.sleep(0.05)
