"""OpenCode's settings, servers, plugins and credentials, in files written by its own commands (1.18.33)."""

import json
from pathlib import Path

import pytest

from agent_mux import McpServer, ValidationError
from agent_mux.agents.auth import Auth
from agent_mux.agents.config.client import AgentConfigs
from agent_mux.agents.definitions import skills, subagents
from agent_mux.agents.installations import InstallationResolver
from agent_mux.agents.mcp_servers import McpServers
from agent_mux.sdk.config import Scope
from agent_mux_adapters.opencode.installation import PLUGINS

# `opencode mcp add u1 --env A=b -- node x.js --flag "two words"`, `opencode mcp add r1 --url https://x.example/mcp
# --header X-Key=abc`, `opencode plugin --global /src/plug`; the comments and the last two servers by hand.
CONFIG = """\
{
  "$schema": "https://opencode.ai/config.json",
  // mine
  "mcp": {
    "u1": {
      "type": "local",
      "command": [
        "node",
        "x.js",
        "--flag",
        "two words"
      ],
      "environment": {
        "A": "b"
      }
    },
    "r1": {
      "type": "remote",
      "url": "https://x.example/mcp",
      "headers": {
        "X-Key": "abc"
      }
    },
    "off": {
      "type": "local",
      "command": ["x"],
      "enabled": false, /* for now */
    },
    "inherited": { "enabled": false }
  },
  "plugin": [
    "/src/plug"
  ]
}"""
# `opencode debug config --pure`, of four plugins
SHOWN = """\
{
  "$schema": "https://opencode.ai/config.json",
  "plugin": [
    "file:///src/plug"
  ],
  "plugin_origins": [
    {
      "spec": "file:///src/plug",
      "source": "/home/dev/.config/opencode",
      "scope": "global"
    },
    {
      "spec": "opencode-foo@1.2.3",
      "source": "/project/opencode.json",
      "scope": "local"
    },
    {
      "spec": ["@scope/bar", {"key": "value"}],
      "source": "/project/opencode.json",
      "scope": "local"
    }
  ],
  "agent": {},
  "username": "dev"
}
"""
# The shapes of `auth.json`; `opencode auth list` shows the three as oauth, api and wellknown.
LOGINS = {
    "anthropic": {"type": "oauth", "refresh": "r", "access": "a", "expires": 5},
    "openai": {"type": "api", "key": "not-a-real-key"},
    "https://x.example": {"type": "wellknown", "key": "K", "token": "t"},
}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".config" / "opencode").mkdir(parents=True)
    (tmp_path / "project").mkdir()
    (tmp_path / ".config" / "opencode" / "opencode.jsonc").write_text(CONFIG, "utf-8")
    return tmp_path


def homes(home: Path, **environ: str) -> InstallationResolver:
    return InstallationResolver(environ={"HOME": str(home), **environ}, project=home / "project")


def write(path: Path, expected: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(expected), "utf-8")
    return path


# -- MCP servers


def test_servers_are_parsed(home: Path) -> None:
    found = McpServers(homes(home)).list("opencode")
    assert [(one.name, one.server, one.enabled) for one in found] == [
        ("u1", McpServer("u1", command="node", args=("x.js", "--flag", "two words"), env={"A": "b"}), True),
        ("r1", McpServer("r1", "streamable-http", url="https://x.example/mcp", headers={"X-Key": "abc"}), True),
        ("off", McpServer("off", command="x"), False),
        ("inherited", None, False),
    ]


def test_adding_and_removing_a_server_restores_the_file(home: Path) -> None:
    servers, configs = McpServers(homes(home)), AgentConfigs(homes(home))
    path = home / ".config" / "opencode" / "opencode.jsonc"
    servers.add("opencode", McpServer("new", command="x", args=("y",)))
    configs.set_model("opencode", "anthropic/claude-opus-4-6")
    text = path.read_text("utf-8")
    assert "// mine" in text
    assert "/* for now */" in text
    assert configs.get_field("opencode", "mcp.new.command").value == ["x", "y"]  # type: ignore[union-attr]
    configs.unset_field("opencode", "model")
    servers.remove("opencode", "new")
    assert path.read_text("utf-8") == CONFIG


# -- configuration


def test_later_configuration_file_takes_precedence(home: Path) -> None:
    configs = AgentConfigs(homes(home, OPENCODE_CONFIG="named.json", OPENCODE_CONFIG_DIR=str(home / "further")))
    expected: list[tuple[Path, Scope]] = [
        (home / ".config/opencode/config.json", "global"),
        (home / ".config/opencode/opencode.json", "global"),
        (home / ".config/opencode/opencode.jsonc", "global"),
        (home / "project/named.json", "global"),
        (home / "project/opencode.json", "project"),
        (home / "project/opencode.jsonc", "project"),
        (home / "project/.opencode/opencode.json", "project"),
        (home / "project/.opencode/opencode.jsonc", "project"),
        (home / ".opencode/opencode.json", "global"),
        (home / ".opencode/opencode.jsonc", "global"),
        (home / "further/opencode.json", "global"),
        (home / "further/opencode.jsonc", "global"),
    ]
    for number, (path, scope) in enumerate(expected):
        write(path, {"username": str(number)})
        found = configs.get_field("opencode", "username")
        assert found is not None
        assert (found.value, found.path, found.scope) == (str(number), path, scope)
    assert [(source.path, source.scope) for source in configs.sources("opencode")] == expected


@pytest.mark.parametrize(
    ("there", "scope", "written"),
    [
        ([], "global", ".config/opencode/opencode.jsonc"),
        ([], "project", "project/opencode.json"),
        ([".config/opencode/opencode.json"], "global", ".config/opencode/opencode.json"),
        ([".config/opencode/config.json"], "global", ".config/opencode/config.json"),
        (["project/.opencode/opencode.json"], "project", "project/.opencode/opencode.json"),
        ([".config/opencode/opencode.json", ".opencode/opencode.json"], "global", ".opencode/opencode.json"),
    ],
)
def test_change_is_written_to_the_effective_file(home: Path, there: list[str], scope: Scope, written: str) -> None:
    (home / ".config/opencode/opencode.jsonc").unlink()
    for name in there:
        write(home / name, {})
    configs = AgentConfigs(homes(home))
    assert configs.set_model("opencode", "a/b", scope=scope).path == home / written
    expected = configs.model("opencode")
    assert expected is not None
    assert (expected.value, expected.path) == ("a/b", home / written)


def test_project_configuration_can_be_disabled(home: Path) -> None:
    write(home / "project/opencode.json", {"model": "a/b"})
    assert AgentConfigs(homes(home)).model("opencode") is not None
    assert AgentConfigs(homes(home, OPENCODE_DISABLE_PROJECT_CONFIG="1")).model("opencode") is None


@pytest.mark.parametrize("model", ["opus", "/opus", "anthropic/", ""])
def test_model_needs_a_provider(home: Path, model: str) -> None:
    with pytest.raises(ValidationError, match="provider/model"):
        AgentConfigs(homes(home)).set_model("opencode", model)


def test_permissions_are_a_string_or_a_table(home: Path) -> None:
    configs = AgentConfigs(homes(home))
    for value in ("allow", {"edit": "deny", "bash": {"git *": "allow"}}):
        configs.set_field("opencode", "permission", value)
        assert configs.validate("opencode") == []


# -- credentials


@pytest.mark.parametrize(
    ("logins", "method", "where"),
    [
        ({"openai": LOGINS["openai"]}, "api_key", "auth.json (openai)"),
        ({"anthropic": LOGINS["anthropic"]}, "oauth", "auth.json (anthropic)"),
        ({"https://x.example": LOGINS["https://x.example"]}, "organization", "auth.json (https://x.example)"),
        (LOGINS, "api_key", "auth.json (openai)"),
    ],
)
def test_logins(home: Path, logins: object, method: str, where: str) -> None:
    write(home / ".local/share/opencode/auth.json", logins)
    state = Auth(homes(home)).check("opencode")
    assert (state.status, state.method, state.expires_at) == ("authenticated", method, None)
    assert (state.where or "").endswith(where)


def test_logins_in_the_variable_replace_the_file(home: Path) -> None:
    write(home / ".local/share/opencode/auth.json", LOGINS)
    state = Auth(homes(home, OPENCODE_AUTH_CONTENT='{"groq": {"type": "api", "key": "k"}}')).check("opencode")
    assert state.where == "OPENCODE_AUTH_CONTENT (groq)"
    assert Auth(homes(home, OPENCODE_AUTH_CONTENT="{}")).check("opencode").status == "unauthenticated"


def test_login_without_refresh_token_expires(home: Path) -> None:
    write(
        home / ".local/share/opencode/auth.json", {"x": {"type": "oauth", "access": "a", "refresh": "", "expires": 5}}
    )
    auth = Auth(homes(home))
    assert auth.check("opencode", now_ms=4).status == "authenticated"
    assert auth.check("opencode", now_ms=5).status == "expired"


@pytest.mark.parametrize(
    ("key", "environ", "is_there"),
    [
        ("not-a-real-key", {}, True),
        ("{env:MY_KEY}", {}, False),
        ("{env:MY_KEY}", {"MY_KEY": "k"}, True),
        ("{file:key.txt}", {}, False),
        ("{file:./there.txt}", {}, True),
        ("{file:~/.config/opencode/there.txt}", {}, True),
        ("", {}, False),
    ],
)
def test_keys_in_the_configuration(home: Path, key: str, environ: dict[str, str], *, is_there: bool) -> None:
    directory = home / ".config/opencode"
    write(directory / "opencode.jsonc", {"provider": {"mine": {"options": {"apiKey": key}}}})
    (directory / "there.txt").write_text("k", "utf-8")
    state = Auth(homes(home, **environ)).check("opencode")
    assert state.status == ("authenticated" if is_there else "unauthenticated")
    assert state.where == (f"{directory}/opencode.jsonc (provider.mine.options.apiKey)" if is_there else None)


def test_provider_key_is_found(home: Path) -> None:
    assert Auth(homes(home)).check("opencode").status == "unauthenticated"
    assert Auth(homes(home, OPENROUTER_API_KEY="k")).check("opencode").where == "OPENROUTER_API_KEY"


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"x": 3}', '{"x": {"type": "api", "key": ""}}'])
def test_file_without_credentials(home: Path, text: str) -> None:
    path = write(home / ".local/share/opencode/auth.json", {})
    path.write_text(text, "utf-8")
    assert Auth(homes(home)).check("opencode").status in {"unauthenticated", "unknown"}


# -- the rest


def test_shared_skills_count_unless_disabled(home: Path) -> None:
    def shared(**environ: str) -> set[str]:
        return {
            path.parent.name for folder, path in skills(homes(home, **environ)).where("opencode") if folder.is_shared
        }

    assert shared() == {".claude", ".agents"}
    assert shared(OPENCODE_DISABLE_CLAUDE_CODE_SKILLS="1") == {".agents"}
    assert shared(OPENCODE_DISABLE_EXTERNAL_SKILLS="1") == set()


@pytest.mark.parametrize("word", ["agent", "agents"])
def test_agents_are_found_in_either_folder(home: Path, word: str) -> None:
    for scope in (home / ".config/opencode", home / "project/.opencode", home / ".opencode"):
        (scope / word).mkdir(parents=True)
        (scope / word / "digger.md").write_text("---\ndescription: Digs\n---\n", "utf-8")
    found = subagents(homes(home)).list("opencode")
    assert [(one.name, one.problem) for one in found] == [("digger", None)] * 3
    assert {one.scope for one in found} == {"global", "project"}


def test_plugins_are_parsed_from_the_configuration() -> None:
    assert PLUGINS.parse is not None
    path, pinned, with_options = PLUGINS.parse(SHOWN)
    assert (path.name, path.version, path.source) == ("file:///src/plug", None, "/home/dev/.config/opencode")
    assert (pinned.name, pinned.version, pinned.extra) == ("opencode-foo", "1.2.3", {"scope": "local"})
    assert (with_options.name, with_options.version) == ("@scope/bar", None)
    with pytest.raises(ValueError, match="no configuration"):
        PLUGINS.parse("[]")
