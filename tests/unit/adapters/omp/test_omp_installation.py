"""omp's settings, MCP servers, credentials and plugins, in files written and lists printed by 18.2.3."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agent_mux import McpServer, ValidationError
from agent_mux.agents.auth import Auth
from agent_mux.agents.config.client import AgentConfigs
from agent_mux.agents.definitions import skills, subagents
from agent_mux.agents.installations import InstallationResolver
from agent_mux.agents.mcp_servers import McpServers
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.installation import Plugin
from agent_mux_adapters.omp import ADAPTER
from agent_mux_adapters.omp.credentials import AUTH
from agent_mux_adapters.omp.installation import PLUGINS
from agent_mux_adapters.omp.paths import data_directory, directory, subagent_directory

# `omp config set` of three fields: without a newline at the end. The comment is a person's.
CONFIG = """\
# mine
modelRoles:
  default: anthropic/claude-opus-4-6
retry:
  maxRetries: 5
defaultThinkingLevel: high"""
# `/mcp add theirs --scope user -- /bin/echo one "two words"`, `/mcp add ev --scope user --url ... --transport sse`,
# `/mcp add net --scope user --url ... --token abc`, `/mcp disable ev`; no newline at the end.
MCP = """\
{
  "$schema": "https://raw.githubusercontent.com/can1357/oh-my-pi/main/packages/coding-agent/src/config/mcp-schema.json",
  "mcpServers": {
    "theirs": {
      "type": "stdio",
      "command": "/bin/echo",
      "args": [
        "one",
        "two words"
      ]
    },
    "ev": {
      "type": "sse",
      "url": "https://x.example/sse",
      "enabled": false
    },
    "net": {
      "type": "http",
      "url": "https://x.example/mcp",
      "headers": {
        "Authorization": "Bearer abc"
      }
    }
  }
}"""
# `omp plugin list --json`, after `omp plugin disable demo@shop`.
LIST = """\
{
  "npm": [
    {
      "name": "my-pkg",
      "version": "1.2.0",
      "path": "/home/dev/.omp/plugins/node_modules/my-pkg",
      "manifest": {
        "extensions": [
          "./extensions/a.ts"
        ],
        "version": "1.2.0"
      },
      "enabledFeatures": null,
      "enabled": true
    }
  ],
  "marketplace": [
    {
      "id": "demo@shop",
      "scope": "user",
      "entries": [
        {
          "scope": "user",
          "installPath": "/home/dev/.omp/plugins/cache/plugins/shop___demo___1.2.0",
          "version": "1.2.0",
          "installedAt": "2026-11-22T15:07:30.790Z",
          "lastUpdated": "2026-11-22T15:07:30.790Z",
          "enabled": false
        }
      ]
    }
  ]
}
"""
# The table of agent.db, and what omp stores in it: `serializeCredential`.
TABLE = """
CREATE TABLE auth_credentials (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    provider TEXT NOT NULL,
    credential_type TEXT NOT NULL,
    data TEXT NOT NULL,
    disabled_cause TEXT DEFAULT NULL,
    identity_key TEXT DEFAULT NULL,
    created_at INTEGER NOT NULL DEFAULT (CAST(strftime('%s','now') AS INTEGER)),
    updated_at INTEGER NOT NULL DEFAULT (CAST(strftime('%s','now') AS INTEGER))
)
"""


@pytest.fixture
def homes(tmp_path: Path) -> InstallationResolver:
    project = tmp_path / "project"
    project.mkdir()
    return InstallationResolver(environ={"HOME": str(tmp_path)}, project=project)


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    path = tmp_path / ".omp" / "agent"
    path.mkdir(parents=True)
    return path


def state(homes: InstallationResolver, **environ: str) -> tuple[str, str | None, str | None]:
    found = Auth(InstallationResolver(environ={**homes.environ, **environ}, project=homes.paths().project)).check(
        "omp", now_ms=1000
    )
    return found.status, found.method, found.where


def store(
    directory: Path, kind: str, credential: object, disabled: str | None = None, provider: str = "anthropic"
) -> Path:
    path = directory / "agent.db"
    is_new = not path.exists()
    with closing(sqlite3.connect(path)) as database:
        if is_new:
            database.execute(TABLE)
        database.execute(
            "INSERT INTO auth_credentials (provider, credential_type, data, disabled_cause) VALUES (?, ?, ?, ?)",
            (provider, kind, json.dumps(credential), disabled),
        )
        database.commit()
    return path


def test_setting_the_model_changes_one_role_only(homes: InstallationResolver, agent: Path) -> None:
    path = agent / "config.yml"
    path.write_text(CONFIG, "utf-8")
    configs = AgentConfigs(homes)
    setting = configs.model("omp")
    assert setting is not None
    assert setting.value == "anthropic/claude-opus-4-6"
    configs.set_model("omp", "openai/gpt-5.2:high")
    assert path.read_text("utf-8") == CONFIG.replace("anthropic/claude-opus-4-6", "openai/gpt-5.2:high")
    assert configs.validate("omp") == []


def test_set_and_unset_restores_the_file(homes: InstallationResolver, agent: Path) -> None:
    path = agent / "config.yml"
    path.write_text(CONFIG + "\n", "utf-8")
    configs = AgentConfigs(homes)
    configs.set_field("omp", "tools.approvalMode", "write")
    assert configs.get("omp")["tools"] == {"approvalMode": "write"}
    configs.unset_field("omp", "tools.approvalMode")
    assert path.read_text("utf-8") == CONFIG + "\n"
    with pytest.raises(ValidationError, match="always-ask, write, yolo"):
        configs.set_field("omp", "tools.approvalMode", "ask")


def test_config_yaml_counts_without_config_yml(homes: InstallationResolver, agent: Path) -> None:
    (agent / "config.yaml").write_text("defaultThinkingLevel: low\n", "utf-8")
    assert AgentConfigs(homes).get("omp") == {"defaultThinkingLevel": "low"}
    (agent / "config.yml").write_text("defaultThinkingLevel: medium\n", "utf-8")
    assert AgentConfigs(homes).get("omp") == {"defaultThinkingLevel": "medium"}


def test_project_yaml_takes_precedence(homes: InstallationResolver, tmp_path: Path) -> None:
    folder = tmp_path / "project" / ".omp"
    folder.mkdir()
    (folder / "settings.json").write_text('{"defaultThinkingLevel": "high", "shellPath": "/bin/sh"}', "utf-8")
    (folder / "config.yml").write_text("defaultThinkingLevel: minimal\n", "utf-8")
    assert AgentConfigs(homes).get("omp") == {"defaultThinkingLevel": "minimal", "shellPath": "/bin/sh"}


def test_servers_of_every_transport_are_read(homes: InstallationResolver, agent: Path) -> None:
    (agent / "mcp.json").write_text(MCP, "utf-8")
    theirs, ev, net = McpServers(homes).list("omp")
    assert theirs.server == McpServer("theirs", command="/bin/echo", args=("one", "two words"))
    assert ev.server == McpServer("ev", "sse", url="https://x.example/sse")
    headers = {"Authorization": "Bearer abc"}
    assert net.server == McpServer("net", "streamable-http", url="https://x.example/mcp", headers=headers)
    assert (theirs.enabled, ev.enabled, net.enabled) == (True, False, True)


@pytest.mark.parametrize(
    "server",
    [
        McpServer("new", command="run", args=("a b",), env={"KEY": "v"}),
        McpServer("new", "sse", url="https://h/sse"),
        McpServer("new", "streamable-http", url="https://h/mcp", headers={"A": "b"}),
    ],
    ids=lambda server: server.transport,
)
def test_adding_and_removing_a_server_restores_the_file(
    server: McpServer, homes: InstallationResolver, agent: Path
) -> None:
    path = agent / "mcp.json"
    path.write_text(MCP, "utf-8")
    servers = McpServers(homes)
    servers.add("omp", server)
    assert [one.server for one in servers.list("omp") if one.name == "new"] == [server]
    servers.remove("omp", "new")
    assert path.read_text("utf-8") == MCP


# With a server of one name in each of the six files, omp started that of `.omp/mcp.json`.
def test_own_files_take_precedence_and_are_written(homes: InstallationResolver, agent: Path, tmp_path: Path) -> None:
    project = tmp_path / "project"
    for path in (project / ".mcp.json", project / "mcp.json", agent / ".mcp.json", agent / "mcp.json"):
        path.write_text('{"mcpServers": {"same": {"command": "x"}}}', "utf-8")
    servers = McpServers(homes)
    servers.add("omp", McpServer("same", command="y"), scope="project")
    assert [one.path for one in servers.list("omp") if one.wins] == [project / ".omp" / "mcp.json"]
    servers.remove("omp", "same")
    assert [one.path for one in servers.list("omp") if one.wins] == [agent / "mcp.json"]


# `/mcp disable` stores a server's name here if its entry is in a file of another agent.
def test_servers_disabled_by_name_are_off(homes: InstallationResolver, agent: Path, tmp_path: Path) -> None:
    (agent / "mcp.json").write_text('{"disabledServers": ["off"]}', "utf-8")
    shared = {"off": {"command": "x"}, "on": {"command": "x"}, "text": {"command": "x", "enabled": "False"}}
    (tmp_path / "project" / ".mcp.json").write_text(json.dumps({"mcpServers": shared}), "utf-8")
    listed = {one.name: one.enabled for one in McpServers(homes).list("omp")}
    assert listed == {"off": False, "on": True, "text": False}


def test_empty_home_is_not_authenticated(homes: InstallationResolver, tmp_path: Path) -> None:
    assert state(homes) == ("unauthenticated", None, None)
    assert not (tmp_path / ".omp").exists()


# Measured with `omp models` and `omp token`: AWS_PROFILE alone and GH_TOKEN have no effect.
@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"OPENAI_API_KEY": "x"}, ("authenticated", "api_key")),
        ({"GITLAB_TOKEN": "x"}, ("authenticated", "api_key")),
        ({"ANTHROPIC_OAUTH_TOKEN": "x"}, ("authenticated", "oauth")),
        ({"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"}, ("authenticated", "cloud")),
        ({"AWS_PROFILE": "x"}, ("unauthenticated", None)),
        ({"GH_TOKEN": "x"}, ("unauthenticated", None)),
        ({"OMP_AUTH_BROKER_URL": "https://broker"}, ("unknown", None)),
    ],
)
def test_credentials_in_variables(
    environ: dict[str, str], expected: tuple[str, str | None], homes: InstallationResolver
) -> None:
    assert state(homes, **environ)[:2] == expected


@pytest.mark.parametrize(
    ("kind", "credential", "disabled", "expected"),
    [
        ("oauth", {"access": "secret", "refresh": "secret", "expires": 1}, None, ("authenticated", "oauth")),
        ("oauth", {"access": "secret", "refresh": "", "expires": 1}, None, ("expired", "oauth")),
        ("oauth", {"access": "secret", "expires": 2000}, None, ("authenticated", "oauth")),
        ("api_key", {"key": "secret"}, None, ("authenticated", "api_key")),
        ("api_key", {"key": "secret"}, "revoked", ("unauthenticated", None)),
    ],
)
def test_credentials_in_its_database(
    kind: str,
    credential: object,
    disabled: str | None,
    expected: tuple[str, str | None],
    homes: InstallationResolver,
    agent: Path,
) -> None:
    path = store(agent, kind, credential, disabled)
    found = state(homes)
    assert found[:2] == expected
    assert found[2] in {None, f"{path} (anthropic)"}
    assert [file.name for file in agent.iterdir()] == ["agent.db"]


def test_login_valid_longest_is_reported(homes: InstallationResolver, agent: Path) -> None:
    store(agent, "oauth", {"access": "a", "expires": 1}, provider="old")
    store(agent, "oauth", {"access": "a", "expires": 2000}, provider="later")
    path = store(agent, "oauth", {"access": "a", "expires": 500}, provider="old-too")
    assert state(homes) == ("authenticated", "oauth", f"{path} (later)")
    store(agent, "oauth", {"access": "a", "refresh": "r", "expires": 1}, provider="renewed")
    assert state(homes) == ("authenticated", "oauth", f"{path} (renewed)")


def test_env_directory_is_not_read(homes: InstallationResolver, tmp_path: Path) -> None:
    (tmp_path / "project" / ".env").mkdir()
    assert state(homes) == ("unauthenticated", None, None)


def test_broken_database_leaves_state_unknown(homes: InstallationResolver, agent: Path) -> None:
    (agent / "agent.db").write_text("no database", "utf-8")
    found = Auth(homes).check("omp")
    assert found.status == "unknown"
    assert str(agent / "agent.db") in (found.problem or "")


@pytest.mark.parametrize("name", [".env", ".omp/.env", ".omp/agent/.env", "project/.env"])
def test_credentials_in_env_files(name: str, homes: InstallationResolver, agent: Path, tmp_path: Path) -> None:
    assert agent.is_dir()
    (tmp_path / name).write_text('# ANTHROPIC_API_KEY=no\nMISTRAL_API_KEY=\nexport OPENAI_API_KEY="x"\n', "utf-8")
    assert state(homes) == ("authenticated", "api_key", f"{tmp_path / name} (OPENAI_API_KEY)")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("models.yml", "providers:\n  own:\n    apiKey: sk-x  # mine\n"),
        ("models.yaml", "providers:\n  own:\n    apiKey: '!op read it'\n"),
        ("models.json", '{"providers": {"own": {"apiKey": "sk-x"}}}'),
    ],
)
def test_keys_of_custom_providers(name: str, text: str, homes: InstallationResolver, agent: Path) -> None:
    (agent / name).write_text(text, "utf-8")
    assert state(homes) == ("authenticated", "api_key", f"{agent / name} (providers.own.apiKey)")


def test_auth_methods_match_the_capabilities() -> None:
    assert tuple(method.name for method in AUTH.methods) == ADAPTER.capabilities.auth_methods


# Tried with 18.2.3: where agent.db and config.yml were, with each variable.
@pytest.mark.parametrize(
    ("environ", "directory_is", "own_is"),
    [
        ({}, ".omp/agent", ".omp/agent"),
        ({"PI_CONFIG_DIR": ".other"}, ".other/agent", ".other/agent"),
        ({"PI_CODING_AGENT_DIR": "/moved"}, "/moved", ".omp/agent"),
        ({"OMP_PROFILE": "work"}, ".omp/profiles/work/agent", ".omp/profiles/work/agent"),
        ({"PI_PROFILE": "work"}, ".omp/profiles/work/agent", ".omp/profiles/work/agent"),
        ({"OMP_PROFILE": "", "PI_PROFILE": "work"}, ".omp/agent", ".omp/agent"),
        (
            {"OMP_PROFILE": "work", "PI_CODING_AGENT_DIR": "/moved"},
            ".omp/profiles/work/agent",
            ".omp/profiles/work/agent",
        ),
        ({"OMP_PROFILE": "default"}, ".omp/agent", ".omp/agent"),
        ({"OMP_PROFILE": "../x"}, ".omp/agent", ".omp/agent"),
    ],
)  # fmt: skip
def test_where_its_directory_is(environ: dict[str, str], directory_is: str, own_is: str, tmp_path: Path) -> None:
    place = AgentPaths(environ={"HOME": str(tmp_path), **environ})
    assert directory(place) == tmp_path / directory_is
    assert subagent_directory(place) == tmp_path / own_is
    assert data_directory(place) == directory(place)


def test_xdg_data_directory_counts_once_it_exists(tmp_path: Path) -> None:
    place = AgentPaths(environ={"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "xdg")})
    assert data_directory(place) == tmp_path / ".omp" / "agent"
    (tmp_path / "xdg" / "omp").mkdir(parents=True)
    assert data_directory(place) == tmp_path / "xdg" / "omp"
    assert directory(place) == tmp_path / ".omp" / "agent"
    moved = AgentPaths(environ={**place.environ, "PI_CODING_AGENT_DIR": "/moved"})
    assert data_directory(moved) == Path("/moved")
    named = AgentPaths(environ={**place.environ, "OMP_PROFILE": "work"})
    assert data_directory(named) == directory(named)
    (tmp_path / "xdg" / "omp" / "profiles" / "work").mkdir(parents=True)
    assert data_directory(named) == tmp_path / "xdg" / "omp" / "profiles" / "work"


def test_plugin_list_is_parsed() -> None:
    assert PLUGINS.parse is not None
    assert PLUGINS.parse(LIST) == (
        Plugin(
            name="my-pkg", version="1.2.0", enabled=True, source="/home/dev/.omp/plugins/node_modules/my-pkg",
        ),
        Plugin(name="demo@shop", version="1.2.0", enabled=False, source="shop", extra={"scope": "user"}),
    )  # fmt: skip
    assert PLUGINS.parse('{\n  "npm": [],\n  "marketplace": []\n}\n') == ()
    with pytest.raises(ValueError, match="Expecting value"):
        PLUGINS.parse("No plugins installed\n")


def test_only_marketplace_plugins_are_updated_by_name() -> None:
    assert PLUGINS.update is not None
    assert PLUGINS.update("demo@shop") == ("plugin", "upgrade", "demo@shop")
    assert PLUGINS.update(None) == ("plugin", "upgrade")
    for name in ("my-pkg", "@acme/tools"):
        with pytest.raises(ValueError, match="name@marketplace"):
            PLUGINS.update(name)


# The model saw a skill in each of these folders, but none in `~/.claude/skills` or `.pi/skills`.
def test_skills_are_found_in_own_and_shared_folders(homes: InstallationResolver, tmp_path: Path) -> None:
    project = tmp_path / "project"
    found = [(path, folder.is_shared) for folder, path in skills(homes).where("omp")]
    assert found == [
        (tmp_path / ".omp/agent/skills", False),
        (project / ".omp/skills", False),
        (tmp_path / ".agent/skills", True),
        (tmp_path / ".agents/skills", True),
        (project / ".agent/skills", True),
        (project / ".agents/skills", True),
        (project / ".claude/skills", True),
    ]


def test_sub_agent_needs_name_and_description(homes: InstallationResolver, tmp_path: Path) -> None:
    folder = tmp_path / "project" / ".omp" / "agents"
    folder.mkdir(parents=True)
    (folder / "a.md").write_text("---\nname: a\ndescription: d\n---\nx\n", "utf-8")
    (folder / "b.md").write_text("---\ndescription: d\n---\nx\n", "utf-8")
    found = {one.name: one.problem for one in subagents(homes).list("omp")}
    assert found == {"a": None, "b": "its header lacks name"}


@pytest.mark.parametrize("environ", [{}, {"PI_CODING_AGENT_DIR": "/moved"}, {"OMP_PROFILE": "work"}])
def test_trials_get_a_configuration_directory_unless_a_profile_is_chosen(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    config = ADAPTER.installation().config_directory
    assert config is not None
    place = AgentPaths(environ={"HOME": str(tmp_path), **environ})
    expected = {"PI_CODING_AGENT_DIR": Path("/moved"), "OMP_PROFILE": None}
    assert config.path(place) == next((expected[name] for name in environ), tmp_path / ".omp" / "agent")
    (tmp_path / "xdg" / "omp").mkdir(parents=True)
    assert config.path(AgentPaths(environ={"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "xdg")})) is None
