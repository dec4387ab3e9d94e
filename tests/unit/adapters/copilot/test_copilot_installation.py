"""Installation of Copilot, with files and outputs of 1.0.102."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_mux import McpServer
from agent_mux.agents.auth import Auth
from agent_mux.agents.config.client import AgentConfigs
from agent_mux.agents.definitions import skills, subagents
from agent_mux.agents.installations import InstallationResolver
from agent_mux.agents.mcp_servers import McpServers
from agent_mux_adapters.copilot.installation import PLUGINS

# `copilot mcp add s1 --env A=b -- node x.js --flag`, `copilot mcp add --transport http --header "X-Key: abc" h1
# https://x.example/mcp`, `copilot mcp add --transport sse e1 https://x.example/sse --timeout 5000 --tools a,b`
SERVERS = """\
{
  "mcpServers": {
    "s1": {
      "tools": [
        "*"
      ],
      "type": "local",
      "command": "node",
      "args": [
        "x.js",
        "--flag"
      ],
      "env": {
        "A": "b"
      }
    },
    "h1": {
      "tools": [
        "*"
      ],
      "type": "http",
      "url": "https://x.example/mcp",
      "headers": {
        "X-Key": "abc"
      }
    },
    "e1": {
      "tools": [
        "a",
        "b"
      ],
      "timeout": 5000,
      "type": "sse",
      "url": "https://x.example/sse"
    }
  }
}
"""
# A user's file. Copilot's own `config` command would remove its comments.
SETTINGS = """\
{
  // mine
  "model": "gpt-5.4", // the usual one
  "allowedUrls": [
    "github.com"
  ]
}
"""
# Written by Copilot after a login in plain text, with an invented token.
STATE = """\
// User settings belong in settings.json.
// This file is managed automatically.
{
  "loggedInUsers": [
    {
      "host": "https://github.com",
      "login": "octocat"
    }
  ],
  "firstLaunchAt": "2026-03-11T00:00:00.000Z",
  "authTokens": {
    "https://github.com:octocat:github": {
      "token": "made-up"
    }
  }
}
"""


class Machine:
    """A home directory and a project, with access to what they contain."""

    def __init__(self, directory: Path) -> None:
        self.user = directory / "home"
        self.home = self.user / ".copilot"
        self.project = directory / "project"
        self.home.mkdir(parents=True)
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
        state = Auth(self.homes).check("copilot")
        return state.status, state.method, state.where if state.problem is None else state.problem


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_servers_are_read_as_copilot_wrote_them(machine: Machine) -> None:
    machine.write(".copilot/mcp-config.json", SERVERS)
    assert [one.server for one in McpServers(machine.homes).list("copilot")] == [
        McpServer("s1", command="node", args=("x.js", "--flag"), env={"A": "b"}),
        McpServer("h1", "streamable-http", url="https://x.example/mcp", headers={"X-Key": "abc"}),
        McpServer("e1", "sse", url="https://x.example/sse"),
    ]


def test_a_server_is_switched_off_in_the_settings(machine: Machine) -> None:
    machine.write(".copilot/mcp-config.json", SERVERS)
    # `copilot mcp disable e1`
    machine.write(".copilot/settings.json", '{\n  "disabledMcpServers": [\n    "e1"\n  ]\n}\n')
    servers = McpServers(machine.homes)
    assert {one.name: one.enabled for one in servers.list("copilot")} == {"s1": True, "h1": True, "e1": False}
    machine.write("../project/.github/copilot/settings.local.json", {"disabledMcpServers": ["s1", 3]})
    assert [one.name for one in servers.list("copilot") if one.enabled] == ["h1"]


@pytest.mark.parametrize(
    "server",
    [
        McpServer("new", command="run", args=("a b",), env={"KEY": "v"}),
        McpServer("new", "streamable-http", url="https://h", headers={"X-A": "1"}),
        McpServer("new", "sse", url="https://h"),
    ],
)
def test_a_server_that_is_added_and_removed_leaves_every_byte(machine: Machine, server: McpServer) -> None:
    path = machine.write(".copilot/mcp-config.json", SERVERS)
    servers = McpServers(machine.homes)
    servers.add("copilot", server)
    assert [one.server for one in servers.list("copilot") if one.name == "new"] == [server]
    assert json.loads(path.read_text("utf-8"))["mcpServers"]["new"]["tools"] == ["*"]
    servers.remove("copilot", "new")
    assert path.read_text("utf-8") == SERVERS


def test_of_two_files_of_a_project_only_the_first_counts(machine: Machine) -> None:
    second = machine.write("../project/.github/mcp.json", {"mcpServers": {"two": {"command": "x"}}})
    servers = McpServers(machine.homes)
    assert [one.name for one in servers.list("copilot")] == ["two"]
    servers.add("copilot", McpServer("three", command="x"), scope="project")
    assert "three" in second.read_text("utf-8")
    machine.write("../project/.mcp.json", {"mcpServers": {"one": {"command": "x"}}})
    assert [one.name for one in servers.list("copilot")] == ["one"]


def test_the_model_is_read_and_set_and_comments_stay(machine: Machine) -> None:
    path = machine.write(".copilot/settings.json", SETTINGS)
    configs = AgentConfigs(machine.homes)
    effective = configs.model("copilot")
    assert effective is not None
    assert effective.value == "gpt-5.4"
    configs.set_model("copilot", "claude-opus-5")
    assert path.read_text("utf-8") == SETTINGS.replace("gpt-5.4", "claude-opus-5")
    # `copilot config --repo model gpt-5.5`, `copilot config --local model gpt-5-mini`
    machine.write("../project/.github/copilot/settings.json", '{\n  "model": "gpt-5.5"\n}\n')
    machine.write("../project/.github/copilot/settings.local.json", '{\n  "model": "gpt-5-mini"\n}\n')
    effective = configs.model("copilot")
    assert effective is not None
    assert (effective.value, effective.scope) == ("gpt-5-mini", "local")


def test_a_field_that_is_set_and_unset_leaves_every_byte(machine: Machine) -> None:
    path = machine.write(".copilot/settings.json", SETTINGS)
    configs = AgentConfigs(machine.homes)
    for name, value in (("contextTier", "long_context"), ('enabledPlugins."demo@shop"', True)):
        configs.set_field("copilot", name, value)
        assert path.read_text("utf-8") != SETTINGS
        configs.unset_field("copilot", name)
        assert path.read_text("utf-8") == SETTINGS


def test_its_directory_may_be_elsewhere(machine: Machine, tmp_path: Path) -> None:
    machine.environ["COPILOT_HOME"] = str(tmp_path / "moved")
    AgentConfigs(machine.homes).set_model("copilot", "gpt-5.4")
    assert json.loads((tmp_path / "moved" / "settings.json").read_text("utf-8")) == {"model": "gpt-5.4"}


def test_a_new_home_is_unauthenticated(machine: Machine) -> None:
    assert machine.auth() == ("unauthenticated", None, None)


def test_a_login_in_plain_text(machine: Machine) -> None:
    path = machine.write(".copilot/config.json", STATE)
    assert machine.auth() == ("authenticated", "github-oauth", str(path))


def test_a_login_that_an_older_version_wrote(machine: Machine) -> None:
    machine.write(".copilot/config.json", {"copilotTokens": {"https://github.com:octocat": "made-up"}})
    assert machine.auth()[:2] == ("authenticated", "github-oauth")


def test_an_account_without_a_token_has_it_in_the_keyring(machine: Machine) -> None:
    machine.write(".copilot/config.json", {"loggedInUsers": [{"host": "https://github.com", "login": "octocat"}]})
    assert machine.auth() == ("unknown", None, "it may be in the system keyring")


@pytest.mark.parametrize("name", ["COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"])
def test_a_token_in_the_environment_comes_before_what_is_stored(machine: Machine, name: str) -> None:
    machine.write(".copilot/config.json", STATE)
    machine.environ[name] = "made-up"
    assert machine.auth() == ("authenticated", "github-token", name)


def test_a_classic_token_is_refused(machine: Machine) -> None:
    machine.environ["GITHUB_TOKEN"] = "ghp_" + "x"
    status, _, problem = machine.auth()
    assert status == "unknown"
    assert "GITHUB_TOKEN holds a classic token" in (problem or "")


def test_an_own_model_provider_needs_no_account(machine: Machine) -> None:
    machine.environ["COPILOT_PROVIDER_BASE_URL"] = "http://127.0.0.1:9/v1"
    assert machine.auth() == ("authenticated", "own-provider", "COPILOT_PROVIDER_BASE_URL")


@pytest.fixture
def with_gh(machine: Machine, tmp_path: Path) -> Machine:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gh").write_text("#!/bin/sh\n", "utf-8")
    (tmp_path / "bin" / "gh").chmod(0o755)
    machine.environ["PATH"] = str(tmp_path / "bin")
    return machine


def test_the_account_of_the_github_cli(with_gh: Machine) -> None:
    hosts = with_gh.write(".config/gh/hosts.yml", "github.com:\n    user: octocat\n    oauth_token: made-up\n")
    assert with_gh.auth() == ("authenticated", "github-cli", str(hosts))
    with_gh.environ["PATH"] = ""
    assert with_gh.auth() == ("unauthenticated", None, None)  # without the program `gh`


def test_the_github_cli_may_use_a_keyring(with_gh: Machine) -> None:
    with_gh.write(".config/gh/hosts.yml", "github.com:\n    user: octocat\n")
    assert with_gh.auth() == ("unknown", None, "it may be in the keyring that the GitHub CLI uses")


def test_a_broken_file_is_an_error(machine: Machine) -> None:
    machine.write(".copilot/config.json", "{broken")
    status, _, problem = machine.auth()
    assert status == "unknown"
    assert "config.json: line 1, column 8" in (problem or "")


def test_skills_are_found_in_five_places(machine: Machine) -> None:
    own, shared = ("home/.copilot", "project/.github"), ("home/.agents", "project/.agents", "project/.claude")
    for base in (*own, *shared):
        folder = machine.user.parent / base / "skills" / "one"
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text("---\nname: one\n---\nWhat it is.\n", "utf-8")
    found = skills(machine.homes).list("copilot")
    assert [(one.scope, one.is_shared, one.problem) for one in found] == [
        ("global", False, None), ("project", False, None),
        ("global", True, None), ("project", True, None), ("project", True, None),
    ]  # fmt: skip


def test_sub_agents_have_one_of_two_endings(machine: Machine) -> None:
    machine.write(".copilot/agents/a.agent.md", "---\ndescription: d\n---\n")
    machine.write("../project/.github/agents/b.md", "---\nname: bee\ndescription: d\n---\n")
    machine.write("../project/.claude/agents/c.md", "---\nname: c\n---\n")
    found = [(one.name, one.is_shared, one.problem) for one in subagents(machine.homes).list("copilot")]
    assert found == [("a.agent", False, None), ("bee", False, None), ("c", True, "its header lacks description")]


# `copilot plugin list --json`, with a marketplace in a local folder
LISTED = [
    {"name": "demo", "marketplace": "shop", "version": "1.2.0", "enabled": True, "source": "live",
     "installedFrom": "/m"},
    {"name": "other", "marketplace": "shop", "version": "1.0.0", "enabled": False, "source": "live",
     "installedFrom": "/m"},
    {"name": "kept", "marketplace": "far", "version": "2.0.0", "enabled": False, "source": "installed"},
    {"name": "browser-use", "marketplace": "", "version": "0.0.4", "enabled": False, "source": "builtin"},
]  # fmt: skip


def test_plugins_that_are_only_offered_are_not_listed() -> None:
    assert PLUGINS.parse is not None
    found = [(one.name, one.version, one.enabled, one.source) for one in PLUGINS.parse(json.dumps(LISTED))]
    assert found == [
        ("demo@shop", "1.2.0", True, "/m"), ("kept@far", "2.0.0", False, "far"),
        ("browser-use", "0.0.4", False, "builtin"),
    ]  # fmt: skip


def test_one_plugin_is_updated_or_all() -> None:
    assert PLUGINS.update is not None
    assert PLUGINS.update("demo@shop") == ("plugin", "update", "demo@shop")
    assert PLUGINS.update(None) == ("plugin", "update", "--all")
