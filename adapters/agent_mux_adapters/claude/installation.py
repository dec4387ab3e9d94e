"""What Claude Code keeps on a machine. Measured with 2.1.330; tests/e2e/test_live_home.py checks it with the CLI."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_mux.sdk.config import AgentConfig, AgentPaths, ConfigField, ConfigFile, ModelField
from agent_mux.sdk.installation import (
    AgentAuth,
    AgentInstallation,
    AuthMethod,
    ConfigDirectory,
    DefinitionFolder,
    DefinitionFolders,
    FoundCredentials,
    McpFiles,
    Plugin,
    PluginCommands,
    SetupStep,
)
from agent_mux_adapters._dialects.mcp_servers import read_server, write_server
from agent_mux_adapters._dialects.tolerant import rows, text
from agent_mux_adapters.claude.hooks import HOOKS
from agent_mux_adapters.claude.session_changes import SESSIONS

LATER = 5 * 60 * 1000  # ms; the CLI renews a token that expires sooner


def _directory(place: AgentPaths) -> Path:
    return place.home_of("CLAUDE_CONFIG_DIR", ".claude")


def _state_file(place: AgentPaths) -> Path:
    """Return the state file: beside the configuration directory, or inside one that was moved."""
    moved = place.environ.get("CLAUDE_CONFIG_DIR")
    return (Path(moved) if moved else place.home) / ".claude.json"


def _settings(place: AgentPaths) -> Path:
    return _directory(place) / "settings.json"


CONFIG = AgentConfig(
    files=(
        ConfigFile(scope="global", format="json", path=_settings),
        ConfigFile(scope="project", format="json", path=lambda place: place.project_file(".claude", "settings.json")),
        ConfigFile(
            scope="local", format="json", path=lambda place: place.project_file(".claude", "settings.local.json")
        ),
    ),
    fields={
        "model": ConfigField(kind="string", meaning="the model, or an alias such as sonnet or opus"),
        "permissions.allow": ConfigField(
            kind="list", meaning="tool uses that need no approval, such as Bash(git diff:*)"
        ),
        "permissions.ask": ConfigField(kind="list", meaning="tool uses that always need approval"),
        "permissions.deny": ConfigField(kind="list", meaning="tool uses that are refused"),
        "permissions.defaultMode": ConfigField(
            kind="string",
            meaning="the permission mode of new sessions",
            choices=("default", "acceptEdits", "plan", "bypassPermissions", "dontAsk", "auto"),
        ),
        "permissions.additionalDirectories": ConfigField(
            kind="list", meaning="directories beside the working directory"
        ),
        "env": ConfigField(kind="table", meaning="environment variables of every session"),
        "apiKeyHelper": ConfigField(kind="string", meaning="a script that prints the API key"),
        "hooks": ConfigField(kind="table", meaning="commands that are run at certain points"),
        "outputStyle": ConfigField(kind="string", meaning="the style of the answers"),
        "cleanupPeriodDays": ConfigField(kind="number", meaning="days after which unused sessions are removed"),
        "includeCoAuthoredBy": ConfigField(kind="boolean", meaning="name Claude as co-author of commits"),
        "enableAllProjectMcpServers": ConfigField(kind="boolean", meaning="approve all servers of .mcp.json"),
        "enabledPlugins": ConfigField(kind="table", meaning="plugins by name, true where they are on"),
    },
    model=ModelField(
        read=lambda data: text(data.get("model")) or text(_env(data).get("ANTHROPIC_MODEL")) or None,
        write=lambda model, _: {("model",): model},
    ),
)


def _env(data: Mapping[str, Any]) -> Mapping[str, Any]:
    env = data.get("env")
    return env if isinstance(env, dict) else {}


def _helper(place: AgentPaths) -> FoundCredentials | None:
    path = _settings(place)
    settings = _read(path)
    if settings.get("apiKeyHelper"):
        return FoundCredentials(where=f"{path} (apiKeyHelper)")
    named = next((name for name in _KEYS if _env(settings).get(name)), None)
    return FoundCredentials(where=f"{path} (env.{named})") if named else None


def _login(place: AgentPaths) -> FoundCredentials | None:
    path = _directory(place) / ".credentials.json"
    tokens = _read(path).get("claudeAiOauth")
    if not isinstance(tokens, dict) or not tokens.get("accessToken"):
        return None
    expires = tokens.get("expiresAt")
    renews = bool(tokens.get("refreshToken"))
    return FoundCredentials(where=str(path), expires_at=expires if isinstance(expires, int) and not renews else None)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    return found if isinstance(found, dict) else {}


_KEYS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
AUTH = AgentAuth(
    methods=(
        AuthMethod(
            name="cloud",
            display_name="a cloud provider",
            variables=("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"),
        ),
        AuthMethod(name="auth_token", display_name="a token", variables=("ANTHROPIC_AUTH_TOKEN",)),
        AuthMethod(name="api_key", display_name="an API key", variables=("ANTHROPIC_API_KEY",), find=_helper),
        AuthMethod(name="oauth", display_name="a Claude account", variables=("CLAUDE_CODE_OAUTH_TOKEN",), find=_login),
    ),
    steps=(
        SetupStep(text="Log in with a Claude account, in a browser.", command=("auth", "login")),
        SetupStep(text="Make a token that lasts, for machines without a browser.", command=("setup-token",)),
        SetupStep(text="Or set an API key.", variable="ANTHROPIC_API_KEY"),
    ),
    elsewhere=lambda _: "the keychain of macOS" if sys.platform == "darwin" else None,
)

MCP = McpFiles(
    files=(
        ConfigFile(scope="global", format="json", path=_state_file, table=lambda _: ("mcpServers",)),
        ConfigFile(
            scope="project", format="json", path=lambda place: place.project_file(".mcp.json"),
            table=lambda _: ("mcpServers",),
        ),
        ConfigFile(
            scope="local",
            format="json",
            path=lambda place: None if place.project is None else _state_file(place),
            table=lambda place: ("projects", str(place.project), "mcpServers"),
        ),
    ),
    read=read_server,
    write=write_server,
)  # fmt: skip


def _folders(kind: str) -> tuple[DefinitionFolder, ...]:
    return (
        DefinitionFolder(scope="global", path=lambda place: _directory(place) / kind),
        DefinitionFolder(scope="project", path=lambda place: place.project_file(".claude", kind)),
    )


def _plugins(printed: str) -> tuple[Plugin, ...]:
    listed = json.loads(printed)
    return tuple(
        Plugin(
            name=text(one.get("id")),
            version=text(one.get("version")) or None,
            enabled=one.get("enabled") is True,
            source=text(one.get("readFromFolder")) or text(one.get("id")).partition("@")[2] or None,
        )
        for one in rows(listed)
    )


def _available(printed: str) -> tuple[Plugin, ...]:
    listed = json.loads(printed)
    return tuple(
        Plugin(
            name=text(one.get("pluginId")),
            source=text(one.get("marketplaceName")) or None,
            description=text(one.get("description")) or None,
        )
        for one in rows(listed.get("available") if isinstance(listed, dict) else None)
    )


def _update(name: str | None) -> tuple[str, ...]:
    if name is None:
        raise ValueError("pass the name of a plugin: this agent updates them one by one")
    return ("plugin", "update", name)


PLUGINS = PluginCommands(
    list=("plugin", "list", "--json"),
    parse=_plugins,
    install=lambda name: ("plugin", "install", name),
    uninstall=lambda name: ("plugin", "uninstall", name),
    update=_update,
    search=lambda _: ("plugin", "list", "--available", "--json"),
    parse_search=_available,
    search_lists_all=True,
)

HOME = AgentInstallation(
    config=CONFIG,
    auth=AUTH,
    mcp=MCP,
    skills=DefinitionFolders(folders=_folders("skills"), layout="folder", file="SKILL.md", required=("description",)),
    subagents=DefinitionFolders(folders=_folders("agents"), layout="file", file=".md"),
    plugins=PLUGINS,
    sessions=SESSIONS,
    config_directory=ConfigDirectory(
        variable="CLAUDE_CONFIG_DIR",
        path=_directory,
        credentials=(".credentials.json",),
        settings=("settings.json",),
    ),
    host_variables=("CLAUDECODE",),
    hooks=HOOKS,
    update=("update",),
)
