"""Installation of Copilot: settings, MCP servers, skills, sub-agents and plugins.

Measured with 1.0.102; tests/e2e/test_live_home.py compares it with the CLI. MCP servers of a project are effective when
its folder, or one above it, is in `trustedFolders` of Copilot's `config.json`.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_mux.sdk.config import AgentConfig, AgentPaths, ConfigField, ConfigFile, ModelField, read_document
from agent_mux.sdk.installation import (
    AgentInstallation,
    ConfigDirectory,
    DefinitionFolder,
    DefinitionFolders,
    McpFiles,
    Plugin,
    PluginCommands,
)
from agent_mux_adapters._dialects.mcp_servers import read_server
from agent_mux_adapters._dialects.tolerant import rows, text
from agent_mux_adapters.copilot.argv import mcp_entry
from agent_mux_adapters.copilot.credentials import AUTH, directory
from agent_mux_adapters.copilot.hooks import HOOKS
from agent_mux_adapters.copilot.session_changes import SESSIONS


def _settings_file(place: AgentPaths) -> Path:
    return directory(place) / "settings.json"


def _project_file(name: str) -> Any:
    return lambda place: place.project_file(".github", "copilot", name)


CONFIG = AgentConfig(
    files=(
        ConfigFile(scope="global", format="json", path=_settings_file),
        ConfigFile(scope="project", format="json", path=_project_file("settings.json")),
        ConfigFile(scope="local", format="json", path=_project_file("settings.local.json")),
    ),
    fields={
        "model": ConfigField(kind="string", meaning="the model, one of those that GitHub offers"),
        "effortLevel": ConfigField(kind="string", meaning="thinking effort, such as low or high"),
        "contextTier": ConfigField(
            kind="string", meaning="size of the context window", choices=("default", "long_context")
        ),
        "stream": ConfigField(kind="boolean", meaning="stream answers"),
        "allowedUrls": ConfigField(kind="list", meaning="URLs and domains allowed without approval"),
        "deniedUrls": ConfigField(kind="list", meaning="URLs and domains that are denied"),
        "defaultMode": ConfigField(
            kind="string",
            meaning="initial mode of interactive sessions",
            choices=("interactive", "plan", "autopilot"),
        ),
        "defaultPermissionMode": ConfigField(
            kind="string",
            meaning="permission mode of interactive sessions",
            choices=("manual", "assisted", "allow-all"),
        ),
        "disabledMcpServers": ConfigField(kind="list", meaning="names of disabled MCP servers"),
        "disabledSkills": ConfigField(kind="list", meaning="names of disabled skills"),
        "enabledPlugins": ConfigField(kind="table", meaning="plugins as name@marketplace; true enables one"),
        "extraKnownMarketplaces": ConfigField(kind="table", meaning="additional plugin marketplaces by name"),
        "hooks": ConfigField(kind="table", meaning="hook commands by event"),
        "disableAllHooks": ConfigField(kind="boolean", meaning="disable all hooks"),
        "includeCoAuthoredBy": ConfigField(kind="boolean", meaning="add Copilot as co-author of commits"),
        "mergeStrategy": ConfigField(kind="string", meaning="how branches are merged", choices=("rebase", "merge")),
        "memory": ConfigField(kind="boolean", meaning="keep memories across sessions"),
        "experimental": ConfigField(kind="boolean", meaning="enable experimental features"),
        "storeTokenPlaintext": ConfigField(kind="boolean", meaning="store the token in a file instead of the keyring"),
        "autoUpdate": ConfigField(kind="boolean", meaning="download updates automatically"),
    },
    model=ModelField(read=lambda data: text(data.get("model")) or None, write=lambda model, _: {("model",): model}),
)


def _project_mcp_file(place: AgentPaths) -> Path | None:
    """Return `.mcp.json`, or `.github/mcp.json` if only that exists. None outside of projects."""
    first, second = place.project_file(".mcp.json"), place.project_file(".github", "mcp.json")
    if first is None or second is None:
        return None
    return second if second.is_file() and not first.is_file() else first


def _disabled_servers(place: AgentPaths) -> frozenset[str]:
    """Return the servers that `copilot mcp disable` has disabled, which it records in the settings."""
    names: set[str] = set()
    for file in CONFIG.files:
        path = file.path(place)
        document = None if path is None else read_document(path, file.format)
        listed = [] if document is None else document.data().get("disabledMcpServers")
        names |= {name for name in listed if isinstance(name, str)} if isinstance(listed, list) else set()
    return frozenset(names)


MCP = McpFiles(
    files=(
        ConfigFile(
            scope="global", format="json", path=lambda place: directory(place) / "mcp-config.json",
            table=lambda _: ("mcpServers",),
        ),
        ConfigFile(scope="project", format="json", path=_project_mcp_file, table=lambda _: ("mcpServers",)),
    ),
    read=read_server,
    write=mcp_entry,
    is_switched_off=lambda place, name: name in _disabled_servers(place),
)  # fmt: skip


def _shared_folder(*names: str) -> DefinitionFolder:
    return DefinitionFolder(scope="project", path=lambda place: place.project_file(*names), is_shared=True)


def _own_folders(kind: str) -> tuple[DefinitionFolder, ...]:
    return (
        DefinitionFolder(scope="global", path=lambda place: directory(place) / kind),
        DefinitionFolder(scope="project", path=lambda place: place.project_file(".github", kind)),
    )


SKILLS = DefinitionFolders(
    folders=(
        *_own_folders("skills"),
        DefinitionFolder(scope="global", path=lambda place: place.home / ".agents" / "skills", is_shared=True),
        _shared_folder(".agents", "skills"),
        _shared_folder(".claude", "skills"),
    ),
    layout="folder",
    file="SKILL.md",
    required=(),  # the name defaults to the folder, the description to the first words
)
SUBAGENTS = DefinitionFolders(
    folders=(*_own_folders("agents"), _shared_folder(".claude", "agents")),
    layout="file",
    file=".md",
    required=("description",),
)


def _plugins(printed: str) -> tuple[Plugin, ...]:
    return tuple(_plugin(entry) for entry in rows(json.loads(printed)) if not _is_only_offered(entry))


def _is_only_offered(entry: Mapping[str, Any]) -> bool:
    """Return whether a listed plugin is not installed.

    Copilot lists all plugins of a marketplace in a local folder. Of those, the enabled ones are installed.
    """
    return entry.get("source") == "live" and entry.get("enabled") is not True


def _plugin(entry: Mapping[str, Any]) -> Plugin:
    market = text(entry.get("marketplace"))
    return Plugin(
        name=f"{text(entry.get('name'))}@{market}" if market else text(entry.get("name")),
        version=text(entry.get("version")) or None,
        enabled=entry.get("enabled") is True,
        source=text(entry.get("installedFrom")) or market or text(entry.get("source")) or None,
    )


PLUGINS = PluginCommands(
    list=("plugin", "list", "--json"),
    parse=_plugins,
    install=lambda name: ("plugin", "install", name),
    uninstall=lambda name: ("plugin", "uninstall", name),
    update=lambda name: ("plugin", "update", "--all" if name is None else name),
    environment={"COPILOT_AUTO_UPDATE": "false"},
)

HOME = AgentInstallation(
    config=CONFIG,
    auth=AUTH,
    mcp=MCP,
    skills=SKILLS,
    subagents=SUBAGENTS,
    plugins=PLUGINS,
    config_directory=ConfigDirectory(
        variable="COPILOT_HOME",
        path=directory,
        credentials=("config.json",),
        settings=("settings.json", "mcp-config.json"),
    ),
    host_variables=("COPILOT_CLI", "COPILOT_AGENT_SESSION_ID"),
    hooks=HOOKS,
    update=("update",),
    sessions=SESSIONS,
)
