"""The installation of Hermes 0.19.0, with files that its own commands wrote.

`home/config.yaml` was written by `hermes mcp add remote --url ...` and `hermes mcp add theirs --command ...`, which
saved servers that could not be reached.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_mux.agents.auth import Auth, AuthState
from agent_mux.agents.config.client import AgentConfigs
from agent_mux.agents.definitions import skills
from agent_mux.agents.installations import InstallationResolver
from agent_mux.agents.mcp_servers import McpServers
from agent_mux.agents.plugins import Plugins
from agent_mux.compare.surroundings import trial_surroundings
from agent_mux.errors import ValidationError
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.options import McpServer
from agent_mux_adapters.hermes import ADAPTER
from agent_mux_adapters.hermes.installation import HOME, MCP, PLUGINS

WRITTEN = (Path(__file__).parent / "home" / "config.yaml").read_text("utf-8")
NOW = 1_800_000_000_000
RENEWS = {"refresh_token": "r"}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    path = tmp_path / ".hermes"
    path.mkdir()
    return path


@pytest.fixture
def config(directory: Path) -> Path:
    path = directory / "config.yaml"
    path.write_text(WRITTEN, "utf-8")
    return path


def homes(tmp_path: Path, **variables: str) -> InstallationResolver:
    return InstallationResolver(environ={"HOME": str(tmp_path), **variables}, project=tmp_path / "project")


def state(tmp_path: Path, **variables: str) -> AuthState:
    return Auth(homes(tmp_path, **variables)).check("hermes", now_ms=NOW)


# -- MCP servers


def test_servers_that_the_cli_added(tmp_path: Path, config: Path) -> None:
    header = {"Authorization": "Bearer ${MCP_REMOTE_API_KEY}"}
    remote, local = McpServers(homes(tmp_path)).list("hermes")
    assert remote.server == McpServer(
        "remote", transport="streamable-http", url="http://127.0.0.1:1/mcp", headers=header
    )
    assert local.server == McpServer("theirs", command="/bin/echo", args=("one", "two words"), env={"KEY": "v"})
    assert (remote.enabled, local.enabled, local.path) == (False, False, config)


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
    servers.add("hermes", server)
    [stored] = [one for one in servers.list("hermes") if one.name == server.name]
    assert (stored.server, stored.enabled) == (server, True)
    servers.remove("hermes", server.name)
    assert config.read_text("utf-8") == WRITTEN


def test_where_there_is_a_url_it_counts() -> None:
    native = {"command": "/bin/echo", "url": "https://x.example/mcp"}
    assert MCP.read("both", native) == McpServer("both", transport="streamable-http", url="https://x.example/mcp")
    assert MCP.read("neither", {}) is None


@pytest.mark.parametrize(
    ("value", "enabled"),
    [(True, True), (False, False), ("off", False), ("No ", False), ("yes", True), (None, True), ("what", True)],
)
def test_enabled_may_be_a_word(value: Any, enabled: bool) -> None:
    assert MCP.is_enabled({"command": "x", "enabled": value}) is enabled


# -- configuration


def test_a_field_is_set_and_unset_in_the_file_of_the_cli(tmp_path: Path, config: Path) -> None:
    configs = AgentConfigs(homes(tmp_path))
    configs.set_field("hermes", "approvals.mode", "manual")
    assert configs.get("hermes")["approvals"] == {"mode": "manual"}
    assert "# ── Security" in config.read_text("utf-8")
    configs.unset_field("hermes", "approvals.mode")
    assert config.read_text("utf-8") == WRITTEN


@pytest.mark.parametrize(
    ("text", "model", "after"),
    [
        ("", None, "model:\n  default: new\n"),
        ("model: gpt-5\n", "gpt-5", "model: new\n"),  # `hermes config set model gpt-5`
        (
            "model:\n  default: gpt-5\n  provider: openrouter\n", "gpt-5",
            "model:\n  default: new\n  provider: openrouter\n",
        ),
        ("model: ''\n", None, "model: new\n"),
        ("model:\n  name: old\n", "old", "model:\n  name: old\n  default: new\n"),
    ],
)  # fmt: skip
def test_the_model_is_a_text_or_a_table(
    tmp_path: Path, directory: Path, text: str, model: str | None, after: str
) -> None:
    path = directory / "config.yaml"
    path.write_text(text, "utf-8")
    configs = AgentConfigs(homes(tmp_path))
    before = configs.model("hermes")
    assert (before.value if before else None) == model
    configs.set_model("hermes", "new")
    assert path.read_text("utf-8") == after
    now = configs.model("hermes")
    assert now is not None
    assert now.value == "new"


def test_a_value_that_cannot_be_is_found(tmp_path: Path, directory: Path) -> None:
    (directory / "config.yaml").write_text("approvals:\n  mode: never\n", "utf-8")
    [problem] = AgentConfigs(homes(tmp_path)).validate("hermes")
    assert (problem.field, problem.message) == ("approvals.mode", "one of manual, smart, off")


# -- profiles


@pytest.mark.parametrize(
    ("chosen", "inside"),
    [("coder\n", "profiles/coder"), ("default", ""), ("../../x", ""), ("", "")],
)
def test_the_chosen_profile_has_a_directory_of_its_own(
    tmp_path: Path, directory: Path, chosen: str, inside: str
) -> None:
    (directory / "active_profile").write_text(chosen, "utf-8")
    [source] = AgentConfigs(homes(tmp_path)).sources("hermes")
    assert source.path == directory / inside / "config.yaml"


def test_a_named_profile_counts_more_than_the_chosen_one(tmp_path: Path, directory: Path) -> None:
    (directory / "active_profile").write_text("coder", "utf-8")
    named = directory / "profiles" / "other"
    [source] = AgentConfigs(homes(tmp_path, HERMES_HOME=str(named))).sources("hermes")
    assert source.path == named / "config.yaml"


# -- credentials


def test_a_missing_installation_has_no_credentials(tmp_path: Path) -> None:
    assert state(tmp_path) == AuthState(agent="hermes", status="unauthenticated")


def test_a_variable(tmp_path: Path) -> None:
    found = state(tmp_path, OPENROUTER_API_KEY="k")
    assert (found.status, found.method, found.where) == ("authenticated", "api_key", "OPENROUTER_API_KEY")


def test_a_key_in_its_dotenv(tmp_path: Path, directory: Path) -> None:
    path = directory / ".env"  # `hermes config set OPENROUTER_API_KEY ...`
    path.write_text("# a comment\nMCP_REMOTE_API_KEY=x\nOPENAI_API_KEY=''\nOPENROUTER_API_KEY=sk-or-x\n", "utf-8")
    assert state(tmp_path).where == f"{path} (OPENROUTER_API_KEY)"
    path.write_text("MCP_REMOTE_API_KEY=x\nOPENAI_API_KEY=''\n", "utf-8")
    assert state(tmp_path).status == "unauthenticated"


def pool(**entry: Any) -> str:
    """`hermes auth add openrouter --type api-key --api-key ...`, and what other types have."""
    one = {
        "id": "81c9eb", "label": "api-key-1", "auth_type": "api_key", "priority": 0, "source": "manual",
        "access_token": "sk-or-test", "last_status": None, "base_url": "https://openrouter.ai/api/v1",
        "request_count": 0, **entry,
    }  # fmt: skip
    return json.dumps({"version": 1, "providers": {}, "credential_pool": {"openrouter": [one]}})


@pytest.mark.parametrize(
    ("stored", "status", "method"),
    [
        (pool(), "authenticated", "api_key"),
        (pool(access_token=""), "unauthenticated", None),
        (pool(auth_type="oauth", expires_at="2026-01-01T00:00:00+00:00"), "expired", "oauth"),
        (pool(auth_type="oauth", expires_at="2026-01-01T00:00:00", **RENEWS), "authenticated", "oauth"),
        (pool(auth_type="oauth", expires_at="2099-01-01T00:00:00"), "authenticated", "oauth"),
        ('{"providers": {"openai-codex": {"tokens": {"access_token": "a"}}}}', "authenticated", "oauth"),
        ('{"providers": {"nous": {"access_token": "", "refresh_token": "r"}}}', "authenticated", "oauth"),
        ('{"providers": {"nous": {}}, "credential_pool": []}', "unauthenticated", None),
        ("[]", "unauthenticated", None),
    ],
)
def test_its_own_store(tmp_path: Path, directory: Path, stored: str, status: str, method: str | None) -> None:
    (directory / "auth.json").write_text(stored, "utf-8")
    found = state(tmp_path)
    assert (found.status, found.method) == (status, method)


def test_a_store_that_cannot_be_read(tmp_path: Path, directory: Path) -> None:
    (directory / "auth.json").write_text("{", "utf-8")
    found = state(tmp_path)
    assert found.status == "unknown"
    assert "an account" in (found.problem or "")


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("model:\n  default: m\n  provider: custom\n  api_key: sk-x\n", "authenticated"),
        ('{"model": {"api_key": "sk-x"}}', "authenticated"),
        ("custom_providers:\n- name: mine\n  api_key: sk-x\n", "authenticated"),
        ("model:\n  api_key: ''\n", "unauthenticated"),
        ("auxiliary:\n  vision:\n    api_key: sk-x\n", "unauthenticated"),
        ("# model:\n#   api_key: sk-x\n", "unauthenticated"),
        ("model: [\n# api_key: x", "unknown"),
    ],
)
def test_a_key_in_the_configuration(tmp_path: Path, directory: Path, text: str, status: str) -> None:
    (directory / "config.yaml").write_text(text, "utf-8")
    assert state(tmp_path).status == status


def test_the_login_of_another_agent_is_reported(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / ".credentials.json").write_text("{}", "utf-8")
    found = state(tmp_path)
    assert found.status == "unknown"
    assert ".credentials.json" in (found.problem or "")


def test_the_capabilities_name_the_methods() -> None:
    assert HOME.auth is not None
    assert ADAPTER.capabilities.auth_methods == tuple(method.name for method in HOME.auth.methods)


# -- skills and plugins


def test_skills_stand_in_folders_of_their_categories(tmp_path: Path, directory: Path) -> None:
    for name in ("singing", "music/humming", "music/humming/references/old", ".hub/hidden"):
        folder = directory / "skills" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "SKILL.md").write_text(f"---\nname: {folder.name}\n---\nSing.\n", "utf-8")
    (directory / "skills" / "music" / "all").symlink_to(directory / "skills")
    found = skills(homes(tmp_path)).list("hermes")
    assert [(one.name, one.problem) for one in found] == [("humming", None), ("singing", None)]
    skills(homes(tmp_path)).remove("hermes", "humming")
    assert [one.name for one in skills(homes(tmp_path)).list("hermes")] == ["singing"]


def test_plugins_as_the_cli_lists_them() -> None:
    # hermes plugins list --json --no-bundled
    listed = """[
  {
    "name": "demo",
    "status": "not enabled",
    "version": "1.2.0",
    "description": "A demo",
    "source": "git"
  }
]
"""
    assert PLUGINS.parse is not None
    [plugin] = PLUGINS.parse(listed)
    assert (plugin.name, plugin.version, plugin.enabled, plugin.source) == ("demo", "1.2.0", False, "git")
    assert PLUGINS.parse(listed.replace("not enabled", "enabled"))[0].enabled is True
    with pytest.raises(ValueError, match="not a list"):
        PLUGINS.parse("{}")


def test_plugins_are_updated_one_by_one(tmp_path: Path) -> None:
    program = tmp_path / "hermes"
    program.write_text("#!/bin/sh\n", "utf-8")
    program.chmod(0o755)
    plugins = Plugins(homes(tmp_path, AMUX_HERMES_EXECUTABLE=str(program)))
    assert plugins.update("hermes", "demo", dry_run=True).argv[1:] == ("plugins", "update", "demo")
    with pytest.raises(ValidationError, match="one by one"):
        plugins.update("hermes", None, dry_run=True)


def test_configuration_directory_of_a_trial_has_the_files_of_the_selected_profile(tmp_path: Path) -> None:
    profile = tmp_path / ".hermes" / "profiles" / "work"
    profile.mkdir(parents=True)
    (tmp_path / ".hermes" / "active_profile").write_text("work")
    for name in ("auth.json", "config.yaml", "state.db"):
        (profile / name).write_text(name)
    with trial_surroundings(HOME.config_directory, AgentPaths(environ={"HOME": str(tmp_path)}), tmp_path) as own:
        directory = Path(own.environ["HERMES_HOME"])
        assert (directory / "auth.json").resolve() == profile / "auth.json"
        assert sorted(path.name for path in directory.iterdir()) == ["auth.json", "config.yaml"]
