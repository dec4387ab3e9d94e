"""What Cursor's CLI keeps on a machine, as cursor.com/docs describes it; no file here was written by it."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_mux import CapabilityError, McpServer
from agent_mux.agents.auth import Auth
from agent_mux.agents.config.client import AgentConfigs
from agent_mux.agents.definitions import skills, subagents
from agent_mux.agents.installations import InstallationResolver
from agent_mux.agents.mcp_servers import McpServers
from agent_mux_adapters.cursor import installation as cursor_home

# docs/cli/reference/configuration
SETTINGS = """\
{
  "version": 1,
  "editor": { "vimMode": false },
  "permissions": { "allow": ["Shell(ls)"], "deny": [] }
}
"""
# docs/mcp
SERVERS = """\
{
  "mcpServers": {
    "local": {
      "type": "stdio",
      "command": "npx",
      "args": ["-y", "mcp-server"],
      "env": {
        "API_KEY": "value"
      }
    },
    "remote": {
      "url": "http://localhost:3000/mcp",
      "headers": {
        "API_KEY": "value"
      }
    }
  }
}
"""


class Machine:
    """A home, a project, and what is looked at there."""

    def __init__(self, directory: Path) -> None:
        self.user, self.project = directory / "home", directory / "project"
        self.user.mkdir()
        self.project.mkdir()
        self.environ = {"HOME": str(self.user)}

    @property
    def homes(self) -> InstallationResolver:
        return InstallationResolver(environ=self.environ, project=self.project)

    def write(self, name: str, content: Any) -> Path:
        path = self.user / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
        return path

    def auth(self) -> tuple[str, str | None, str | None]:
        state = Auth(self.homes).check("cursor")
        return state.status, state.method, state.where


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(cursor_home.sys, "platform", "linux")
    return Machine(tmp_path)


def test_servers_are_read_as_documented(machine: Machine) -> None:
    machine.write(".cursor/mcp.json", SERVERS)
    assert [one.server for one in McpServers(machine.homes).list("cursor")] == [
        McpServer("local", command="npx", args=("-y", "mcp-server"), env={"API_KEY": "value"}),
        McpServer("remote", "streamable-http", url="http://localhost:3000/mcp", headers={"API_KEY": "value"}),
    ]


@pytest.mark.parametrize(
    ("server", "written"),
    [
        (McpServer("new", command="x"), {"type": "stdio", "command": "x", "args": [], "env": {}}),
        (McpServer("new", "streamable-http", url="https://h"), {"url": "https://h", "headers": {}}),
        (McpServer("new", "sse", url="https://h"), {"type": "sse", "url": "https://h", "headers": {}}),
    ],
)
def test_a_server_that_is_added_and_removed_leaves_every_byte(
    machine: Machine, server: McpServer, written: dict[str, Any]
) -> None:
    path = machine.write(".cursor/mcp.json", SERVERS)
    servers = McpServers(machine.homes)
    servers.add("cursor", server)
    assert json.loads(path.read_text("utf-8"))["mcpServers"]["new"] == written
    assert [one.server for one in servers.list("cursor") if one.name == "new"] == [server]
    servers.remove("cursor", "new")
    assert path.read_text("utf-8") == SERVERS


def test_the_file_of_a_project_wins(machine: Machine) -> None:
    machine.write(".cursor/mcp.json", SERVERS)
    servers = McpServers(machine.homes)
    servers.add("cursor", McpServer("local", command="mine"), scope="project")
    assert [(one.scope, one.wins) for one in servers.list("cursor") if one.name == "local"] == [
        ("global", False), ("project", True)
    ]  # fmt: skip
    assert (machine.project / ".cursor" / "mcp.json").exists()


def test_a_field_that_is_set_and_unset_leaves_every_byte(machine: Machine) -> None:
    path = machine.write(".cursor/cli-config.json", SETTINGS)
    configs = AgentConfigs(machine.homes)
    assert configs.validate("cursor") == []
    configs.set_field("cursor", "sandbox.mode", "enabled")
    assert json.loads(path.read_text("utf-8"))["sandbox"] == {"mode": "enabled"}
    configs.unset_field("cursor", "sandbox.mode")
    assert path.read_text("utf-8") == SETTINGS


def test_there_is_no_model_to_set(machine: Machine) -> None:
    machine.write(".cursor/cli-config.json", {"version": 1, "model": {"modelId": "auto"}})
    configs = AgentConfigs(machine.homes)
    assert configs.model("cursor") is None
    with pytest.raises(CapabilityError, match="a model in its configuration"):
        configs.set_model("cursor", "auto")


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "home/.cursor/cli-config.json"),
        ({"XDG_CONFIG_HOME": "xdg"}, "xdg/cursor/cli-config.json"),
        ({"XDG_CONFIG_HOME": "xdg", "CURSOR_CONFIG_DIR": "mine"}, "mine/cli-config.json"),
    ],
)
def test_its_settings_may_be_elsewhere(
    machine: Machine, tmp_path: Path, environ: dict[str, str], expected: str
) -> None:
    machine.environ |= {name: str(tmp_path / value) for name, value in environ.items()}
    [found] = AgentConfigs(machine.homes).sources("cursor", "global")
    assert found.path == tmp_path / expected


def test_no_login_is_found(machine: Machine) -> None:
    assert machine.auth() == ("unauthenticated", None, None)


@pytest.mark.parametrize(("name", "method"), [("CURSOR_API_KEY", "api_key"), ("CURSOR_AUTH_TOKEN", "auth_token")])
def test_a_key_in_the_environment(machine: Machine, name: str, method: str) -> None:
    machine.environ[name] = "made-up"
    assert machine.auth() == ("authenticated", method, name)


def test_a_login_in_a_file(machine: Machine) -> None:
    path = machine.write(".config/cursor/auth.json", {"accessToken": "made-up", "refreshToken": "made-up"})
    assert machine.auth() == ("authenticated", "oauth", str(path))
    path.write_text("{broken", "utf-8")
    assert machine.auth()[0] == "unknown"


def test_an_account_without_a_token_has_it_in_a_keyring(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.write(".cursor/cli-config.json", {"version": 1, "authInfo": {"email": "a@b.example"}})
    state = Auth(machine.homes).check("cursor")
    assert (state.status, state.problem) == ("unknown", "it may be in the keyring of the system")
    monkeypatch.setattr(cursor_home.sys, "platform", "darwin")
    assert Auth(machine.homes).check("cursor").problem == "it may be in the keychain of macOS"


def test_skills_and_sub_agents_of_others_are_found_and_not_touched(machine: Machine) -> None:
    for name in (".cursor", ".claude", ".codex"):
        machine.write(f"{name}/skills/one/SKILL.md", "---\nname: one\ndescription: d\n---\n")
        machine.write(f"../project/{name}/agents/two.md", "---\nname: two\ndescription: d\n---\n")
    machine.write("../project/.agents/skills/three/SKILL.md", "---\nname: three\n---\n")
    found = skills(machine.homes).list("cursor")
    assert [(one.name, one.is_shared, one.problem) for one in found] == [
        ("one", False, None), ("one", True, None), ("one", True, None), ("three", True, "its header lacks description"),
    ]  # fmt: skip
    assert [one.is_shared for one in subagents(machine.homes).list("cursor")] == [False, True, True]
    assert subagents(machine.homes).remove("cursor", "two").target == machine.project / ".cursor" / "agents" / "two.md"
