"""An agent that delegates: the official MCP client, with `amux mcp-server` at the other end of its pipes."""

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
from tests.process.installed import Installed

from agent_mux.process.marker import processes_of

PATIENCE = 60.0  # seconds; a slow machine, not a slow server
HELLO = "hear(); say(session='s'); say(text='hello'); say(over=1); say(done=1); rest()"
"""What a scripted agent does that says one thing."""
WORKS = "hear(); say(session='s'); say(text='ready'); say(over=1); time.sleep(1000)"
"""One that never ends."""
ASKS = """
hear(); say(session='s')
say(ask='rm -rf build')
say(text='the answer was ' + hear()['answer']); say(over=1); say(done=1); rest()
"""
"""One that asks for permission."""
Mode = Literal["auto", "legacy"]


class Refused(Exception):  # noqa: N818  # it is what a model reads, and no error of the test
    """The tool said no."""


class Delegator:
    """Calls tools."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def __call__(self, tool: str, **arguments: Any) -> Any:
        """Call one, and return its structured answer, which is the same as its text. Raises `Refused`."""
        with anyio.fail_after(PATIENCE):
            result = await self.client.call_tool(tool, arguments)
        [content] = result.content
        assert content.type == "text"
        if result.is_error:
            raise Refused(content.text)
        assert json.loads(content.text) == result.structured_content
        return result.structured_content

    async def start(self, **more: Any) -> str:
        """A run of the scripted agent."""
        started = await self("start_run", **{"agent": "scripted", "prompt": "go", **more})
        return str(started["runId"])

    async def watch_to_end(self, run_id: str) -> Any:
        """Its last answer, with the entries of all."""
        entries: list[Any] = []
        with anyio.fail_after(PATIENCE):
            while "result" not in (seen := await self("watch_run", runId=run_id)):
                entries += seen.get("entries", [])
        return {**seen, "entries": entries + seen.get("entries", [])}


def command(*flags: object) -> list[str]:
    return [sys.executable, "-m", "agent_mux.cli.main", "mcp-server", *map(str, flags)]


def environment(installed: Installed, body: str, extra: dict[str, str] | None = None) -> dict[str, str]:
    """That of the installed command; where the tests are told another tree, that counts."""
    told = installed.environment(body, extra)
    paths = [os.environ.get("PYTHONPATH", ""), told["PYTHONPATH"]]
    return {**told, "PYTHONPATH": ":".join(path for path in paths if path)}


@asynccontextmanager
async def delegator(
    installed: Installed, *flags: object, body: str = HELLO, mode: Mode = "auto", **extra: str
) -> AsyncIterator[Delegator]:
    """A server, and its client. What the server writes to its standard error has to be nothing."""
    program, *arguments = command(*flags)
    server = StdioServerParameters(
        command=program, args=arguments, env=environment(installed, body, extra), cwd=installed.home
    )
    said = installed.home.parent / "stderr"
    with said.open("w") as errors:
        async with Client(stdio_client(server, errlog=errors), mode=mode) as client:
            yield Delegator(client)
    assert said.read_text() == ""


def start_raw(installed: Installed, *flags: object, body: str = HELLO, **extra: str) -> "subprocess.Popen[bytes]":
    """A server whose pipes are ours."""
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
    """Whatever it is."""
    assert server.stdin is not None
    rest = memoryview(data)
    while rest:
        rest = rest[server.stdin.write(rest) :]


def say(server: "subprocess.Popen[bytes]", **message: Any) -> None:
    """One message, as it is on the wire."""
    write(server, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def hear(server: "subprocess.Popen[bytes]") -> Any:
    """The next message."""
    assert server.stdout is not None
    ready, _, _ = select.select([server.stdout], [], [], PATIENCE)
    assert ready, "it says nothing"
    return json.loads(server.stdout.readline())


def introduce(server: "subprocess.Popen[bytes]") -> None:
    """The handshake."""
    known = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    say(server, id=0, method="initialize", params=known)
    assert hear(server)["result"]["serverInfo"]["name"] == "agent-mux"
    say(server, method="notifications/initialized")


def call(server: "subprocess.Popen[bytes]", number: int, tool: str, **arguments: Any) -> Any:
    """One tool."""
    say(server, id=number, method="tools/call", params={"name": tool, "arguments": arguments})
    answer = hear(server)
    assert answer["id"] == number, answer
    return answer["result"]["structuredContent"]


async def until_none_is_left(*runs: str) -> None:
    """No process of these runs is alive."""
    with anyio.fail_after(PATIENCE):
        while any(processes_of(run) for run in runs):  # noqa: ASYNC110  # nobody tells
            await anyio.sleep(0.05)
