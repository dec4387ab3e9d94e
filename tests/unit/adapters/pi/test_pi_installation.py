"""pi's settings, credentials and packages, in files written and lists printed by 0.87.1 and 0.73.1."""

import json
from pathlib import Path

import pytest

from agent_mux import AgentMuxError, CapabilityError, ValidationError
from agent_mux.agents.auth import Auth
from agent_mux.agents.config.client import AgentConfigs
from agent_mux.agents.definitions import skills, subagents
from agent_mux.agents.installations import InstallationResolver
from agent_mux.agents.mcp_servers import McpServers
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.installation import Plugin
from agent_mux.sdk.options import McpServer
from agent_mux_adapters.pi import ADAPTER
from agent_mux_adapters.pi.installation import AUTH, HOME, PLUGINS

# `pi install` of each source, and a filter that `pi config` writes; no newline at the end.
SETTINGS = """\
{
  "packages": [
    "npm:@acme/tools@1.2.0",
    {
      "source": "git:github.com/acme/more@v2",
      "skills": []
    },
    "../../pkg"
  ],
  "defaultProvider": "anthropic",
  "defaultModel": "claude-opus-4-6",
  "defaultThinkingLevel": "high"
}"""
# `pi list`, 0.87.1 and 0.73.1 alike.
LIST = """\
User packages:
  npm:@acme/tools@1.2.0
  npm:plain
  git:github.com/acme/more@v2 (filtered)
  https://github.com/acme/url
  ../../pkg
    /home/dev/pkg

Project packages:
  ../../other
    /home/dev/other
"""


@pytest.fixture
def homes(tmp_path: Path) -> InstallationResolver:
    project = tmp_path / "project"
    project.mkdir()
    return InstallationResolver(environ={"HOME": str(tmp_path)}, project=project)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = tmp_path / ".pi" / "agent"
    directory.mkdir(parents=True)
    return directory


def state(homes: InstallationResolver, **environ: str) -> tuple[str, str | None, str | None]:
    found = Auth(InstallationResolver(environ={**homes.environ, **environ}, project=homes.paths().project)).check(
        "pi", now_ms=1000
    )
    return found.status, found.method, found.where


def test_setting_the_model_changes_two_fields_only(homes: InstallationResolver, directory: Path) -> None:
    path = directory / "settings.json"
    path.write_text(SETTINGS, "utf-8")
    configs = AgentConfigs(homes)
    setting = configs.model("pi")
    assert setting is not None
    assert setting.value == "anthropic/claude-opus-4-6"
    configs.set_model("pi", "openrouter/anthropic/claude-opus-4-6")
    changed = SETTINGS.replace('"anthropic"', '"openrouter"').replace('"claude-opus', '"anthropic/claude-opus')
    assert path.read_text("utf-8") == changed
    assert configs.validate("pi") == []


def test_set_and_unset_restores_the_file(homes: InstallationResolver, directory: Path) -> None:
    path = directory / "settings.json"
    path.write_text(SETTINGS, "utf-8")
    configs = AgentConfigs(homes)
    configs.set_field("pi", "compaction.enabled", value=False)
    assert configs.get("pi")["compaction"] == {"enabled": False}
    configs.unset_field("pi", "compaction.enabled")
    assert path.read_text("utf-8") == SETTINGS


def test_project_settings_take_precedence(homes: InstallationResolver, directory: Path) -> None:
    (directory / "settings.json").write_text(SETTINGS, "utf-8")
    AgentConfigs(homes).set_field("pi", "defaultThinkingLevel", "low", scope="project")
    setting = AgentConfigs(homes).get_field("pi", "defaultThinkingLevel")
    assert setting is not None
    assert (setting.value, setting.scope) == ("low", "project")


@pytest.mark.parametrize("model", ["claude-opus-4-6", "/x", "anthropic/"])
def test_model_without_provider_is_refused(model: str, homes: InstallationResolver) -> None:
    with pytest.raises(ValidationError, match="provider/model"):
        AgentConfigs(homes).set_model("pi", model)


@pytest.mark.parametrize(
    ("settings", "model"),
    [({"defaultModel": "m"}, "m"), ({"defaultProvider": "p"}, None), ({"defaultModel": 3}, None)],
)
def test_incomplete_model_setting(
    settings: dict[str, object], model: str | None, homes: InstallationResolver, directory: Path
) -> None:
    (directory / "settings.json").write_text(json.dumps(settings), "utf-8")
    setting = AgentConfigs(homes).model("pi")
    assert (None if setting is None else setting.value) == model


def test_empty_home_is_not_authenticated(homes: InstallationResolver) -> None:
    assert state(homes) == ("unauthenticated", None, None)


# With each of these, `pi --list-models` listed models; with one of the pair alone it did not.
@pytest.mark.parametrize(
    ("environ", "method"),
    [
        ({"ANTHROPIC_API_KEY": "x"}, "api_key"),
        ({"COPILOT_GITHUB_TOKEN": "x"}, "api_key"),
        ({"ANTHROPIC_OAUTH_TOKEN": "x"}, "oauth"),
        ({"AWS_PROFILE": "x"}, "cloud"),
        ({"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y"}, "cloud"),
        ({"AWS_ACCESS_KEY_ID": "x"}, None),
        ({"GH_TOKEN": "x"}, None),
        ({"ANTHROPIC_API_KEY": ""}, None),
    ],
)
def test_credentials_in_variables(environ: dict[str, str], method: str | None, homes: InstallationResolver) -> None:
    assert state(homes, **environ)[:2] == ("unauthenticated" if method is None else "authenticated", method)


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        ({"type": "oauth", "access": "a", "refresh": "r", "expires": 1}, ("authenticated", "oauth")),
        ({"type": "oauth", "access": "a", "refresh": "", "expires": 1}, ("expired", "oauth")),
        ({"type": "oauth", "access": "a", "refresh": "", "expires": 2000.0}, ("authenticated", "oauth")),
        ({"type": "oauth", "access": "", "refresh": "r", "expires": 1}, ("unauthenticated", None)),
        ({"type": "api_key", "key": "k"}, ("authenticated", "api_key")),
        ({"type": "api_key", "key": "!op read it"}, ("authenticated", "api_key")),
        ({"type": "api_key", "key": "$OWN", "env": {"OWN": "k"}}, ("authenticated", "api_key")),
        ({"type": "api_key", "key": "$NOBODY"}, ("unauthenticated", None)),
        ({"type": "api_key"}, ("unauthenticated", None)),
        ("no object", ("unauthenticated", None)),
    ],
)
def test_credentials_in_its_file(
    stored: object, expected: tuple[str, str | None], homes: InstallationResolver, directory: Path
) -> None:
    path = directory / "auth.json"
    path.write_text(json.dumps({"anthropic": stored}), "utf-8")
    found = state(homes)
    assert found[:2] == expected
    assert found[2] in {None, f"{path} (anthropic)"}


def test_login_valid_longest_is_reported(homes: InstallationResolver, directory: Path) -> None:
    path = directory / "auth.json"
    login = {"type": "oauth", "access": "a", "refresh": ""}
    stored = {"old": {**login, "expires": 1}, "later": {**login, "expires": 2000}}
    path.write_text(json.dumps(stored), "utf-8")
    assert state(homes) == ("authenticated", "oauth", f"{path} (later)")
    path.write_text(json.dumps({**stored, "renewed": {**login, "refresh": "r", "expires": 1}}), "utf-8")
    assert state(homes) == ("authenticated", "oauth", f"{path} (renewed)")


@pytest.mark.parametrize("text", ["{", "[]"])
def test_broken_credentials_file_leaves_state_unknown(text: str, homes: InstallationResolver, directory: Path) -> None:
    (directory / "auth.json").write_text(text, "utf-8")
    assert state(homes) == ("unknown", None, None)
    assert state(homes, OPENAI_API_KEY="x") == ("authenticated", "api_key", "OPENAI_API_KEY")


# models.json, which pi reads with comments and trailing commas.
OWN = '// mine\n{"providers": {"none": {}, "own": {"apiKey": "KEY",},},}'


@pytest.mark.parametrize(
    ("key", "is_found"),
    [("sk-x", True), ("!cmd", True), ("$SET", True), ("${UNSET}", False), ("$$", True), ("", False)],
)
def test_keys_of_custom_providers(key: str, is_found: bool, homes: InstallationResolver, directory: Path) -> None:
    path = directory / "models.json"
    path.write_text(OWN.replace("KEY", key), "utf-8")
    where = f"{path} (providers.own.apiKey)"
    expected = ("authenticated", "api_key", where) if is_found else ("unauthenticated", None, None)
    assert state(homes, SET="x") == expected


def test_variable_moves_the_directory(tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    moved.mkdir()
    (moved / "auth.json").write_text('{"x": {"type": "api_key", "key": "k"}}', "utf-8")
    place = AgentPaths(environ={"HOME": str(tmp_path), "PI_CODING_AGENT_DIR": str(moved)})
    [found] = [method.find(place) for method in AUTH.methods if method.name == "api_key" and method.find is not None]
    assert found is not None
    assert found.where == f"{moved / 'auth.json'} (x)"


def test_auth_methods_match_the_capabilities() -> None:
    assert tuple(method.name for method in AUTH.methods) == ADAPTER.capabilities.auth_methods


def test_package_list_is_parsed() -> None:
    assert PLUGINS.parse is not None
    user, project = {"scope": "user"}, {"scope": "project", "path": "/home/dev/other"}
    assert PLUGINS.parse(LIST) == (
        Plugin(name="npm:@acme/tools@1.2.0", version="1.2.0", source="npm:@acme/tools@1.2.0", extra=user),
        Plugin(name="npm:plain", source="npm:plain", extra=user),
        Plugin(name="git:github.com/acme/more@v2", source="git:github.com/acme/more@v2", extra=user),
        Plugin(name="https://github.com/acme/url", source="https://github.com/acme/url", extra=user),
        Plugin(name="/home/dev/pkg", source="../../pkg", extra={**user, "path": "/home/dev/pkg"}),
        Plugin(name="/home/dev/other", source="../../other", extra=project),
    )
    assert PLUGINS.parse("No packages installed.\n") == ()


@pytest.mark.parametrize("printed", ["", "Something else\n", "\x1b[1mUser packages:\x1b[22m\n  npm:x\n"])
def test_other_output_is_not_a_package_list(printed: str) -> None:
    assert PLUGINS.parse is not None
    with pytest.raises(ValueError, match="no heading"):
        PLUGINS.parse(printed)


def test_package_update_excludes_pi_itself() -> None:
    assert PLUGINS.update is not None
    assert PLUGINS.update("npm:x") == ("update", "--extension", "npm:x")
    assert PLUGINS.update(None) == ("update", "--extensions")


def test_skills_are_found_in_own_and_shared_folders(homes: InstallationResolver, tmp_path: Path) -> None:
    own = [(folder.scope, path) for folder, path in skills(homes).where("pi") if not folder.is_shared]
    assert own == [("global", tmp_path / ".pi/agent/skills"), ("project", tmp_path / "project/.pi/skills")]
    main = tmp_path / ".agents" / "skills" / "sing" / "SKILL.md"
    main.parent.mkdir(parents=True)
    main.write_text("---\ndescription: d\n---\n", "utf-8")
    [found] = skills(homes).list("pi")
    assert (found.name, found.is_shared, found.problem) == ("sing", True, None)


def test_unsupported_parts_are_absent(homes: InstallationResolver) -> None:
    assert HOME.subagents is None
    with pytest.raises(CapabilityError):
        subagents(homes).list("pi")


# What `pi mcp add` of 1.6.0 writes.
SERVERS = """\
{
  "mcpServers": {
    "files": {
      "command": "/opt/files",
      "args": [
        "two words"
      ],
      "env": {
        "A": "$B"
      }
    },
    "docs": {
      "url": "https://example.com/mcp",
      "headers": {
        "Authorization": "Bearer ${DOCS_TOKEN}"
      },
      "enabled": false
    }
  }
}
"""


def test_mcp_servers_that_pi_added_are_listed(homes: InstallationResolver, directory: Path) -> None:
    (directory / "mcp.json").write_text(SERVERS)
    files, docs = McpServers(homes).list("pi")
    assert (files.server, files.enabled) == (
        McpServer("files", command="/opt/files", args=("two words",), env={"A": "$B"}), True,
    )  # fmt: skip
    headers = {"Authorization": "Bearer ${DOCS_TOKEN}"}
    expected = McpServer("docs", "streamable-http", url="https://example.com/mcp", headers=headers)
    assert (docs.server, docs.enabled) == (expected, False)


def test_added_mcp_server_has_the_fields_that_pi_writes(homes: InstallationResolver, directory: Path) -> None:
    McpServers(homes).add("pi", McpServer("x", command="/bin/x"))
    assert json.loads((directory / "mcp.json").read_text()) == {
        "mcpServers": {"x": {"type": "stdio", "command": "/bin/x"}}
    }
    with pytest.raises(AgentMuxError, match="streamable HTTP only"):
        McpServers(homes).add("pi", McpServer("y", "sse", url="http://x.example/"))


@pytest.mark.parametrize(
    ("trust", "default", "is_trusted"),
    [
        ({}, None, False),
        ({}, "always", True),
        ({"": True}, None, True),
        ({"": True, "project": False}, "always", False),
        ({"": False, "project": True}, None, True),
        ({"project": None}, "never", False),
    ],
)
def test_mcp_servers_of_a_project_need_trust(
    homes: InstallationResolver, directory: Path, trust: dict[str, object], default: str | None, is_trusted: bool
) -> None:
    root = directory.parents[1]
    decisions = {str((root / path).resolve()): decision for path, decision in trust.items()}
    (directory / "trust.json").write_text(json.dumps(decisions))
    (directory / "settings.json").write_text(json.dumps({} if default is None else {"defaultProjectTrust": default}))
    McpServers(homes).add("pi", McpServer("x", command="/bin/x"), scope="project")
    [stored] = McpServers(homes).list("pi")
    assert stored.scope == "project"
    expected = None if is_trusted else "pi ignores it because the project is not trusted: start pi in it and use /trust"
    assert stored.problem == expected
