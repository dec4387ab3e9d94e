"""Claude Code's home: on files as `claude mcp add` and `claude auth` of 2.1.330 wrote them."""

import json
from pathlib import Path

import pytest

from agent_mux import McpServer
from agent_mux.agents.auth import Auth
from agent_mux.agents.config.client import AgentConfigs
from agent_mux.agents.installations import InstallationResolver
from agent_mux.agents.mcp_servers import McpServers
from agent_mux_adapters.claude.installation import PLUGINS

# `claude mcp add u1 -s user -e A=b -- node x.js --flag`, and `claude mcp add l1 -t sse URL` in /home/dev/project
STATE = """\
{
  "firstStartVersion": "2.1.330",
  "migrationVersion": 15,
  "mcpServers": {
    "u1": {
      "type": "stdio",
      "command": "node",
      "args": [
        "x.js",
        "--flag"
      ],
      "env": {
        "A": "b"
      }
    }
  },
  "projects": {
    "/home/dev/project": {
      "allowedTools": [],
      "mcpServers": {
        "l1": {
          "type": "sse",
          "url": "https://x.example/sse"
        }
      },
      "hasTrustDialogAccepted": false
    }
  },
  "userID": "5be2"
}"""
# `claude mcp add p1 -s project -t http https://x.example/mcp -H "X-Key: abc"`
PROJECT = """\
{
  "mcpServers": {
    "p1": {
      "type": "http",
      "url": "https://x.example/mcp",
      "headers": {
        "X-Key": "abc"
      }
    }
  }
}"""
# `claude plugin list --json` and `--available`, of a marketplace in a folder
LISTED = """[{"id": "demo@shop", "version": "1.2.0", "scope": "user", "enabled": true, "installPath": "/x",
 "readFromFolder": "/shop/demo", "folderVersion": "1.2.0", "projectEnabled": false}]"""
AVAILABLE = """{"installed": [], "available": [{"pluginId": "demo@shop", "name": "demo", "description": "A demo",
 "marketplaceName": "shop", "source": "./demo"}]}"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".claude").mkdir()
    (tmp_path / "project").mkdir()
    state = STATE.replace("/home/dev/project", str(tmp_path / "project"))
    (tmp_path / ".claude.json").write_text(state, "utf-8")
    (tmp_path / "project" / ".mcp.json").write_text(PROJECT, "utf-8")
    return tmp_path


def homes(home: Path, **environ: str) -> InstallationResolver:
    return InstallationResolver(environ={"HOME": str(home), **environ}, project=home / "project")


def test_servers_of_all_scopes(home: Path) -> None:
    found = McpServers(homes(home)).list("claude")
    assert [(one.scope, one.server) for one in found] == [
        ("global", McpServer("u1", command="node", args=("x.js", "--flag"), env={"A": "b"})),
        ("project", McpServer("p1", "streamable-http", url="https://x.example/mcp", headers={"X-Key": "abc"})),
        ("local", McpServer("l1", "sse", url="https://x.example/sse")),
    ]


def test_its_own_file_is_as_it_was_after_an_addition_and_a_removal(home: Path) -> None:
    before = (home / ".claude.json").read_bytes()
    servers = McpServers(homes(home))
    for scope in ("global", "local"):
        servers.add("claude", McpServer("new", command="x"), scope=scope)  # type: ignore[arg-type]
    state = json.loads((home / ".claude.json").read_bytes())
    assert state["mcpServers"]["new"] == {"type": "stdio", "command": "x", "args": [], "env": {}}
    assert "new" in state["projects"][str(home / "project")]["mcpServers"]
    for scope in ("global", "local"):
        servers.remove("claude", "new", scope=scope)  # type: ignore[arg-type]
    assert (home / ".claude.json").read_bytes() == before


def test_the_directory_may_be_elsewhere(home: Path) -> None:
    moved = homes(home, CLAUDE_CONFIG_DIR=str(home / "moved"))
    assert [one.name for one in McpServers(moved).list("claude")] == ["p1"]
    McpServers(moved).add("claude", McpServer("new", command="x"))
    assert (home / "moved" / ".claude.json").exists()  # inside: that is where 2.1.330 has it then


@pytest.mark.parametrize(
    ("environ", "files", "method", "where"),
    [
        ({"ANTHROPIC_API_KEY": "k"}, {}, "api_key", "ANTHROPIC_API_KEY"),
        ({"ANTHROPIC_AUTH_TOKEN": "k", "ANTHROPIC_API_KEY": "k"}, {}, "auth_token", "ANTHROPIC_AUTH_TOKEN"),
        ({"CLAUDE_CODE_OAUTH_TOKEN": "k"}, {}, "oauth", "CLAUDE_CODE_OAUTH_TOKEN"),
        ({"CLAUDE_CODE_USE_BEDROCK": "1"}, {}, "cloud", "CLAUDE_CODE_USE_BEDROCK"),
        ({}, {"settings.json": {"apiKeyHelper": "echo k"}}, "api_key", "settings.json (apiKeyHelper)"),
        ({}, {"settings.json": {"env": {"ANTHROPIC_API_KEY": "k"}}}, "api_key", "(env.ANTHROPIC_API_KEY)"),
        (
            {}, {".credentials.json": {"claudeAiOauth": {"accessToken": "a", "refreshToken": "r", "expiresAt": 1}}},
            "oauth", ".credentials.json",
        ),
    ],
)  # fmt: skip
def test_credentials(home: Path, environ: dict[str, str], files: dict[str, object], method: str, where: str) -> None:
    for name, content in files.items():
        (home / ".claude" / name).write_text(json.dumps(content), "utf-8")
    state = Auth(homes(home, **environ)).check("claude-code")
    assert (state.status, state.method) == ("authenticated", method)
    assert state.where is not None
    assert state.where.endswith(where)


def test_a_token_that_cannot_be_renewed_expires(home: Path) -> None:
    token = {"claudeAiOauth": {"accessToken": "a", "refreshToken": "", "expiresAt": 5}}
    (home / ".claude" / ".credentials.json").write_text(json.dumps(token), "utf-8")
    auth = Auth(homes(home))
    assert auth.check("claude", now_ms=4).status == "authenticated"
    assert auth.check("claude", now_ms=5).status == "expired"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"claudeAiOauth": 3}', '{"claudeAiOauth": {"accessToken": ""}}'])
def test_a_file_without_credentials_has_none(home: Path, text: str) -> None:
    (home / ".claude" / ".credentials.json").write_text(text, "utf-8")
    assert Auth(homes(home)).check("claude").status in {"unauthenticated", "unknown"}


def test_the_model_is_a_field_or_a_variable_of_its_settings(home: Path) -> None:
    configs = AgentConfigs(homes(home))
    configs.set_field("claude", "env.ANTHROPIC_MODEL", "claude-opus-4-6")
    model = configs.model("claude")
    assert model is not None
    assert model.value == "claude-opus-4-6"
    configs.set_model("claude", "sonnet", scope="local")
    model = configs.model("claude")
    assert model is not None
    assert (model.value, model.scope) == ("sonnet", "local")


def test_plugins_as_they_are_listed() -> None:
    assert PLUGINS.parse is not None
    assert PLUGINS.parse_search is not None
    [installed], [available] = PLUGINS.parse(LISTED), PLUGINS.parse_search(AVAILABLE)
    assert (installed.name, installed.version, installed.enabled) == ("demo@shop", "1.2.0", True)
    assert (available.name, available.source, available.description) == ("demo@shop", "shop", "A demo")
