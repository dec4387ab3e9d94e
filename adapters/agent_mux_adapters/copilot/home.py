"""What Copilot keeps on a machine. Measured with 1.0.102; tests/e2e/test_live_home.py asks the CLI itself.

MCP servers of a project count when its folder, or one above it, is in `trustedFolders` of Copilot's `config.json`.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_mux.config.editing import read_document
from agent_mux.config.files import AgentConfig, ConfigFile, Field, ModelField
from agent_mux.definitions.folders import DefinitionFolders, Folder
from agent_mux.home import AgentHome
from agent_mux.mcp.files import McpFiles
from agent_mux.place import Place
from agent_mux.plugins.commands import Plugin, PluginCommands
from agent_mux_adapters._dialects.mcp_servers import read_server
from agent_mux_adapters._dialects.tolerant import rows, text
from agent_mux_adapters.copilot.credentials import AUTH, directory
from agent_mux_adapters.copilot.hooks import HOOKS
from agent_mux_adapters.copilot.mcp import mcp_entry


def _settings(place: Place) -> Path:
    return directory(place) / "settings.json"


def _of_project(name: str) -> Any:
    return lambda place: place.project_file(".github", "copilot", name)


CONFIG = AgentConfig(
    files=(
        ConfigFile(scope="global", format="json", path=_settings),
        ConfigFile(scope="project", format="json", path=_of_project("settings.json")),
        ConfigFile(scope="local", format="json", path=_of_project("settings.local.json")),
    ),
    fields={
        "model": Field(kind="string", meaning="the model, of those that GitHub offers"),
        "effortLevel": Field(kind="string", meaning="how much the model thinks, such as low or high"),
        "contextTier": Field(kind="string", meaning="how large the context is", choices=("default", "long_context")),
        "stream": Field(kind="boolean", meaning="show answers as they come"),
        "allowedUrls": Field(kind="list", meaning="addresses and domains that need no approval"),
        "deniedUrls": Field(kind="list", meaning="addresses and domains that are refused"),
        "defaultMode": Field(
            kind="string",
            meaning="the mode in which interactive sessions start",
            choices=("interactive", "plan", "autopilot"),
        ),
        "defaultPermissionMode": Field(
            kind="string",
            meaning="what interactive sessions ask about",
            choices=("manual", "assisted", "allow-all"),
        ),
        "disabledMcpServers": Field(kind="list", meaning="MCP servers that are not started, by name"),
        "disabledSkills": Field(kind="list", meaning="skills that are not used, by name"),
        "enabledPlugins": Field(kind="table", meaning="plugins as name@marketplace, true where they are on"),
        "extraKnownMarketplaces": Field(kind="table", meaning="marketplaces of plugins, by name"),
        "hooks": Field(kind="table", meaning="commands that are run at certain points"),
        "disableAllHooks": Field(kind="boolean", meaning="run no hooks"),
        "includeCoAuthoredBy": Field(kind="boolean", meaning="name Copilot as co-author of commits"),
        "mergeStrategy": Field(kind="string", meaning="how branches are brought together", choices=("rebase", "merge")),
        "memory": Field(kind="boolean", meaning="remember facts from one session to the next"),
        "experimental": Field(kind="boolean", meaning="have features that are not finished"),
        "storeTokenPlaintext": Field(kind="boolean", meaning="keep the token in a file, not in the keyring"),
        "autoUpdate": Field(kind="boolean", meaning="download newer versions"),
    },
    model=ModelField(read=lambda data: text(data.get("model")) or None, write=lambda model, _: {("model",): model}),
)


def _servers_of_project(place: Place) -> Path | None:
    """`.mcp.json`; only where that is not there, `.github/mcp.json`."""
    first, second = place.project_file(".mcp.json"), place.project_file(".github", "mcp.json")
    if first is None or second is None:
        return None
    return second if second.is_file() and not first.is_file() else first


def _switched_off(place: Place) -> frozenset[str]:
    """What `copilot mcp disable` writes down: into the settings, not to the server."""
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
        ConfigFile(scope="project", format="json", path=_servers_of_project, table=lambda _: ("mcpServers",)),
    ),
    read=read_server,
    write=mcp_entry,
    is_switched_off=lambda place, name: name in _switched_off(place),
)  # fmt: skip


def _shared(*names: str) -> Folder:
    return Folder(scope="project", path=lambda place: place.project_file(*names), is_shared=True)


def _own(kind: str) -> tuple[Folder, ...]:
    return (
        Folder(scope="global", path=lambda place: directory(place) / kind),
        Folder(scope="project", path=lambda place: place.project_file(".github", kind)),
    )


SKILLS = DefinitionFolders(
    folders=(
        *_own("skills"),
        Folder(scope="global", path=lambda place: place.home / ".agents" / "skills", is_shared=True),
        _shared(".agents", "skills"),
        _shared(".claude", "skills"),
    ),
    layout="folder",
    file="SKILL.md",
    required=(),  # the folder is the name, and the first words are the description
)
SUBAGENTS = DefinitionFolders(
    folders=(*_own("agents"), _shared(".claude", "agents")), layout="file", file=".md", required=("description",)
)


def _plugins(printed: str) -> tuple[Plugin, ...]:
    return tuple(_plugin(one) for one in rows(json.loads(printed)) if not _is_only_offered(one))


def _is_only_offered(one: Mapping[str, Any]) -> bool:
    """All plugins of a marketplace in a local folder are listed: being enabled is being installed there."""
    return one.get("source") == "live" and one.get("enabled") is not True


def _plugin(one: Mapping[str, Any]) -> Plugin:
    market = text(one.get("marketplace"))
    return Plugin(
        name=f"{text(one.get('name'))}@{market}" if market else text(one.get("name")),
        version=text(one.get("version")) or None,
        enabled=one.get("enabled") is True,
        source=text(one.get("installedFrom")) or market or text(one.get("source")) or None,
    )


PLUGINS = PluginCommands(
    list=("plugin", "list", "--json"),
    parse=_plugins,
    install=lambda name: ("plugin", "install", name),
    uninstall=lambda name: ("plugin", "uninstall", name),
    update=lambda name: ("plugin", "update", "--all" if name is None else name),
    environment={"COPILOT_AUTO_UPDATE": "false"},
)

HOME = AgentHome(
    config=CONFIG,
    auth=AUTH,
    mcp=MCP,
    skills=SKILLS,
    subagents=SUBAGENTS,
    plugins=PLUGINS,
    host_variables=("COPILOT_CLI", "COPILOT_AGENT_SESSION_ID"),
    hooks=HOOKS,
    update=("update",),
)
