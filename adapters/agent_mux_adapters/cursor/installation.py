"""What Cursor's CLI keeps on a machine.

As documented (cursor.com/docs/cli, 2026), because the CLI cannot be run without an account. There is no model to set:
the CLI itself manages `model` in its configuration, as a table of model data. Cursor keeps the approval of MCP servers
for a project elsewhere.
"""

import json
import sys
from pathlib import Path
from typing import Any

from agent_mux.sdk.config import AgentConfig, AgentPaths, ConfigField, ConfigFile, Scope
from agent_mux.sdk.installation import (
    AgentAuth,
    AgentInstallation,
    AuthMethod,
    DefinitionFolder,
    DefinitionFolders,
    FoundCredentials,
    McpFiles,
    SetupStep,
)
from agent_mux.sdk.options import McpServer
from agent_mux_adapters._dialects.mcp_servers import read_server, write_server
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.cursor.hooks import HOOKS


def _base(place: AgentPaths) -> Path | None:
    """Return the moved base directory for configurations; None when it was not moved."""
    named = place.environ.get("XDG_CONFIG_HOME")
    return Path(named) if named else None


def _settings(place: AgentPaths) -> Path:
    base = _base(place)
    named = place.environ.get("CURSOR_CONFIG_DIR")
    if place.directory is None and not named and base is not None:
        return base / "cursor" / "cli-config.json"
    return place.home_of("CURSOR_CONFIG_DIR", ".cursor") / "cli-config.json"


CONFIG = AgentConfig(
    files=(
        ConfigFile(scope="global", format="json", path=_settings),
        ConfigFile(scope="project", format="json", path=lambda place: place.project_file(".cursor", "cli.json")),
    ),
    fields={
        "permissions.allow": ConfigField(kind="list", meaning="tool uses that need no approval, such as Shell(git)"),
        "permissions.deny": ConfigField(kind="list", meaning="tool uses that are refused, whatever is allowed"),
        "approvalMode": ConfigField(
            kind="string", meaning="what runs without approval, such as allowlist or unrestricted"
        ),
        "sandbox.mode": ConfigField(
            kind="string", meaning="whether commands are sandboxed", choices=("enabled", "disabled")
        ),
        "sandbox.networkAccess": ConfigField(kind="string", meaning="what sandboxed commands may reach"),
        "network.useHttp1ForAgent": ConfigField(kind="boolean", meaning="use HTTP/1.1, for proxies without HTTP/2"),
        "attribution.attributeCommitsToAgent": ConfigField(kind="boolean", meaning="name Cursor as author of commits"),
        "attribution.attributePRsToAgent": ConfigField(
            kind="boolean", meaning="name Cursor as author of pull requests"
        ),
        "editor.vimMode": ConfigField(kind="boolean", meaning="use Vim key bindings"),
        "maxMode": ConfigField(kind="boolean", meaning="use the largest context that a model offers"),
        "notifications": ConfigField(kind="boolean", meaning="notify when it is done or needs input"),
        "version": ConfigField(kind="number", meaning="the version of the file's schema"),
    },
)


def _tokens_file(place: AgentPaths) -> Path:
    return (_base(place) or place.home / ".config") / "cursor" / "auth.json"


def _login(place: AgentPaths) -> FoundCredentials | None:
    path = _tokens_file(place)
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    return FoundCredentials(where=str(path)) if text(mapping(found).get("accessToken")) else None


def _elsewhere(place: AgentPaths) -> str | None:
    """Return where the tokens may be when the settings name a logged-in account."""
    if sys.platform == "darwin":
        return "the keychain of macOS"
    try:
        settings = json.loads(_settings(place).read_bytes())
    except (OSError, ValueError):
        return None
    return "the keyring of the system" if mapping(mapping(settings).get("authInfo")) else None


AUTH = AgentAuth(
    methods=(
        AuthMethod(name="api_key", display_name="an API key", variables=("CURSOR_API_KEY",)),
        AuthMethod(name="auth_token", display_name="a token", variables=("CURSOR_AUTH_TOKEN",)),
        AuthMethod(name="oauth", display_name="a Cursor account", find=_login),
    ),
    steps=(
        SetupStep(text="Log in with a Cursor account, in a browser.", command=("login",)),
        SetupStep(text="Or set an API key.", variable="CURSOR_API_KEY"),
    ),
    elsewhere=_elsewhere,
)


def _write_server(server: McpServer) -> dict[str, Any]:
    """Return the native entry of a server. A remote one is documented without a type, which Cursor detects."""
    written = write_server(server)
    return {name: written[name] for name in ("url", "headers")} if written["type"] == "http" else written


MCP = McpFiles(
    files=(
        ConfigFile(
            scope="global", format="json", path=lambda place: place.home / ".cursor" / "mcp.json",
            table=lambda _: ("mcpServers",),
        ),
        ConfigFile(
            scope="project", format="json", path=lambda place: place.project_file(".cursor", "mcp.json"),
            table=lambda _: ("mcpServers",),
        ),
    ),
    read=read_server,
    write=_write_server,
)  # fmt: skip


def _folder(scope: Scope, *names: str, is_shared: bool = False) -> DefinitionFolder:
    def path(place: AgentPaths) -> Path | None:
        return place.home.joinpath(*names) if scope == "global" else place.project_file(*names)

    return DefinitionFolder(scope=scope, path=path, is_shared=is_shared)


def _folders(kind: str) -> tuple[DefinitionFolder, ...]:
    """Return Cursor's own directories, and those of two other agents that it also reads."""
    scopes: tuple[Scope, ...] = ("global", "project")
    own = (_folder(scope, ".cursor", kind) for scope in scopes)
    others = (_folder(scope, name, kind, is_shared=True) for name in (".claude", ".codex") for scope in scopes)
    return (*own, *others)


HOME = AgentInstallation(
    config=CONFIG,
    auth=AUTH,
    mcp=MCP,
    skills=DefinitionFolders(
        folders=(*_folders("skills"), _folder("project", ".agents", "skills", is_shared=True)),
        layout="folder",
        file="SKILL.md",
    ),
    subagents=DefinitionFolders(folders=_folders("agents"), layout="file", file=".md", required=("description",)),
    host_variables=("CURSOR_AGENT",),
    hooks=HOOKS,
    update=("update",),
)
