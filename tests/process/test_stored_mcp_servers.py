"""MCP servers that the user and a project store for the embedded agent, from their file to the result of a tool."""

import sys
from pathlib import Path

import anyio
import pytest
from tests.process.embedded_agent import Sandbox

from agent_mux import AgentMux, McpServer
from agent_mux.agents.installations import InstallationResolver
from agent_mux.agents.mcp_servers import McpServers
from agent_mux_testing import mcp_echo

pytestmark = pytest.mark.slow


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    """Return a sandbox in which one MCP server is stored for the user, and another one for the project."""
    sandbox = Sandbox(tmp_path)
    servers = McpServers(InstallationResolver(environ=sandbox.environment, project=sandbox.work))
    servers.add("native", McpServer("own", command=sys.executable, args=(mcp_echo.__file__,)))
    servers.add("native", McpServer("theirs", command=sys.executable, args=(mcp_echo.__file__,)), scope="project")
    return sandbox


def test_run_in_a_trusted_project_uses_servers_that_amux_added(sandbox: Sandbox) -> None:
    calls = [{"name": f"{server}__echo", "arguments": {"text": server}} for server in ("own", "theirs")]
    model = sandbox.script({"tool_calls": calls}, {"text": "Done."})

    async def run() -> list[str]:
        async with AgentMux(config_dir=sandbox.root / "config", timeout=60) as mux:
            result = await mux.run(
                agent="native", prompt="go", cwd=sandbox.work, model=model, approval_mode="yolo", track_changes=False,
                env={"AMUX_AGENT_HOME": str(sandbox.home)}, collect_events=True, native_options={"trustProject": True},
            )  # fmt: skip
        return [str(event.output) for event in result.events or () if event.type == "mcp_tool_result"]

    assert anyio.run(run) == ["echo: own", "echo: theirs"]


def test_servers_of_a_project_that_is_not_trusted_are_a_warning(sandbox: Sandbox) -> None:
    (sandbox.home / "settings.json").unlink()
    done = sandbox.run(f"--model={sandbox.script({'text': 'Done.'})}", "go")
    assert (done.returncode, done.stdout) == (0, "Done.\n")
    assert "warning: the MCP servers of .mcp.json (theirs) are not started" in done.stderr
