"""Installation of Codex, with files and outputs of 0.169.0."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from agent_mux import CapabilityError, McpServer, ValidationError
from agent_mux.agents.auth import Auth
from agent_mux.agents.config.client import AgentConfigs
from agent_mux.agents.definitions import skills, subagents
from agent_mux.agents.installations import InstallationResolver
from agent_mux.agents.mcp_servers import McpServers
from agent_mux_adapters.codex.installation import HOME, PLUGINS

# A user's file after `codex mcp add files --env KEY=v -- npx -y server --root "/a b"`, `codex mcp add docs --url
# https://h.example/mcp --bearer-token-env-var TOKEN` and `codex features enable memories`.
CONFIG = """\
# mine
model = "gpt-5.5" # the usual one
approval_policy = "on-request"

[tui]
notifications = true

[mcp_servers.files]
command = "npx"
args = ["-y", "server", "--root", "/a b"]

[mcp_servers.files.env]
KEY = "v"

[mcp_servers.docs]
url = "https://h.example/mcp"
bearer_token_env_var = "TOKEN"

[features]
memories = true
"""
OWN_PROVIDER = """\
model_provider = "mine"

[model_providers.mine]
name = "mine"
base_url = "http://127.0.0.1:9/v1"
"""
NOW = 1_800_000_000_000


class Machine:
    """A home directory and a project, with access to what they contain."""

    def __init__(self, directory: Path) -> None:
        self.home = directory / "home" / ".codex"
        self.project = directory / "project"
        self.home.mkdir(parents=True)
        self.project.mkdir()
        self.config = self.home / "config.toml"
        self.environ = {"HOME": str(self.home.parent)}

    @property
    def homes(self) -> InstallationResolver:
        return InstallationResolver(environ=self.environ, project=self.project)

    def auth(self, **stored: Any) -> tuple[str, str | None, str | None]:
        """Return status, method and location, after writing this `auth.json` unless it is empty."""
        if stored:
            (self.home / "auth.json").write_text(json.dumps(stored), "utf-8")
        state = Auth(self.homes).check("codex", now_ms=NOW)
        return state.status, state.method, state.where


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def token(expires: int) -> str:
    """Return a JSON Web Token with this expiry in seconds."""
    body = base64.urlsafe_b64encode(json.dumps({"exp": expires}).encode()).decode().rstrip("=")
    return f"eyJhbGciOiJub25lIn0.{body}.signature"


def test_servers_are_read_as_codex_wrote_them(machine: Machine) -> None:
    machine.config.write_text(CONFIG, "utf-8")
    files, docs = McpServers(machine.homes).list("codex")
    assert files.server == McpServer("files", command="npx", args=("-y", "server", "--root", "/a b"), env={"KEY": "v"})
    assert docs.server == McpServer("docs", "streamable-http", url="https://h.example/mcp")
    assert files.enabled
    assert docs.enabled


def test_a_server_is_switched_off_by_its_own_key(machine: Machine) -> None:
    machine.config.write_text('[mcp_servers.off]\ncommand = "echo"\nenabled = false\n', "utf-8")
    [off] = McpServers(machine.homes).list("codex")
    assert not off.enabled


def test_headers_have_another_name_and_a_type_counts_for_nothing(machine: Machine) -> None:
    content = '[mcp_servers.x]\ntype = "sse"\nurl = "https://h"\nhttp_headers = { "X-A" = "1" }\n'
    machine.config.write_text(content, "utf-8")
    [found] = McpServers(machine.homes).list("codex")
    assert found.server == McpServer("x", "streamable-http", url="https://h", headers={"X-A": "1"})


@pytest.mark.parametrize(
    "server",
    [
        McpServer("new", command="run", args=("a b",), env={"KEY": "v"}),
        McpServer("new", command="run"),
        McpServer("new", "streamable-http", url="https://h", headers={"X-A": "1"}),
    ],
)
def test_a_server_that_is_added_and_removed_leaves_every_byte(machine: Machine, server: McpServer) -> None:
    machine.config.write_text(CONFIG, "utf-8")
    servers = McpServers(machine.homes)
    servers.add("codex", server)
    assert [one.server for one in servers.list("codex") if one.name == "new"] == [server]
    servers.remove("codex", "new")
    assert machine.config.read_text("utf-8") == CONFIG


def test_no_server_over_sse(machine: Machine) -> None:
    with pytest.raises(CapabilityError, match="streamable HTTP only"):
        McpServers(machine.homes).add("codex", McpServer("x", "sse", url="https://h"))
    assert not machine.config.exists()


def test_the_model_is_read_and_set_and_comments_stay(machine: Machine) -> None:
    machine.config.write_text(CONFIG, "utf-8")
    configs = AgentConfigs(machine.homes)
    effective = configs.model("codex")
    assert effective is not None
    assert effective.value == "gpt-5.5"
    configs.set_model("codex", "gpt-6-sol")
    assert machine.config.read_text("utf-8") == CONFIG.replace('"gpt-5.5"', '"gpt-6-sol"')


def test_a_field_that_is_set_and_unset_leaves_every_byte(machine: Machine) -> None:
    machine.config.write_text(CONFIG, "utf-8")
    configs = AgentConfigs(machine.homes)
    for name, value in (("web_search", "live"), ("sandbox_workspace_write.network_access", True)):
        configs.set_field("codex", name, value)
        assert configs.get("codex")["mcp_servers"]["files"]["command"] == "npx"
        configs.unset_field("codex", name)
        assert machine.config.read_text("utf-8") == CONFIG


def test_a_policy_is_a_string_or_a_table(machine: Machine) -> None:
    configs = AgentConfigs(machine.homes)
    with pytest.raises(ValidationError, match="one of untrusted, on-failure, on-request, never or a table"):
        configs.set_field("codex", "approval_policy", "always")
    configs.set_field("codex", "approval_policy", {"granular": {"rules": True}})
    assert configs.validate("codex") == []
    known = configs.schema("codex")["properties"]["approval_policy"]
    assert [one["type"] for one in known["anyOf"]] == ["string", "object"]


def test_the_project_file_takes_precedence(machine: Machine) -> None:
    machine.config.write_text(CONFIG, "utf-8")
    configs = AgentConfigs(machine.homes)
    configs.set_model("codex", "gpt-5.4", scope="project")
    effective = configs.model("codex")
    assert effective is not None
    assert (effective.value, effective.path) == ("gpt-5.4", machine.project / ".codex" / "config.toml")


def test_its_directory_may_be_elsewhere(machine: Machine, tmp_path: Path) -> None:
    machine.environ["CODEX_HOME"] = str(tmp_path / "moved")
    AgentConfigs(machine.homes).set_model("codex", "gpt-5.4")
    assert (tmp_path / "moved" / "config.toml").read_text("utf-8") == 'model = "gpt-5.4"\n'


def test_a_new_home_is_unauthenticated(machine: Machine) -> None:
    assert machine.auth() == ("unauthenticated", None, None)


def test_an_api_key_that_codex_stored(machine: Machine) -> None:
    # `codex login --with-api-key`
    assert machine.auth(auth_mode="apikey", OPENAI_API_KEY="KEY") == (
        "authenticated", "api-key", str(machine.home / "auth.json")
    )  # fmt: skip


def test_an_account_with_a_refresh_token_does_not_expire(machine: Machine) -> None:
    old = token(NOW // 1000 - 60)
    stored = {"access_token": old, "refresh_token": "r", "id_token": old}
    status, method, _ = machine.auth(auth_mode="chatgpt", OPENAI_API_KEY=None, tokens=stored)
    assert (status, method) == ("authenticated", "chatgpt")
    status, method, _ = machine.auth(auth_mode="chatgpt", tokens={**stored, "refresh_token": ""})
    assert (status, method) == ("expired", "chatgpt")
    status, _, _ = machine.auth(tokens={"access_token": token(NOW // 1000 + 60)})
    assert status == "authenticated"


@pytest.mark.parametrize("odd", ["opaque", "a.b.c", "a.!!!.c"])
def test_a_token_without_an_expiry_does_not_expire(machine: Machine, odd: str) -> None:
    assert machine.auth(tokens={"access_token": odd})[:2] == ("authenticated", "chatgpt")


def test_a_broken_file_is_an_error(machine: Machine) -> None:
    (machine.home / "auth.json").write_text("{broken", "utf-8")
    state = Auth(machine.homes).check("codex")
    assert state.status == "unknown"
    assert "an API key" in (state.problem or "")


def test_an_empty_auth_file_is_unauthenticated(machine: Machine) -> None:
    # For {}, `codex login status` reports a ChatGPT account and `codex doctor` incomplete credentials.
    (machine.home / "auth.json").write_text("{}", "utf-8")
    assert machine.auth() == ("unauthenticated", None, None)


def test_an_exec_key_is_marked_as_for_one_shot_runs(machine: Machine) -> None:
    machine.environ["CODEX_API_KEY"] = "k"
    status, method, where = machine.auth()
    assert (status, method) == ("authenticated", "exec-key")
    assert "one-shot runs only" in (where or "")
    assert machine.auth(auth_mode="apikey", OPENAI_API_KEY="KEY")[1] == "api-key"


def test_openai_api_key_is_not_read(machine: Machine) -> None:
    machine.environ["OPENAI_API_KEY"] = "k"
    assert machine.auth()[0] == "unauthenticated"


@pytest.mark.parametrize(
    ("more", "environ", "expected"),
    [
        ("", {}, "authenticated"),  # this provider needs no credentials
        ('env_key = "MINE"\n', {"MINE": "k"}, "authenticated"),
        ('env_key = "MINE"\n', {}, "unauthenticated"),
        ("requires_openai_auth = true\n", {}, "unauthenticated"),
    ],
)
def test_an_own_model_provider_is_authenticated_with_its_key(
    machine: Machine, more: str, environ: dict[str, str], expected: str
) -> None:
    machine.config.write_text(OWN_PROVIDER + more, "utf-8")
    machine.environ |= environ
    assert machine.auth()[0] == expected


def test_an_account_of_openai_is_nothing_to_another_provider(machine: Machine) -> None:
    machine.config.write_text(OWN_PROVIDER + 'env_key = "MINE"\n', "utf-8")
    assert machine.auth(auth_mode="apikey", OPENAI_API_KEY="KEY")[0] == "unauthenticated"


@pytest.mark.parametrize(
    ("config", "where"),
    [
        ('cli_auth_credentials_store = "keyring"\n', "the system keyring"),
        ('model_provider = "amazon-bedrock"\n', "the AWS credentials"),
    ],
)
def test_credentials_in_a_keyring_are_unknown(machine: Machine, config: str, where: str) -> None:
    machine.config.write_text(config, "utf-8")
    state = Auth(machine.homes).check("codex")
    assert (state.status, state.problem) == ("unknown", f"it may be in {where}")


def test_skills_are_found_in_four_places(machine: Machine) -> None:
    for base in (
        machine.home,
        machine.home.parent / ".agents",
        machine.project / ".codex",
        machine.project / ".agents",
    ):
        (base / "skills" / "one").mkdir(parents=True)
        (base / "skills" / "one" / "SKILL.md").write_text("---\ndescription: d\n---\n", "utf-8")
    found = skills(machine.homes).list("codex")
    assert [(one.scope, one.is_shared, one.problem) for one in found] == [
        ("global", False, None), ("project", False, None), ("global", True, None), ("project", True, None),
    ]  # fmt: skip


def test_a_sub_agent_needs_what_codex_wants_of_it(machine: Machine) -> None:
    folder = machine.home / "agents"
    folder.mkdir()
    (folder / "good.toml").write_text('name = "good"\ndescription = "d"\ndeveloper_instructions = "x"\n', "utf-8")
    (folder / "less.toml").write_text('name = "less"\ndescription = "d"\n', "utf-8")
    found = {one.name: one.problem for one in subagents(machine.homes).list("codex")}
    assert found == {"good": None, "less": "its header lacks developer_instructions"}


# `codex plugin list --available --json`
LISTED = """\
{
  "installed": [
    {
      "pluginId": "demo@shop", "name": "demo", "marketplaceName": "shop", "version": "1.2.0", "installed": true,
      "enabled": true, "source": {"source": "local", "path": "/m/demo"},
      "marketplaceSource": {"sourceType": "local", "source": "/m"}, "installPolicy": "AVAILABLE",
      "authPolicy": "ON_INSTALL"
    }
  ],
  "available": [{"pluginId": "other@shop", "name": "other", "marketplaceName": "shop", "enabled": false}]
}
"""


def test_plugins_are_listed() -> None:
    assert PLUGINS.parse is not None
    assert PLUGINS.parse_search is not None
    [demo] = PLUGINS.parse(LISTED)
    assert (demo.name, demo.version, demo.enabled, demo.source) == ("demo@shop", "1.2.0", True, "/m")
    [other] = PLUGINS.parse_search(LISTED)
    assert (other.name, other.version, other.enabled, other.source) == ("other@shop", None, False, "shop")


def test_the_name_of_a_plugin_is_one_argument() -> None:
    assert HOME.plugins is not None
    assert HOME.plugins.install is not None
    assert HOME.plugins.uninstall is not None
    assert HOME.plugins.install("demo@shop") == ("plugin", "add", "demo@shop")
    assert HOME.plugins.uninstall("demo@shop") == ("plugin", "remove", "demo@shop")
