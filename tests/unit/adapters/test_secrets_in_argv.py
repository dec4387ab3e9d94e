"""No adapter puts a secret on the command line, which every user can read, or into the header of a recording."""

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_mux import McpServer, RunOptions, ValidationError
from agent_mux.run.plan import plan_run
from agent_mux.sdk.registry import AdapterRegistry

REGISTRY = AdapterRegistry()
SECRETS = ("env-s3cret-value", "mcp-env-s3cret", "mcp-header-s3cret", "mcp-query-s3cret", "short1")
SERVERS = (
    McpServer("tools", command="x", env={"MCP_TOKEN": SECRETS[1], "PIN": SECRETS[4]}),
    McpServer("web", "streamable-http", url=f"https://h/x?key={SECRETS[3]}", headers={"Authorization": SECRETS[2]}),
)


def options_for(agent: str, **given: Any) -> RunOptions:
    adapter = REGISTRY.get(agent)
    return RunOptions(
        agent=agent,
        prompt="hi",
        command=(sys.executable,) if adapter.takes_command else (),
        env={"SOME_API_KEY": SECRETS[0], adapter.executable_variable: sys.executable},
        approval_mode="prompt" if "prompt" in adapter.capabilities.approval_modes else "yolo",
        **given,
    )


@pytest.mark.parametrize("agent", sorted(set(REGISTRY.names()) - {"replay"}))
@pytest.mark.parametrize("interactive", [False, True])
def test_secrets_are_neither_in_argv_nor_in_the_header(agent: str, interactive: bool, tmp_path: Path) -> None:
    capabilities = REGISTRY.get(agent).capabilities
    servers = [server for server in SERVERS if capabilities.mcp and (agent != "codex" or server.url is None)]
    options = options_for(agent, mcp_servers=servers, interactive=interactive and capabilities.interactive_mode)
    plan = plan_run(options, REGISTRY.get, tmp_path)
    exposed = " ".join(plan.spawn.argv) + msgspec.json.encode(plan.header).decode()
    assert not [secret for secret in SECRETS if secret in exposed]


def test_url_with_a_secret_is_refused_when_it_is_passed_in_argv(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="headers and env are safe") as raised:
        plan_run(options_for("codex", mcp_servers=SERVERS), REGISTRY.get, tmp_path)
    assert [field.path for field in raised.value.fields] == ["mcp_servers[1]"]
    assert not [secret for secret in SECRETS if secret in str(raised.value)]
    harmless = McpServer("web", "streamable-http", url="https://h/x?version=2", headers={"Authorization": SECRETS[2]})
    assert plan_run(options_for("codex", mcp_servers=[harmless]), REGISTRY.get, tmp_path).spawn.argv
