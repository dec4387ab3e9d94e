"""The installation of Hermes: settings, MCP servers, skills, plugins. Measured with 0.19.0.

tests/e2e/test_live_home.py compares this with the CLI itself. Everything is below one directory, and nothing in a
project. The settings of an administrator in `/etc/hermes` take precedence over the user's; they are not read here.
"""

import json
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
from agent_mux_adapters.hermes.credentials import AUTH
from agent_mux_adapters.hermes.hooks import HOOKS
from agent_mux_adapters.hermes.mcp_servers import format_server, is_enabled, parse_server
from agent_mux_adapters.hermes.paths import HOME_VARIABLE, profile_directory
from agent_mux_adapters.hermes.session_changes import SESSIONS

_MODEL_KEYS = ("default", "model", "name")
"""Keys of the table `model`; the first non-empty one counts."""
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra")


def _config_path(place: AgentPaths) -> Path:
    return profile_directory(place) / "config.yaml"


def _read_model(data: Mapping[str, Any]) -> str | None:
    model = data.get("model")
    names = [text(mapping(model).get(key)) for key in _MODEL_KEYS]
    return text(model) or next((name for name in names if name), None)


def _write_model(model: str, data: Mapping[str, Any]) -> Mapping[FieldPath, Any]:
    """Return the change that sets the model: a plain string may stand in place of the table."""
    return {("model",) if isinstance(data.get("model"), str) else ("model", "default"): model}


CONFIG = AgentConfig(
    files=(ConfigFile(scope="global", format="yaml", path=_config_path),),
    fields={
        "model.default": ConfigField(kind="string", meaning="the model"),
        "model.provider": ConfigField(kind="string", meaning="the provider of the model, such as openrouter or custom"),
        "model.base_url": ConfigField(kind="string", meaning="base URL of a custom provider"),
        "agent.max_turns": ConfigField(kind="number", meaning="model calls in a turn"),
        "agent.reasoning_effort": ConfigField(kind="string", meaning="thinking effort", choices=_EFFORTS),
        "approvals.mode": ConfigField(
            kind="string", meaning="who decides about harmful commands", choices=("manual", "smart", "off")
        ),
        "approvals.timeout": ConfigField(kind="number", meaning="seconds to wait for an answer"),
        "approvals.deny": ConfigField(kind="list", meaning="patterns of commands that never run"),
        "terminal.backend": ConfigField(kind="string", meaning="where commands run, such as local, docker or ssh"),
        "terminal.timeout": ConfigField(kind="number", meaning="time limit of a command in seconds"),
        "compression.enabled": ConfigField(kind="boolean", meaning="compact long conversations"),
        "compression.threshold": ConfigField(kind="number", meaning="context share that triggers compaction"),
        "memory.memory_enabled": ConfigField(kind="boolean", meaning="keep notes between sessions"),
        "skills.external_dirs": ConfigField(kind="list", meaning="more directories with skills"),
        "delegation.model": ConfigField(kind="string", meaning="the model of sub-agents; empty: the same"),
        "mcp_servers": ConfigField(kind="table", meaning="MCP servers by name"),
        "toolsets": ConfigField(kind="list", meaning="enabled tool sets"),
        "security.redact_secrets": ConfigField(kind="boolean", meaning="redact secrets in tool results"),
    },
    model=ModelField(
        read=_read_model, write=_write_model
    ),
)  # fmt: skip

MCP = McpFiles(
    files=(ConfigFile(scope="global", format="yaml", path=_config_path, table=lambda _: ("mcp_servers",)),),
    read=parse_server,
    write=format_server,
    is_enabled=is_enabled,
)


def _parse_plugins(printed: str) -> tuple[Plugin, ...]:
    """Parse the output of `hermes plugins list --json`."""
    listed = json.loads(printed)
    if not isinstance(listed, list):
        raise ValueError("not a list")  # noqa: TRY004  # the contract asks for a ValueError
    return tuple(
        Plugin(
            name=text(plugin.get("name")),
            version=text(plugin.get("version")) or None,
            enabled=plugin.get("status") == "enabled",
            source=text(plugin.get("source")) or None,
            description=text(plugin.get("description")) or None,
        )
        for plugin in rows(listed)
    )


def _update_command(name: str | None) -> tuple[str, ...]:
    if name is None:
        raise ValueError("the name of a plugin: this agent updates them one by one")
    return ("plugins", "update", name)


PLUGINS = PluginCommands(
    list=("plugins", "list", "--json"),
    parse=_parse_plugins,
    # Without --enable it asks whether to enable the plugin.
    install=lambda name: ("plugins", "install", "--enable", name),
    uninstall=lambda name: ("plugins", "remove", name),
    update=_update_command,
)

HOME = AgentInstallation(
    config=CONFIG,
    auth=AUTH,
    mcp=MCP,
    skills=DefinitionFolders(
        folders=(DefinitionFolder(scope="global", path=lambda place: profile_directory(place) / "skills"),),
        layout="folder",
        file="SKILL.md",
        required=(),
        depth=6,
    ),
    plugins=PLUGINS,
    sessions=SESSIONS,
    host_variables=("HERMES_REAL_HOME",),
    hooks=HOOKS,
    update=("update",),
    config_directory=ConfigDirectory(
        variable=HOME_VARIABLE,
        path=profile_directory,
        credentials=("auth.json", ".env"),
        settings=("config.yaml",),
    ),
)
