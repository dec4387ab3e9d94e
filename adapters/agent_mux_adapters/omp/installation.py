"""What omp keeps on a machine: settings, MCP servers, skills, sub-agents, plugins.

Measured with 18.2.3; tests/e2e/test_live_home.py checks it against the CLI.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agent_mux.sdk.config import AgentConfig, AgentPaths, ConfigField, ConfigFile, ModelField, Scope
from agent_mux.sdk.installation import (
    AgentInstallation,
    ConfigDirectory,
    DefinitionFolder,
    DefinitionFolders,
    McpFiles,
    Plugin,
    PluginCommands,
)
from agent_mux_adapters._dialects.mcp_servers import read_server, write_server
from agent_mux_adapters._dialects.pi.installation import skill_folders
from agent_mux_adapters._dialects.tolerant import mapping, rows, text
from agent_mux_adapters.omp.credentials import AUTH, MODELS
from agent_mux_adapters.omp.paths import SETTINGS_FILES, directory, movable_directory, subagent_directory
from agent_mux_adapters.omp.session_changes import SESSIONS

SHARED_SKILLS: tuple[tuple[Scope, str], ...] = (
    ("global", ".agent"),
    ("global", ".agents"),
    ("project", ".agent"),
    ("project", ".agents"),
    ("project", ".claude"),
)
ONE_BY_ONE = ("all", "one-at-a-time")


def _read_model(data: Mapping[str, Any]) -> str | None:
    return text(mapping(data.get("modelRoles")).get("default")) or None


CONFIG = AgentConfig(
    files=SETTINGS_FILES,
    fields={
        "modelRoles": ConfigField(kind="table", meaning="models by role: default, smol, slow, plan, task"),
        "modelRoles.default": ConfigField(kind="string", meaning="model of new sessions"),
        "defaultThinkingLevel": ConfigField(
            kind="string",
            meaning="thinking level of new sessions",
            choices=("minimal", "low", "medium", "high", "xhigh", "max", "auto"),
        ),
        "enabledModels": ConfigField(kind="list", meaning="patterns of the models to choose from"),
        "disabledProviders": ConfigField(kind="list", meaning="disabled providers of models and settings"),
        "temperature": ConfigField(kind="number", meaning="sampling temperature; -1 for the provider's default"),
        "tools.approvalMode": ConfigField(
            kind="string", meaning="which tool calls need approval", choices=("always-ask", "write", "yolo")
        ),
        "tools.approval": ConfigField(kind="table", meaning="approval per tool: allow, deny or prompt"),
        "bash.patterns": ConfigField(kind="list", meaning="ordered rules for approving commands"),
        "edit.mode": ConfigField(
            kind="string",
            meaning="format of the edit tool",
            choices=("apply_patch", "hashline", "patch", "replace", "sloppy"),
        ),
        "extensions": ConfigField(kind="list", meaning="additional extension files or folders"),
        "mcp.enableProjectConfig": ConfigField(kind="boolean", meaning="enable the MCP servers of projects"),
        "skills.enabled": ConfigField(kind="boolean", meaning="enable skills"),
        "skills.customDirectories": ConfigField(kind="list", meaning="additional skill folders"),
        "task.maxConcurrency": ConfigField(kind="number", meaning="maximum number of concurrent sub-agents"),
        "task.disabledAgents": ConfigField(kind="list", meaning="disabled sub-agents"),
        "compaction.enabled": ConfigField(kind="boolean", meaning="compact the context when it is full"),
        "retry.enabled": ConfigField(kind="boolean", meaning="retry failed model calls"),
        "retry.maxRetries": ConfigField(kind="number", meaning="maximum number of retries"),
        "steeringMode": ConfigField(
            kind="string",
            meaning="whether all queued steering messages are sent together or one at a time",
            choices=ONE_BY_ONE,
        ),
        "followUpMode": ConfigField(
            kind="string",
            meaning="whether all queued follow-up messages are sent together or one at a time",
            choices=ONE_BY_ONE,
        ),
        "shellPath": ConfigField(kind="string", meaning="shell for commands"),
        "memory.backend": ConfigField(
            kind="string",
            meaning="backend for memory across sessions",
            choices=("off", "local", "hindsight", "mnemopi", "sharpshooter"),
        ),
    },
    model=ModelField(read=_read_model, write=lambda model, _: {("modelRoles", "default"): model}),
)


def _servers(
    scope: Scope, path: Callable[[AgentPaths], Path | None], *, is_optional: bool = False, is_shared: bool = False
) -> ConfigFile:
    return ConfigFile(
        scope=scope, format="json", path=path, table=lambda _: ("mcpServers",), is_optional=is_optional,
        is_shared=is_shared,
    )  # fmt: skip


def _is_enabled(native: Mapping[str, Any]) -> bool:
    enabled = native.get("enabled")
    return enabled is not False and str(enabled).lower() not in {"false", "0"}


def _disabled_servers(place: AgentPaths) -> frozenset[str]:
    """Return the names in `disabledServers`, where `/mcp disable` lists servers from files of other agents."""
    from agent_mux.sdk.config import read_document  # noqa: PLC0415  # rarely needed

    document = read_document(directory(place) / "mcp.json", "json")
    listed = None if document is None else document.data().get("disabledServers")
    return frozenset(map(str, listed)) if isinstance(listed, list) else frozenset()


MCP = McpFiles(
    files=(
        # Files that other agents use as well; omp also reads those agents' own files, but never writes them.
        _servers("project", lambda place: place.project_file(".mcp.json"), is_shared=True),
        _servers("project", lambda place: place.project_file("mcp.json"), is_shared=True),
        _servers("global", lambda place: directory(place) / ".mcp.json", is_optional=True),
        _servers("global", lambda place: directory(place) / "mcp.json"),
        _servers("project", lambda place: place.project_file(".omp", ".mcp.json"), is_optional=True),
        _servers("project", lambda place: place.project_file(".omp", "mcp.json")),
    ),
    read=read_server,
    write=write_server,
    is_enabled=_is_enabled,
    is_switched_off=lambda place, name: name in _disabled_servers(place),
)


def _plugins(printed: str) -> tuple[Plugin, ...]:
    listed = mapping(json.loads(printed))
    packages = (
        Plugin(
            name=text(entry.get("name")),
            version=text(entry.get("version")) or None,
            enabled=entry.get("enabled") is True,
            source=text(entry.get("path")) or None,
            description=text(mapping(entry.get("manifest")).get("description")) or None,
        )
        for entry in rows(listed.get("npm"))
    )
    return (*packages, *map(_from_market, rows(listed.get("marketplace"))))


def _from_market(entry: Mapping[str, Any]) -> Plugin:
    name, entries = text(entry.get("id")), rows(entry.get("entries"))
    first = entries[0] if entries else {}
    return Plugin(
        name=name,
        version=text(first.get("version")) or None,
        enabled=first.get("enabled") is not False,
        source=name.rpartition("@")[2] or None,
        extra={"scope": text(entry.get("scope"))},
    )


def _update(name: str | None) -> tuple[str, ...]:
    if name is None:
        return ("plugin", "upgrade")
    if "@" not in name[1:]:
        raise ValueError("a marketplace plugin (name@marketplace); reinstall other plugins to update them")
    return ("plugin", "upgrade", name)


PLUGINS = PluginCommands(
    list=("plugin", "list", "--json"),
    parse=_plugins,
    install=lambda name: ("plugin", "install", name),
    uninstall=lambda name: ("plugin", "uninstall", name),
    update=_update,
    # No search: `plugin discover` does not print the marketplace of a plugin, and a bare name would install the npm
    # package of that name.
    environment={"FORCE_COLOR": "0"},
)

HOME = AgentInstallation(
    config=CONFIG,
    auth=AUTH,
    mcp=MCP,
    skills=skill_folders(directory, ".omp", SHARED_SKILLS),
    subagents=DefinitionFolders(
        folders=(
            DefinitionFolder(scope="global", path=lambda place: subagent_directory(place) / "agents"),
            DefinitionFolder(scope="project", path=lambda place: place.project_file(".omp", "agents")),
        ),
        layout="file",
        file=".md",
    ),
    plugins=PLUGINS,
    host_variables=("OMPCODE",),
    imitates=("CLAUDECODE",),
    update=("update",),
    config_directory=ConfigDirectory(
        variable="PI_CODING_AGENT_DIR",
        path=movable_directory,
        credentials=("agent.db", ".env"),
        settings=("config.yml", "config.yaml", *MODELS),
    ),
    sessions=SESSIONS,
)
