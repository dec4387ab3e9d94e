"""Gemini CLI's home: on files as its commands `mcp`, `extensions` and its terminal (0.61.0) wrote them."""

import hashlib
import json
from pathlib import Path

import pytest

from agent_mux import McpServer
from agent_mux.agents.auth import Auth
from agent_mux.agents.config.client import AgentConfigs
from agent_mux.agents.definitions import skills, subagents
from agent_mux.agents.installations import InstallationResolver
from agent_mux.agents.mcp_servers import McpServers
from agent_mux_adapters.gemini.installation import PLUGINS

# Written by hand, comments and all; then `gemini mcp add -s user -e A=b --trust --timeout 5000 u1 node x.js two`.
SETTINGS = """\
{
  // my own
  "security": {
    "auth": {
      "selectedType": "gemini-api-key"
    }
  }, /* why */
  "model": {
    "name": "gemini-2.5-pro"
  },
  "mcpServers": {
    "u1": {
      "command": "node",
      "args": [
        "x.js",
        "two"
      ],
      "env": {
        "A": "b"
      },
      "timeout": 5000,
      "trust": true
    }
  }
}"""
# `gemini mcp add -s project -t http -H "X-Key: abc" p1 https://x.example/mcp`, and `-t sse s1 https://x.example/sse`;
# the last two by hand, in the words of older versions.
PROJECT = """\
{
  "mcpServers": {
    "p1": {
      "url": "https://x.example/mcp",
      "type": "http",
      "headers": {
        "X-Key": "abc"
      }
    },
    "s1": {
      "url": "https://x.example/sse",
      "type": "sse",
      "includeTools": [
        "a,b"
      ]
    },
    "old": {
      "httpUrl": "https://x.example/old",
      "url": "https://x.example/ignored",
      "type": "sse"
    },
    "odd": {
      "tcp": "x"
    }
  }
}"""
# `gemini extensions list -o json`, on standard error; the first line is printed where ripgrep is missing
LISTED = """\
Ripgrep is not available. Falling back to GrepTool.
[
  {
    "name": "demo",
    "version": "1.2.0",
    "path": "/home/dev/.gemini/extensions/demo",
    "contextFiles": [],
    "installMetadata": {
      "source": "/src/ext",
      "type": "local"
    },
    "mcpServers": {},
    "isActive": false,
    "id": "424e",
    "resolvedSettings": [],
    "skills": [],
    "agents": []
  }
]
"""
SUBAGENT = "---\nname: counter\ndescription: Counts\n---\nCount.\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".gemini").mkdir()
    (tmp_path / "project" / ".gemini").mkdir(parents=True)
    (tmp_path / ".gemini" / "settings.json").write_text(SETTINGS, "utf-8")
    (tmp_path / "project" / ".gemini" / "settings.json").write_text(PROJECT, "utf-8")
    return tmp_path


def homes(home: Path, **environ: str) -> InstallationResolver:
    return InstallationResolver(environ={"HOME": str(home), **environ}, project=home / "project")


def settings(home: Path, content: object) -> None:
    (home / ".gemini" / "settings.json").write_text(json.dumps(content), "utf-8")


def selected(home: Path, way: str) -> None:
    settings(home, {"security": {"auth": {"selectedType": way}}})


# -- MCP servers


def test_servers_of_both_scopes(home: Path) -> None:
    found = McpServers(homes(home)).list("gemini-cli")
    assert [(one.scope, one.name, one.server) for one in found] == [
        ("global", "u1", McpServer("u1", command="node", args=("x.js", "two"), env={"A": "b"})),
        ("project", "p1", McpServer("p1", "streamable-http", url="https://x.example/mcp", headers={"X-Key": "abc"})),
        ("project", "s1", McpServer("s1", "sse", url="https://x.example/sse")),
        ("project", "old", McpServer("old", "streamable-http", url="https://x.example/old")),
        ("project", "odd", None),
    ]


def test_a_server_is_written_as_its_own_command_writes_it(home: Path) -> None:
    servers = McpServers(homes(home))
    servers.add("gemini", McpServer("u2", command="/bin/echo", args=("--flag", "two words")))
    servers.add("gemini", McpServer("p2", "sse", url="https://x.example/2"))
    own = json.loads((home / ".gemini" / "settings.json").read_text("utf-8").replace("// my own", "").replace(
        "/* why */", ""))["mcpServers"]  # fmt: skip
    assert own["u2"] == {"command": "/bin/echo", "args": ["--flag", "two words"]}
    assert own["p2"] == {"url": "https://x.example/2", "type": "sse"}


def test_its_own_file_is_as_it_was_after_an_addition_and_a_removal(home: Path) -> None:
    servers, configs = McpServers(homes(home)), AgentConfigs(homes(home))
    path = home / ".gemini" / "settings.json"
    servers.add("gemini", McpServer("new", command="x"))
    configs.set_field("gemini", "general.vimMode", value=True)
    assert "// my own" in path.read_text("utf-8")
    configs.unset_field("gemini", "general.vimMode")
    configs.unset_field("gemini", "general")
    servers.remove("gemini", "new")
    assert path.read_text("utf-8") == SETTINGS


@pytest.mark.parametrize(
    ("lists", "on"),
    [
        ({}, ["u1", "p1"]),
        ({"excluded": [" U1 "]}, ["p1"]),
        ({"allowed": ["U1"]}, ["u1"]),
        ({"allowed": []}, []),
        ({"allowed": ["u1"], "excluded": ["u1"]}, []),
        ({"excluded": "u1"}, ["u1", "p1"]),
    ],
)
def test_servers_are_switched_off_by_lists(home: Path, lists: dict[str, object], on: list[str]) -> None:
    settings(home, {"mcp": lists, "mcpServers": {"u1": {"command": "x"}}})
    found = McpServers(homes(home)).list("gemini")
    assert [one.name for one in found if one.enabled and one.name in {"u1", "p1"}] == on


@pytest.mark.parametrize(
    ("content", "is_on"), [('{"u1": {"enabled": false}}', False), ('{"u1": {"enabled": true}}', True), ("{", True)]
)
def test_servers_are_switched_off_by_its_command(home: Path, content: str, *, is_on: bool) -> None:
    (home / ".gemini" / "mcp-server-enablement.json").write_text(content, "utf-8")  # `gemini mcp disable U1`
    found = {one.name: one.enabled for one in McpServers(homes(home)).list("gemini")}
    assert (found["u1"], found["p1"]) == (is_on, True)


# -- places


def test_the_home_may_be_elsewhere(home: Path) -> None:
    moved = homes(home, GEMINI_CLI_HOME=str(home / "moved"))
    AgentConfigs(moved).set_model("gemini", "gemini-2.5-flash")
    assert (home / "moved" / ".gemini" / "settings.json").exists()  # below .gemini there, not in it
    shared = [path for folder, path in skills(moved).where("gemini") if folder.is_shared]
    assert shared == [home / "moved" / ".agents" / "skills", home / "project" / ".agents" / "skills"]


def test_the_home_directory_is_no_project(home: Path) -> None:
    inside = InstallationResolver(environ={"HOME": str(home)}, project=home)
    assert [one.scope for one in AgentConfigs(inside).sources("gemini")] == ["global"]
    assert {folder.scope for folder, _ in skills(inside).where("gemini")} == {"global"}


# -- credentials


@pytest.mark.parametrize(
    ("way", "environ", "method", "where"),
    [
        (None, {"GEMINI_API_KEY": "k"}, "api_key", "GEMINI_API_KEY"),
        ("gemini-api-key", {"GEMINI_API_KEY": "k"}, "api_key", "GEMINI_API_KEY"),
        (None, {"GOOGLE_GENAI_USE_VERTEXAI": "true", "GOOGLE_API_KEY": "k"}, "vertex_ai", "GOOGLE_API_KEY"),
        ("vertex-ai", {"GOOGLE_API_KEY": "k"}, "vertex_ai", "GOOGLE_API_KEY"),
        (
            None, {"GOOGLE_GENAI_USE_GCA": "true", "GOOGLE_CLOUD_ACCESS_TOKEN": "t"}, "oauth",
            "GOOGLE_CLOUD_ACCESS_TOKEN",
        ),
    ],
)  # fmt: skip
def test_credentials_in_variables(
    home: Path, way: str | None, environ: dict[str, str], method: str, where: str
) -> None:
    selected(home, way or "")
    state = Auth(homes(home, **environ)).check("gemini")
    assert (state.status, state.method, state.where) == ("authenticated", method, where)


@pytest.mark.parametrize(
    ("way", "environ", "status"),
    [
        (None, {}, "unauthenticated"),
        (None, {"GOOGLE_API_KEY": "k"}, "unauthenticated"),
        (None, {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": "http://h"}, "unauthenticated"),  # invalid, it says
        ("oauth-personal", {"GEMINI_API_KEY": "k"}, "unauthenticated"),
        ("vertex-ai", {"GEMINI_API_KEY": "k"}, "unauthenticated"),
        ("gemini-api-key", {}, "unknown"),  # it may be in the keyring
        ("oauth-personal", {"GEMINI_FORCE_ENCRYPTED_FILE_STORAGE": "true"}, "unknown"),
        ("compute-default-credentials", {}, "unknown"),
    ],
)
def test_only_the_selected_auth_method_counts(
    home: Path, way: str | None, environ: dict[str, str], status: str
) -> None:
    selected(home, way or "")
    assert Auth(homes(home, **environ)).check("gemini").status == status


def test_a_google_account(home: Path) -> None:
    path = home / ".gemini" / "oauth_creds.json"
    path.write_text('{"access_token": "a", "refresh_token": "r", "expiry_date": 5}', "utf-8")
    selected(home, "")
    auth = Auth(homes(home))
    assert auth.check("gemini").status == "unauthenticated"  # it is not selected
    selected(home, "oauth-personal")
    state = auth.check("gemini")
    assert (state.status, state.method, state.where, state.expires_at) == ("authenticated", "oauth", str(path), None)
    path.write_text('{"access_token": "a", "expiry_date": 5}', "utf-8")
    assert auth.check("gemini", now_ms=4).status == "authenticated"
    assert auth.check("gemini", now_ms=5).status == "expired"


def test_vertex_needs_a_project_and_a_file(home: Path) -> None:
    selected(home, "vertex-ai")
    project = {"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "l"}
    assert Auth(homes(home, **project)).check("gemini").status == "unknown"  # a machine of the cloud has them
    path = home / ".config" / "gcloud" / "application_default_credentials.json"
    path.parent.mkdir(parents=True)
    path.write_text("{}", "utf-8")
    assert Auth(homes(home, **project)).check("gemini").where == str(path)
    assert Auth(homes(home)).check("gemini").status == "unauthenticated"


def test_the_first_dotenv_file_is_the_only_one(home: Path) -> None:
    selected(home, "")
    mine = home / ".gemini" / ".env"
    mine.write_text('# mine\nexport GEMINI_API_KEY="k"\n', "utf-8")
    state = Auth(homes(home)).check("gemini")
    assert (state.status, state.where) == ("authenticated", f"{mine} (GEMINI_API_KEY)")
    (home / "project" / ".env").write_text("OTHER=1\n", "utf-8")
    assert Auth(homes(home)).check("gemini").status == "unauthenticated"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"access_token": ""}', "null"])
def test_a_file_without_credentials_has_none(home: Path, text: str) -> None:
    selected(home, "oauth-personal")
    (home / ".gemini" / "oauth_creds.json").write_text(text, "utf-8")
    assert Auth(homes(home)).check("gemini").status in {"unauthenticated", "unknown"}


def test_broken_settings_are_a_problem(home: Path) -> None:
    (home / ".gemini" / "settings.json").write_text("{", "utf-8")
    state = Auth(homes(home, GEMINI_API_KEY="k")).check("gemini")
    assert state.status == "unknown"
    assert "settings.json" in (state.problem or "")


# -- the rest


def test_the_model_of_the_project_wins(home: Path) -> None:
    configs = AgentConfigs(homes(home))
    model = configs.model("gemini")
    assert model is not None
    assert (model.value, model.scope) == ("gemini-2.5-pro", "global")
    configs.set_model("gemini", "gemini-2.5-flash", scope="project")
    model = configs.model("gemini")
    assert model is not None
    assert (model.value, model.scope) == ("gemini-2.5-flash", "project")


def test_project_subagent_needs_confirmation(home: Path) -> None:
    path = home / "project" / ".gemini" / "agents" / "counter.md"
    path.parent.mkdir()
    path.write_text(SUBAGENT, "utf-8")
    agents = subagents(homes(home))
    [found] = agents.list("gemini")
    assert found.problem == "not confirmed; run `gemini` in the project to confirm it"
    # As its terminal writes it (2 spaces): by project, name and SHA-256 of the file.
    agreed = {str(home / "project"): {"counter": hashlib.sha256(SUBAGENT.encode()).hexdigest()}}
    (home / ".gemini" / "acknowledgments").mkdir()
    (home / ".gemini" / "acknowledgments" / "agents.json").write_text(json.dumps(agreed, indent=2), "utf-8")
    [found] = agents.list("gemini")
    assert found.problem is None
    path.write_text(SUBAGENT + "More.\n", "utf-8")
    [found] = agents.list("gemini")
    assert found.problem is not None
    (home / ".gemini" / "agents").mkdir()
    path.rename(home / ".gemini" / "agents" / "counter.md")
    [found] = agents.list("gemini")
    assert (found.scope, found.problem) == ("global", None)


def test_extensions_as_they_are_listed() -> None:
    assert PLUGINS.parse is not None
    [demo] = PLUGINS.parse(LISTED)
    assert (demo.name, demo.version, demo.enabled, demo.source) == ("demo", "1.2.0", False, "/src/ext")
    assert PLUGINS.parse("[]\n") == ()
    with pytest.raises(ValueError, match="no list"):
        PLUGINS.parse("Ripgrep is not available.\n")
