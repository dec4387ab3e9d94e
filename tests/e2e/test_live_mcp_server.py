"""A real agent delegates to another agent through `amux mcp-server`, and gets its result."""

import json
import os
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters, stdio_client
from tests.e2e.harness import LiveAgent
from tests.e2e.model import serve
from tests.process.mcp_client import Delegator

from agent_mux import McpServer
from agent_mux.process.marker import processes_of
from agent_mux_testing.live import MCP_SERVER, KitContext, Mcp, Say, Shell, answer, kit_of, launch
from agent_mux_testing.provision import find_agent

pytestmark = pytest.mark.anyio
TASK = "Count the wombats, please."
TASK_RESULT = "There are seven wombats in the garden."


def delegating(live: LiveAgent, directory: Path, *flags: object, **environment: str) -> McpServer:
    """Return `amux mcp-server` as an MCP server of the agent, with its own configuration directory."""
    inherited = {name: os.environ[name] for name in ("PYTHONPATH", "PATH", "LANG") if name in os.environ}
    own = {"AGENT_MUX_CONFIG_DIR": str(directory / "delegated"), "AMUX_REPLAY_SPEED": "0"}
    arguments = ("-m", "agent_mux.cli.main", "mcp-server", "--root", live.workspace, *flags)
    return McpServer(
        MCP_SERVER, command=sys.executable, args=tuple(map(str, arguments)), env={**inherited, **own, **environment}
    )


@pytest.fixture
def agent_waits_for_servers(live: LiveAgent) -> None:
    """Skip agents that request an answer before their MCP servers have started: the script has a fixed order."""
    if live.agent == "codex":
        pytest.skip("codex requests an answer before a slow MCP server has started")


def assert_received(live: LiveAgent, request: int, wanted: str) -> None:
    assert live.model.received(wanted, request), json.dumps(live.model.requests[request].body)[-4000:]


@pytest.mark.usefixtures("agent_waits_for_servers")
async def test_mcp_server_delegates_to_a_recording(live: LiveAgent, tmp_path: Path) -> None:
    """The results of start_run, watch_run and get_result reach the model of the first agent."""
    live.script(
        live.answer(Mcp("start_run", {"agent": "replay", "prompt": "demo"})),
        live.answer(Mcp("watch_run", {})),
        live.answer(Mcp("get_result", {})),
        live.answer(Say("The other agent is done.")),
    )
    done = await live.run(mcp_servers=[delegating(live, tmp_path)])
    assert done.result.text == "The other agent is done."
    assert len(done.types("mcp_tool_result")) == 3, done.types("mcp_tool_result", "mcp_tool_error")
    assert_received(live, 1, "spawned")
    assert_received(live, 2, "completed")
    assert_received(live, 3, "filesChanged")


@pytest.mark.usefixtures("agent_waits_for_servers")
async def test_mcp_server_delegates_to_codex(live: LiveAgent, tmp_path: Path) -> None:
    """The second real agent receives the task of the first, and its answer reaches the first model."""
    other, home = find_agent("codex"), tmp_path / "other"
    if other is None:
        pytest.skip("codex is not installed; try: python -m agent_mux_testing.provision codex")
    kit = kit_of("codex")
    live.script(
        live.answer(Mcp("start_run", {"agent": "codex", "prompt": TASK})),
        live.answer(Mcp("watch_run", {})),
        live.answer(Say("They were counted.")),
    )
    with serve(answer(kit, live.workspace, Say(TASK_RESULT)), first_id=9000) as model:
        start = launch(kit, KitContext(url=model.url, home=home, path=other.path), str(other.program))
        server = delegating(live, tmp_path, "--agent", "codex", "--max-cost", "5", **start.environment)
        done = await live.run(mcp_servers=[server])
        assert done.result.text == "They were counted."
        assert model.received(TASK)
    assert_received(live, 2, TASK_RESULT)
    [journal] = (tmp_path / "delegated" / "runs").iterdir()
    assert processes_of(journal.name.partition(".")[0]) == []


@pytest.mark.usefixtures("agent_waits_for_servers")
async def test_mcp_server_at_the_depth_limit(live: LiveAgent, tmp_path: Path) -> None:
    """An agent at the depth limit has no `start_run`, and `list_agents` reports that no runs are left."""
    live.script(
        live.answer(Mcp("list_agents", {})),
        live.answer(Say("I do it myself.")),
    )
    done = await live.run(mcp_servers=[delegating(live, tmp_path, AGENT_MUX_DEPTH="2")])
    assert done.result.text == "I do it myself."
    tools = json.dumps(live.model.requests[0].body)
    assert '"start_run"' not in tools
    assert "__start_run" not in tools
    assert_received(live, 1, "runsLeft")


async def test_mcp_server_drives_a_real_agent(live: LiveAgent, tmp_path: Path) -> None:
    """The official client starts the agent, approves a command, and continues its session in another run."""
    live.script(
        live.answer(Shell("touch made", asks=True)),
        live.answer(Say("Made it.")),
        live.answer(Say("It was I.")),
    )
    own = delegating(live, tmp_path, "--approvals", "prompt", "--agent", live.agent, **live.launch.environment)
    server = StdioServerParameters(
        command=own.command or "", args=list(own.args), env=dict(own.env), cwd=live.workspace
    )
    with (tmp_path / "stderr").open("w") as errors:
        async with Client(stdio_client(server, errlog=errors)) as client:
            tool = Delegator(client)
            run = str((await tool("start_run", agent=live.agent, prompt="Make it."))["runId"])
            first = await tool("watch_run", runId=run)
            assert "pending" in first, first
            [pending] = first["pending"]
            assert "touch made" in pending["text"] + pending.get("command", "")
            assert not live.file("made").exists()
            await tool("answer", runId=run, decision="approve", interactionId=pending["interactionId"])
            seen = await tool.watch_to_end(run)
            assert seen["result"]["text"] == "Made it."
            assert live.file("made").exists()
            kinds = {one["kind"] for one in first["entries"] + seen["entries"]}
            assert {"tool", "question", "message"} <= kinds
            more = await tool("start_run", agent=live.agent, prompt="Who was it?", continueRun=run)
            assert (await tool.watch_to_end(more["runId"]))["result"]["text"] == "It was I."
            assert live.model.received("Make it.")
    assert (tmp_path / "stderr").read_text() == ""
    assert live.processes() == []
