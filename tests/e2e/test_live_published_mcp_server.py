"""The embedded agent calls a published MCP server: `mcp-server-time`, from PyPI."""

import anyio
import pytest

from agent_loop import Agent, McpServer, ScriptedProvider
from agent_loop.events import ToolResulted
from agent_loop.providers.script import call, say
from agent_mux_testing.provision import TIME_SERVER, find_tool

pytestmark = pytest.mark.anyio
PATIENCE = 120.0


def program() -> str:
    """Return the path of the server. Skip the test if it is not installed."""
    found = find_tool(TIME_SERVER)
    if found is None:
        pytest.skip(f"{TIME_SERVER} is not installed; try: python -m agent_mux_testing.provision {TIME_SERVER}")
    return str(found.program)


async def test_published_server_converts_a_time() -> None:
    arguments = {"source_timezone": "Europe/Rome", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    model = ScriptedProvider([call("time__convert_time", **arguments), say("Done.")])
    server = McpServer(name="time", command=program(), args=["--local-timezone", "UTC"], connect_timeout=PATIENCE)
    results: list[ToolResulted] = []

    async def watch(event: object) -> None:
        if isinstance(event, ToolResulted):
            results.append(event)

    with anyio.fail_after(2 * PATIENCE):
        await Agent(model, mcp_servers=[server]).run("What time is it?", on_event=watch)
    [result] = results
    assert not result.message.is_error
    assert "Asia/Tokyo" in result.message.text
    assert "T19:00" in result.message.text or "T20:00" in result.message.text  # summer or winter in Rome
