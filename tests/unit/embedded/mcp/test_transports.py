"""An agent calls the tools of real servers, written with the official SDK, over each transport."""

import base64
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from tests.unit.embedded.fake_provider import FakeProvider, reply
from tests.unit.embedded.mcp.server import AUTHORIZATION, PIXEL
from tests.unit.embedded.mcp.servers import (
    PATIENCE,
    SERVER,
    call_of,
    events_of,
    http_server,
    is_alive,
    results_of,
    stdio_server,
    wait_until_ended,
)

from agent_loop import Agent, McpServer
from agent_loop.events import McpBootstrapped, ToolProgress, ToolResulted
from agent_loop.hooks.contexts import OAuthRefresh
from agent_loop.messages import Image, Text

pytestmark = pytest.mark.anyio


@pytest.mark.slow
async def test_stdio_server_answers_with_text_images_and_structured_content(tmp_path: Path) -> None:
    server = stdio_server(env={"PID_FILE": str(tmp_path / "pid"), "API_TOKEN": "secret-token"})
    echo, picture, boom, point, variables = await results_of(
        server,
        call_of("echo", 1, text="ping"),
        call_of("picture", 2),
        call_of("boom", 3),
        call_of("point", 4, x=1),
        call_of("variables", 5),
    )
    assert (echo.name, echo.is_error, echo.content) == ("test__echo", False, (Text("echo: ping"),))
    assert picture.content == (Text("a pixel"), Image(base64.b64encode(PIXEL).decode(), "image/png"))
    assert boom.is_error
    assert boom.text == "Error executing tool boom"
    assert point.details == {"structured": {"x": 1, "y": 2}}
    assert "API_TOKEN" in variables.text.split()
    assert not set(variables.text.split()) & {"PYTEST_CURRENT_TEST", "ANTHROPIC_API_KEY"}  # nothing else is inherited
    await wait_until_ended(int((tmp_path / "pid").read_text()))


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
async def test_server_on_loopback_is_called(transport: str, tmp_path: Path) -> None:
    async with http_server(transport, tmp_path, AUTHORIZED_ONLY="1") as url:
        server = McpServer(
            name="test",
            transport=transport,  # type: ignore[arg-type]
            url=url,
            headers={"Authorization": AUTHORIZATION},
            connect_timeout=PATIENCE,
        )
        [result] = await results_of(server, call_of("echo", text="ping"))
    assert result.content == (Text("echo: ping"),)


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
async def test_refused_request_is_repeated_with_the_headers_of_the_refresh_hook(
    transport: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    refreshed: list[str] = []

    async def refresh(context: OAuthRefresh) -> None:
        refreshed.append(context.server)
        assert "second-token" not in repr(context)
        context.headers = {"Authorization": AUTHORIZATION}

    async with http_server(transport, tmp_path, AUTHORIZED_ONLY="1") as url:
        server = McpServer(
            name="test",
            transport=transport,  # type: ignore[arg-type]
            url=url,
            headers={"Authorization": "Bearer first-token"},
            connect_timeout=PATIENCE,
        )
        [result] = await results_of(server, call_of("echo", text="ping"), hooks={"oauth:refresh": refresh})
        assert result.content == (Text("echo: ping"),)
        assert refreshed == ["test"]  # later requests have the new header at once
        agent = Agent(FakeProvider(reply("Done.")), mcp_servers=[server])
        [failed] = [event for event in await events_of(agent) if isinstance(event, McpBootstrapped)]
    assert "401" in str(failed.error)
    assert "first-token" not in str(failed.error) + caplog.text + repr(server)


@pytest.mark.slow
async def test_call_ends_at_its_timeout_and_the_server_stays_connected(tmp_path: Path) -> None:
    server = stdio_server(timeout=3.0, env={"PID_FILE": str(tmp_path / "pid")})
    agent = Agent(
        FakeProvider(reply("", call_of("wait", 1)), reply("", call_of("echo", 2, text="ping")), reply("Done.")),
        mcp_servers=[server],
    )
    events = await events_of(agent)
    waited, echoed = (event.message for event in events if isinstance(event, ToolResulted))
    assert "did not answer within 3 seconds" in waited.text
    assert echoed.text == "echo: ping"
    assert [event.text for event in events if isinstance(event, ToolProgress)] == ["half done"]


@pytest.mark.slow
async def test_aborted_run_ends_its_servers(tmp_path: Path) -> None:
    agent = Agent(
        FakeProvider(reply("", call_of("wait"))), mcp_servers=[stdio_server(env={"PID_FILE": str(tmp_path / "pid")})]
    )
    with anyio.fail_after(PATIENCE):
        async with agent.run_stream("go") as events:
            async for event in events:
                if isinstance(event, ToolProgress):
                    agent.abort()
    assert agent.messages[-1].text.startswith("Aborted")
    await wait_until_ended(int((tmp_path / "pid").read_text()))


@pytest.mark.slow
async def test_lost_connection_is_an_error_and_the_next_call_connects_again(tmp_path: Path) -> None:
    died, echoed = await results_of(
        stdio_server(env={"API_TOKEN": "secret-token"}), call_of("die", 1), call_of("echo", 2, text="ping")
    )
    assert died.is_error
    assert "was lost during the call" in died.text
    assert "refused token [redacted]" in died.text
    assert echoed.text == "echo: ping"


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_failed_server_reports_its_output_without_secrets_and_others_work() -> None:
    secret = "secret-token-of-the-server"  # noqa: S105
    broken = stdio_server("broken", env={"EXIT": "1", "API_TOKEN": secret})
    absent = McpServer(name="absent", command="/no/such/program")
    hanging = stdio_server("hanging", env={"HANG": "1"}, connect_timeout=4.0)
    provider = FakeProvider(reply("", call_of("echo", text="ping")), reply("Done."))
    agent = Agent(provider, mcp_servers=[broken, absent, hanging, stdio_server()])
    events = await events_of(agent)
    errors = {event.server: event.error for event in events if isinstance(event, McpBootstrapped)}
    assert "refused token [redacted]" in str(errors["broken"])
    assert errors["absent"] == "the program '/no/such/program' or its directory does not exist"
    assert str(errors["hanging"]).startswith("it did not list its tools within 4 seconds")
    assert errors["test"] is None
    [result] = [event.message for event in events if isinstance(event, ToolResulted)]
    assert result.text == "echo: ping"
    system = provider.requests[0].system
    assert "absent: the program '/no/such/program'" in system
    assert secret not in system + repr(events) + repr(agent.parts.mcp.servers if agent.parts.mcp else "")


HOST = """
import sys, anyio
sys.path[:0] = {path!r}
from agent_loop import Agent, McpServer, ScriptedProvider
from tests.unit.embedded.fake_provider import FakeProvider, reply
async def main():
    server = McpServer(name="test", command=sys.executable, args=[{server!r}, "stdio"], env={{"PID_FILE": {pid!r}}})
    async with Agent(FakeProvider(reply("Done.")), mcp_servers=[server]) as agent:
        await agent.warmup()
        print("ready", flush=True)
        await anyio.sleep_forever()
anyio.run(main)
"""


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_server_ends_when_the_agent_is_killed(tmp_path: Path) -> None:
    """The agent's end closes the input of the server, which ends by the protocol."""
    pid_file = tmp_path / "pid"
    code = HOST.format(path=sys.path, server=SERVER, pid=str(pid_file))
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)  # noqa: ASYNC220
    try:
        assert process.stdout is not None
        with anyio.fail_after(PATIENCE):
            assert await anyio.to_thread.run_sync(process.stdout.readline, abandon_on_cancel=True) == b"ready\n"
        pid = int(pid_file.read_text())
        assert is_alive(pid)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=PATIENCE)
        if process.stdout is not None:
            process.stdout.close()
    await wait_until_ended(pid)
