"""The installation of OpenClaw: settings, MCP servers, skills, plugins. Measured with 2026.9.6.

tests/e2e/test_live_home.py compares this with the CLI itself. One configuration holds everything (JSON5, written back
as JSON by its own commands), and nothing is in a project. Files that `$include` names are not read. The workspace of a
run of ours is its working directory: skills are found there, and not in the configured workspace.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_mux.sdk.config import AgentConfig, AgentPaths, ConfigField, ConfigFile, ModelField
from agent_mux.sdk.documents import FieldPath
from agent_mux.sdk.installation import (
    AgentInstallation,
    ConfigDirectory,
    DefinitionFolder,
    DefinitionFolders,
    McpFiles,
    Plugin,
    PluginCommands,
)
from agent_mux_adapters._dialects.tolerant import mapping, rows, text
from agent_mux_adapters.openclaw.configuration import format_server, is_enabled, parse_server
from agent_mux_adapters.openclaw.credentials import AUTH, config_file, directory

_DEFAULTS = ("agents", "defaults")
_EFFORTS = ("off", "minimal", "low", "medium", "high", "xhigh", "adaptive", "max", "ultra")


def _defaults(data: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(mapping(data.get("agents")).get("defaults"))


def _read_model(data: Mapping[str, Any]) -> str | None:
    model = _defaults(data).get("model")
    return text(model) or text(mapping(model).get("primary")) or None


def _write_model(model: str, data: Mapping[str, Any]) -> Mapping[FieldPath, Any]:
    """Return the changes of `openclaw models set`: an existing table of models gets this one, too."""
    if "/" not in model:
        raise ValueError("a provider and a model, as in anthropic/claude-opus-4-6")
    configured = mapping(_defaults(data).get("models"))
    is_missing = configured and model not in configured
    added: dict[FieldPath, Any] = {(*_DEFAULTS, "models", model): {}} if is_missing else {}
    is_text = isinstance(_defaults(data).get("model"), str)
    return {(*_DEFAULTS, "model") if is_text else (*_DEFAULTS, "model", "primary"): model, **added}


CONFIG = AgentConfig(
    files=(ConfigFile(scope="global", format="json", path=config_file),),
    fields={
        "agents.defaults.model.primary": ConfigField(kind="string", meaning="the model, as provider/model"),
        "agents.defaults.model.fallbacks": ConfigField(kind="list", meaning="models to use when it fails"),
        "agents.defaults.models": ConfigField(kind="table", meaning="settings of single models"),
        "agents.defaults.workspace": ConfigField(kind="string", meaning="the directory that the agent works in"),
        "agents.defaults.thinkingDefault": ConfigField(kind="string", meaning="thinking effort", choices=_EFFORTS),
        "agents.defaults.timeoutSeconds": ConfigField(kind="number", meaning="time limit of a turn in seconds"),
        "agents.defaults.sandbox.mode": ConfigField(
            kind="string", meaning="which sessions run in a sandbox", choices=("off", "non-main", "all")
        ),
        "tools.profile": ConfigField(
            kind="string", meaning="a set of tools", choices=("minimal", "coding", "messaging", "full")
        ),
        "tools.allow": ConfigField(kind="list", meaning="the only allowed tools"),
        "tools.deny": ConfigField(kind="list", meaning="denied tools"),
        "tools.exec.mode": ConfigField(
            kind="string", meaning="which commands may run", choices=("deny", "allowlist", "ask", "auto", "full")
        ),
        "tools.fs.workspaceOnly": ConfigField(kind="boolean", meaning="restrict file tools to the workspace"),
        "models.mode": ConfigField(
            kind="string",
            meaning="add these providers to the known ones, or use only these",
            choices=("merge", "replace"),
        ),
        "models.providers": ConfigField(kind="table", meaning="providers of models, with their keys"),
        "env.vars": ConfigField(kind="table", meaning="environment variables"),
        "mcp.servers": ConfigField(kind="table", meaning="MCP servers by name"),
        "skills.load.extraDirs": ConfigField(kind="list", meaning="more directories with skills"),
        "plugins.enabled": ConfigField(kind="boolean", meaning="whether plugins are loaded"),
        "plugins.entries": ConfigField(kind="table", meaning="plugins by name, and whether they are enabled"),
        "update.channel": ConfigField(
            kind="string",
            meaning="update channel",
            choices=("stable", "extended-stable", "beta", "dev"),
        ),
    },
    model=ModelField(read=_read_model, write=_write_model),
)

MCP = McpFiles(
    files=(ConfigFile(scope="global", format="json", path=config_file, table=lambda _: ("mcp", "servers")),),
    read=parse_server,
    write=format_server,
    is_enabled=is_enabled,
)


def _workspace_skills(place: AgentPaths) -> Path:
    """Return the skills of the workspace that OpenClaw uses when none is configured."""
    named = place.environ.get("OPENCLAW_WORKSPACE_DIR", "").strip()
    return (Path(os.path.expanduser(named)) if named else directory(place) / "workspace") / "skills"


def _personal_skills(place: AgentPaths) -> Path | None:
    """Return the shared skills, which OpenClaw reads only when its own directory was not moved."""
    return None if place.environ.get("OPENCLAW_STATE_DIR", "").strip() else place.home / ".agents" / "skills"


SKILLS = DefinitionFolders(
    folders=(
        DefinitionFolder(scope="global", path=lambda place: directory(place) / "skills"),
        DefinitionFolder(scope="global", path=_workspace_skills),
        DefinitionFolder(scope="global", path=_personal_skills, is_shared=True),
        DefinitionFolder(scope="project", path=lambda place: place.project_file("skills")),
        DefinitionFolder(scope="project", path=lambda place: place.project_file(".agents", "skills"), is_shared=True),
    ),
    layout="folder",
    file="SKILL.md",
    required=("description",),
    depth=6,
)


def _parse_plugins(printed: str) -> tuple[Plugin, ...]:
    """Parse the output of `openclaw plugins list --json`, which includes the plugins that it ships with."""
    listed = mapping(json.loads(printed)).get("plugins")
    if not isinstance(listed, list):
        raise ValueError("no list of plugins")  # noqa: TRY004  # the contract asks for a ValueError
    return tuple(
        Plugin(
            name=text(plugin.get("id")),
            version=text(plugin.get("version")) or None,
            enabled=plugin.get("enabled") is True,
            source=text(plugin.get("origin")) or None,
            description=text(plugin.get("description")) or None,
        )
        for plugin in rows(listed)
    )


def _parse_search(printed: str) -> tuple[Plugin, ...]:
    """Parse the output of `openclaw plugins search --json` into plugins with the names that `install` accepts."""
    found = json.loads(printed)
    packages = (mapping(result.get("package")) for result in rows(mapping(found).get("results")))
    return tuple(
        Plugin(
            name=f"clawhub:{text(package.get('name'))}",
            version=text(package.get("latestVersion")) or None,
            source=text(package.get("channel")) or None,
            description=text(package.get("summary")) or None,
        )
        for package in packages
    )


def _update_command(name: str | None) -> tuple[str, ...]:
    return ("plugins", "update", *(("--all",) if name is None else (name,)))


PLUGINS = PluginCommands(
    list=("plugins", "list", "--json"),
    parse=_parse_plugins,
    # Without these flags it asks about a foreign source and about the capabilities of the plugin; no one can answer.
    install=lambda name: ("plugins", "install", "--force", "--accept-capabilities", name),
    uninstall=lambda name: ("plugins", "uninstall", "--force", name),
    update=_update_command,
    search=lambda words: ("plugins", "search", "--json", words),
    parse_search=_parse_search,
    environment={"NO_COLOR": "1", "OPENCLAW_NO_AUTO_UPDATE": "1"},
)

HOME = AgentInstallation(
    config=CONFIG,
    auth=AUTH,
    mcp=MCP,
    skills=SKILLS,
    plugins=PLUGINS,
    host_variables=("OPENCLAW_SHELL",),
    config_directory=ConfigDirectory(
        variable="OPENCLAW_STATE_DIR",
        path=directory,
        credentials=(".env", "state/openclaw.sqlite"),
        settings=("openclaw.json",),
    ),
    update=("update",),
)
