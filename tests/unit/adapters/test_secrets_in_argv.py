"""No adapter puts a secret where every user of the machine can read it, nor into the head of a recording."""

import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from agent_mux import McpServer, RunOptions, ValidationError
from agent_mux.registry import AdapterRegistry
from agent_mux.run.plan import plan_run

REGISTRY = AdapterRegistry()
SECRETS = ("env-s3cret-value", "mcp-env-s3cret", "mcp-header-s3cret", "mcp-query-s3cret", "short1")
SERVERS = (
    McpServer("tools", command="x", env={"MCP_TOKEN": SECRETS[1], "PIN": SECRETS[4]}),
    McpServer("web", "streamable-http", url=f"https://h/x?key={SECRETS[3]}", headers={"Authorization": SECRETS[2]}),
)


@pytest.mark.parametrize("agent", sorted(set(REGISTRY.names()) - {"replay"}))
@pytest.mark.parametrize("interactive", [False, True])
def test_secrets_are_neither_in_argv_nor_in_the_header(agent: str, interactive: bool, tmp_path: Path) -> None:
    adapter = REGISTRY.get(agent)
    if interactive and not adapter.capabilities.interactive_mode:
        pytest.skip("has no interactive mode")
    options = RunOptions(
        agent=agent,
        prompt="hi",
        command=(sys.executable,) if adapter.takes_command else (),
        env={"SOME_API_KEY": SECRETS[0], adapter.executable_variable: sys.executable},
        mcp_servers=SERVERS if adapter.capabilities.mcp else (),
        interactive=interactive,
        approval_mode="prompt" if "prompt" in adapter.capabilities.approval_modes else "yolo",
    )
    try:
        plan = plan_run(options, REGISTRY.get, tmp_path)
    except ValidationError as error:
        assert [field.path for field in error.fields] == ["mcp_servers[1]"]  # the URL: it says so, and what to do
        assert not [secret for secret in SECRETS if secret in str(error)]
        plan = plan_run(replace(options, mcp_servers=SERVERS[:1]), REGISTRY.get, tmp_path)
    told = " ".join(plan.spawn.argv) + msgspec.json.encode(plan.header).decode()
    assert not [secret for secret in SECRETS if secret in told]
