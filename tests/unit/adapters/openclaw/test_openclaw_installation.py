"""The installation of OpenClaw 2026.9.6, with files that its own commands wrote.

`home/openclaw.json` was written by `openclaw mcp add` (stdio, disabled, SSE, HTTP) and `openclaw models set`.
"""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agent_mux.agents.auth import Auth, AuthState
from agent_mux.agents.config.client import AgentConfigs
from agent_mux.agents.definitions import skills
from agent_mux.agents.installations import InstallationResolver
from agent_mux.agents.mcp_servers import McpServers
from agent_mux.errors import ValidationError
from agent_mux.sdk.options import McpServer
from agent_mux_adapters.openclaw import ADAPTER
from agent_mux_adapters.openclaw.installation import HOME, MCP, PLUGINS

WRITTEN = (Path(__file__).parent / "home" / "openclaw.json").read_text("utf-8")
BY_A_PERSON = """// as people write it
{
  agents: {
    defaults: {
      model: 'anthropic/claude-opus-4-6', // the best one
    },
  },
}
"""
NOW = 1_800_000_000_000


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / ".openclaw"
    path.mkdir()
    return path


@pytest.fixture
def config(directory: Path) -> Path:
    path = directory / "openclaw.json"
    path.write_text(WRITTEN, "utf-8")
    return path


def homes(tmp_path: Path, **variables: str) -> InstallationResolver:
    return InstallationResolver(environ={"HOME": str(tmp_path), **variables}, project=tmp_path / "project")


def state(tmp_path: Path, **variables: str) -> AuthState:
    return Auth(homes(tmp_path, **variables)).check("openclaw", now_ms=NOW)


# -- MCP servers


def test_servers_that_the_cli_added(tmp_path: Path, config: Path) -> None:
    listed = McpServers(homes(tmp_path)).list("openclaw")
    assert {one.path for one in listed} == {config}
    assert [one.server for one in listed] == [
        McpServer("theirs", command="/bin/echo", args=("one", "two words"), env={"KEY": "v"}),
        # `openclaw mcp status` lists a server without a transport as SSE.
        McpServer("remote", transport="sse", url="https://x.example/mcp", headers={"X-Key": "abc"}),
        McpServer("sse1", transport="sse", url="https://x.example/sse"),
        McpServer("http1", transport="streamable-http", url="https://x.example/mcp"),
    ]
    assert [one.enabled for one in listed] == [True, False, True, True]


@pytest.mark.parametrize(
    "server",
    [
        McpServer("one", command="/bin/echo", args=("a b",), env={"KEY": "${NAME}"}),
        McpServer("two", transport="sse", url="https://x.example/sse", headers={"X-Key": "v"}),
        McpServer("three", transport="streamable-http", url="https://x.example/mcp"),
    ],
)
def test_a_server_of_ours_comes_and_goes_without_a_trace(tmp_path: Path, config: Path, server: McpServer) -> None:
    servers = McpServers(homes(tmp_path))
    servers.add("openclaw", server)
    [stored] = [one for one in servers.list("openclaw") if one.name == server.name]
    assert (stored.server, stored.enabled) == (server, True)
    servers.remove("openclaw", server.name)
    assert config.read_text("utf-8") == WRITTEN


def test_what_is_no_server() -> None:
    assert MCP.read("neither", {"transport": "stdio"}) is None


# -- configuration


@pytest.mark.parametrize("text", [WRITTEN, BY_A_PERSON])
def test_a_field_is_set_and_unset_in_the_file(tmp_path: Path, config: Path, text: str) -> None:
    config.write_text(text, "utf-8")
    configs = AgentConfigs(homes(tmp_path))
    configs.set_field("openclaw", "tools.exec.mode", "ask")
    assert configs.get("openclaw")["tools"] == {"exec": {"mode": "ask"}}
    configs.unset_field("openclaw", "tools.exec.mode")
    assert config.read_text("utf-8") == text


def test_the_model_is_a_table_with_more_in_it(tmp_path: Path, config: Path) -> None:
    configs = AgentConfigs(homes(tmp_path))
    configs.set_model("openclaw", "openai/gpt-5")
    now = configs.model("openclaw")
    assert now is not None
    assert (now.value, now.path) == ("openai/gpt-5", config)
    assert configs.get("openclaw")["agents"]["defaults"] == {
        "model": {"primary": "openai/gpt-5"},
        "models": {"anthropic/claude-opus-4-6": {}, "openai/gpt-5": {}},  # as `openclaw models set`
    }


def test_the_model_is_a_text(tmp_path: Path, config: Path) -> None:
    config.write_text(BY_A_PERSON, "utf-8")
    configs = AgentConfigs(homes(tmp_path))
    configs.set_model("openclaw", "openai/gpt-5")
    assert configs.get("openclaw") == {"agents": {"defaults": {"model": "openai/gpt-5"}}}
    assert "// the best one" in config.read_text("utf-8")


def test_the_model_where_there_was_no_file(tmp_path: Path) -> None:
    configs = AgentConfigs(homes(tmp_path))
    assert configs.model("openclaw") is None
    configs.set_model("openclaw", "openai/gpt-5")
    assert configs.get("openclaw") == {"agents": {"defaults": {"model": {"primary": "openai/gpt-5"}}}}


def test_a_model_has_a_provider(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="a provider and a model"):
        AgentConfigs(homes(tmp_path)).set_model("openclaw", "gpt-5")


@pytest.mark.parametrize(
    ("variables", "path"),
    [
        ({}, ".openclaw/openclaw.json"),
        ({"OPENCLAW_STATE_DIR": "{}/state"}, "state/openclaw.json"),
        ({"OPENCLAW_HOME": "{}/other"}, "other/.openclaw/openclaw.json"),
        ({"OPENCLAW_CONFIG_PATH": "~/own.json5", "OPENCLAW_STATE_DIR": "{}/state"}, "own.json5"),
        ({"OPENCLAW_PROFILE": "work"}, ".openclaw/openclaw.json"),  # `openclaw config file`: its flag alone counts
    ],
)
def test_variables_move_it(tmp_path: Path, variables: dict[str, str], path: str) -> None:
    given = {name: value.format(tmp_path) for name, value in variables.items()}
    [source] = AgentConfigs(homes(tmp_path, **given)).sources("openclaw")
    assert source.path == tmp_path / path


# -- credentials


def test_a_missing_installation_has_no_credentials(tmp_path: Path) -> None:
    assert state(tmp_path) == AuthState(agent="openclaw", status="unauthenticated")


@pytest.mark.parametrize(("name", "method"), [("ANTHROPIC_API_KEY", "api_key"), ("ANTHROPIC_OAUTH_TOKEN", "token")])
def test_a_variable(tmp_path: Path, directory: Path, name: str, method: str) -> None:
    found = state(tmp_path, **{name: "k"})
    assert (found.status, found.method, found.where) == ("authenticated", method, name)
    (directory / ".env").write_text(f"# mine\n{name}=\nexport {name}='k'\n", "utf-8")
    found = state(tmp_path)
    assert (found.method, found.where) == (method, f"{directory / '.env'} ({name})")


@pytest.mark.parametrize(
    ("text", "status", "where"),
    [
        ('{"models": {"providers": {"mine": {"apiKey": "k"}}}}', "authenticated", "models.providers.mine.apiKey"),
        (
            '{"models": {"providers": {"mine": {"apiKey": {"source": "env", "id": "K"}}}}}', "authenticated",
            "models.providers.mine.apiKey",
        ),
        ('{"models": {"providers": {"mine": {"apiKey": ""}}}}', "unauthenticated", ""),
        ("{env: {vars: {XAI_API_KEY: 'k'}}} // mine", "authenticated", "env.XAI_API_KEY"),
        ('{"env": {"COPILOT_GITHUB_TOKEN": "k"}}', "authenticated", "env.COPILOT_GITHUB_TOKEN"),
        ("{", "unknown", ""),
    ],
)  # fmt: skip
def test_the_configuration(tmp_path: Path, config: Path, text: str, status: str, where: str) -> None:
    config.write_text(text, "utf-8")
    found = state(tmp_path)
    assert found.status == status
    assert where in (found.where or "")


def keep(directory: Path, kind: str, **profile: Any) -> None:
    """`openclaw models auth paste-api-key`, and what other types have: one table of the database counts."""
    named = {"auth": {"profiles": {"anthropic:manual": {"provider": "anthropic", "mode": kind}}}}
    (directory / "openclaw.json").write_text(json.dumps(named), "utf-8")
    store = {"version": 1, "profiles": {"anthropic:manual": {"type": kind, "provider": "anthropic", **profile}}}
    (directory / "state").mkdir(exist_ok=True)
    with closing(sqlite3.connect(directory / "state" / "openclaw.sqlite")) as database, database:
        database.execute("CREATE TABLE IF NOT EXISTS config_machine_state (state_key, value_json, updated_at_ms)")
        database.execute("DELETE FROM config_machine_state")
        row = ("authProfiles.store", json.dumps(store), NOW)
        database.execute("INSERT INTO config_machine_state VALUES (?, ?, ?)", row)


@pytest.mark.parametrize(
    ("kind", "profile", "status"),
    [
        ("api_key", {"key": "sk-ant-pasted"}, "authenticated"),
        ("api_key", {"keyRef": {"source": "env", "id": "K"}}, "authenticated"),
        ("api_key", {}, "unknown"),  # named by the configuration: one of its agents may have it
        ("token", {"token": "t"}, "authenticated"),
        ("token", {"token": "t", "expires": NOW + 1}, "authenticated"),
        ("token", {"token": "t", "expires": NOW - 1}, "expired"),
        ("oauth", {"access": "a", "expires": NOW - 1}, "expired"),
        ("oauth", {"access": "a", "refresh": "r", "expires": NOW - 1}, "authenticated"),
    ],
)
def test_its_database(tmp_path: Path, directory: Path, kind: str, profile: dict[str, Any], status: str) -> None:
    keep(directory, kind, **profile)
    found = state(tmp_path)
    assert found.status == status
    if status != "unknown":
        assert (found.method, found.where) == (kind, str(directory / "state" / "openclaw.sqlite"))


def test_a_database_that_cannot_be_read(tmp_path: Path, directory: Path) -> None:
    keep(directory, "token", token="t")  # noqa: S106  # none
    (directory / "state" / "openclaw.sqlite").write_bytes(b"no database, whatever its name says")
    found = state(tmp_path)
    assert found.status == "unknown"
    assert "cannot be read" in (found.problem or "")


def test_the_capabilities_name_the_methods() -> None:
    assert HOME.auth is not None
    assert ADAPTER.capabilities.auth_methods == tuple(method.name for method in HOME.auth.methods)


# -- skills and plugins


def test_skills_are_found_where_it_looks(tmp_path: Path, directory: Path) -> None:
    places = {
        "one": directory / "skills" / "one",
        "two": directory / "skills" / "group" / "two",
        "three": directory / "workspace" / "skills" / "three",
        "four": tmp_path / ".agents" / "skills" / "four",
        "five": tmp_path / "project" / "skills" / "five",
        "six": tmp_path / "project" / ".agents" / "skills" / "six",
    }
    for name, place in places.items():
        place.mkdir(parents=True)
        (place / "SKILL.md").write_text(f"---\ndescription: Number {name}\n---\nCount.\n", "utf-8")
    found = skills(homes(tmp_path)).list("openclaw")
    assert {one.name: one.path.parent for one in found} == places
    assert {one.name for one in found if one.is_shared} == {"four", "six"}
    assert {one.problem for one in found} == {None}
    moved = skills(homes(tmp_path, OPENCLAW_STATE_DIR=str(directory))).list("openclaw")
    assert "four" not in {one.name for one in moved}


def test_a_skill_needs_a_description(tmp_path: Path, directory: Path) -> None:
    place = directory / "skills" / "one"
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text("---\nname: one\n---\nCount.\n", "utf-8")
    [found] = skills(homes(tmp_path)).list("openclaw")
    assert found.problem == "its header lacks description"


def test_plugins_as_the_cli_lists_them() -> None:
    # openclaw plugins list --json; of the many that are bundled, none is shown here
    listed = {
        "workspaceDir": "/home/dev/.openclaw/workspace",
        "workspaceScope": "selected",
        "plugins": [
            {
                "id": "demo", "name": "Demo", "version": "1.2.0", "description": "A demo", "format": "openclaw",
                "source": "/home/dev/.openclaw/extensions/demo/index.js", "origin": "global", "enabled": True,
                "status": "loaded", "toolNames": [], "hookCount": 0, "configSchema": True,
            },
            {"id": "a2a", "name": "A2A", "origin": "bundled", "enabled": False, "status": "disabled"},
        ],
    }  # fmt: skip
    assert PLUGINS.parse is not None
    demo, bundled = PLUGINS.parse(json.dumps(listed))
    assert (demo.name, demo.version, demo.enabled, demo.source) == ("demo", "1.2.0", True, "global")
    assert (bundled.name, bundled.version, bundled.enabled) == ("a2a", None, False)
    with pytest.raises(ValueError, match="no list"):
        PLUGINS.parse('{"ok": false}')


def test_plugins_that_are_found_have_names_to_install_them_by() -> None:
    package = {"name": "shop", "latestVersion": "2.0.0", "summary": "Sells", "channel": "official"}
    assert PLUGINS.parse_search is not None
    [found] = PLUGINS.parse_search(json.dumps({"results": [{"package": package}]}))
    assert (found.name, found.version, found.description) == ("clawhub:shop", "2.0.0", "Sells")
    assert PLUGINS.install is not None
    assert PLUGINS.install(found.name)[-1] == "clawhub:shop"


def test_all_plugins_are_updated_at_once() -> None:
    assert PLUGINS.update is not None
    assert PLUGINS.update(None) == ("plugins", "update", "--all")
    assert PLUGINS.update("demo") == ("plugins", "update", "demo")
