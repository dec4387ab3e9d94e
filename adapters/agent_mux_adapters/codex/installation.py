"""Installation of Codex: settings, MCP servers, skills, sub-agents and plugins.

Measured with 0.169.0; tests/e2e/test_live_home.py compares it with the CLI. The files of a project are effective when
its directory is trusted: `[projects."<path>"] trust_level = "trusted"` in the user's configuration. Its skills are
effective without that.
"""

import json
from collections.abc import Callable, Mapping
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
from agent_mux.sdk.options import McpServer
from agent_mux_adapters._dialects.mcp_servers import read_server
from agent_mux_adapters._dialects.tolerant import mapping, rows, text
from agent_mux_adapters.codex.credentials import AUTH, config_file, directory
from agent_mux_adapters.codex.hooks import HOOKS
from agent_mux_adapters.codex.session_changes import SESSIONS


def _files(table: FieldPath = ()) -> tuple[ConfigFile, ...]:
    def of_project(place: AgentPaths) -> Path | None:
        return place.project_file(".codex", "config.toml")

    return (
        ConfigFile(scope="global", format="toml", path=config_file, table=lambda _: table),
        ConfigFile(scope="project", format="toml", path=of_project, table=lambda _: table),
    )


CONFIG = AgentConfig(
    files=_files(),
    fields={
        "model": ConfigField(kind="string", meaning="the model"),
        "model_provider": ConfigField(kind="string", meaning="model provider: openai, or a name in model_providers"),
        "model_providers": ConfigField(kind="table", meaning="additional model providers: base_url, env_key, wire_api"),
        "model_reasoning_effort": ConfigField(kind="string", meaning="thinking effort, such as low or high"),
        "model_reasoning_summary": ConfigField(
            kind="string", meaning="style of thought summaries", choices=("auto", "concise", "detailed", "none")
        ),
        "model_verbosity": ConfigField(kind="string", meaning="length of answers", choices=("low", "medium", "high")),
        "approval_policy": ConfigField(
            kind="string",
            meaning="when commands need approval",
            choices=("untrusted", "on-failure", "on-request", "never"),
            or_kinds=("table",),
        ),
        "sandbox_mode": ConfigField(
            kind="string",
            meaning="sandbox for commands",
            choices=("read-only", "workspace-write", "danger-full-access"),
        ),
        "sandbox_workspace_write.network_access": ConfigField(
            kind="boolean", meaning="network access for sandboxed commands"
        ),
        "sandbox_workspace_write.writable_roots": ConfigField(kind="list", meaning="additional writable directories"),
        "web_search": ConfigField(
            kind="string",
            meaning="web search mode",
            choices=("disabled", "cached", "indexed", "live"),
        ),
        "developer_instructions": ConfigField(kind="string", meaning="additional instructions for the model"),
        "model_instructions_file": ConfigField(kind="string", meaning="a file that replaces the built-in instructions"),
        "project_doc_max_bytes": ConfigField(kind="number", meaning="maximum size of AGENTS.md in bytes"),
        "project_doc_fallback_filenames": ConfigField(kind="list", meaning="files to read when AGENTS.md is missing"),
        "shell_environment_policy.inherit": ConfigField(
            kind="string", meaning="environment variables passed to commands", choices=("core", "all", "none")
        ),
        "history.persistence": ConfigField(
            kind="string", meaning="storage of the prompt history", choices=("save-all", "none")
        ),
        "notify": ConfigField(kind="list", meaning="program and arguments to run after each turn"),
        "cli_auth_credentials_store": ConfigField(
            kind="string", meaning="storage of credentials", choices=("file", "keyring", "auto", "ephemeral")
        ),
        "check_for_update_on_startup": ConfigField(kind="boolean", meaning="check for updates at startup"),
    },
    model=ModelField(read=lambda data: text(data.get("model")) or None, write=lambda model, _: {("model",): model}),
)


def _read_server(name: str, native: Mapping[str, Any]) -> McpServer | None:
    """Read a server. Codex has no field for the type of a server, and calls headers `http_headers`."""
    known = {key: native[key] for key in ("command", "args", "env", "url") if key in native}
    return read_server(name, {**known, "headers": native.get("http_headers")})


def _write_server(server: McpServer) -> dict[str, Any]:
    match server.transport:
        case "sse":
            raise ValueError("MCP servers over SSE: it supports streamable HTTP only")
        case "stdio":
            entry: dict[str, Any] = {"command": server.command, "args": list(server.args), "env": dict(server.env)}
        case _:
            entry = {"url": server.url, "http_headers": dict(server.headers)}
    return {key: value for key, value in entry.items() if value}


MCP = McpFiles(
    files=_files(("mcp_servers",)),
    read=_read_server,
    write=_write_server,
    is_enabled=lambda native: native.get("enabled") is not False,
)


def _folders(kind: str) -> tuple[DefinitionFolder, ...]:
    return (
        DefinitionFolder(scope="global", path=lambda place: directory(place) / kind),
        DefinitionFolder(scope="project", path=lambda place: place.project_file(".codex", kind)),
    )


SKILLS = DefinitionFolders(
    folders=(
        *_folders("skills"),
        DefinitionFolder(scope="global", path=lambda place: place.home / ".agents" / "skills", is_shared=True),
        DefinitionFolder(scope="project", path=lambda place: place.project_file(".agents", "skills"), is_shared=True),
    ),
    layout="folder",
    file="SKILL.md",
    required=("description",),
)
SUBAGENTS = DefinitionFolders(
    folders=_folders("agents"),
    layout="file",
    file=".toml",
    header="toml",
    required=("name", "description", "developer_instructions"),
)


def _plugins_under(key: str) -> Callable[[str], tuple[Plugin, ...]]:
    """Return a parser of the plugins that `plugin list --json` prints under a key: `installed` or `available`."""

    def parse(printed: str) -> tuple[Plugin, ...]:
        listed = json.loads(printed)
        return tuple(_plugin(entry) for entry in rows(mapping(listed).get(key)))

    return parse


def _plugin(entry: Mapping[str, Any]) -> Plugin:
    source = mapping(entry.get("marketplaceSource"))
    return Plugin(
        name=text(entry.get("pluginId")),
        version=text(entry.get("version")) or None,
        enabled=entry.get("enabled") is True,
        source=text(source.get("source")) or text(entry.get("marketplaceName")) or None,
        description=text(entry.get("description")) or None,
    )


PLUGINS = PluginCommands(
    list=("plugin", "list", "--json"),
    parse=_plugins_under("installed"),
    install=lambda name: ("plugin", "add", name),
    uninstall=lambda name: ("plugin", "remove", name),
    search=lambda _: ("plugin", "list", "--available", "--json"),
    parse_search=_plugins_under("available"),
    search_lists_all=True,
)

HOME = AgentInstallation(
    config=CONFIG,
    auth=AUTH,
    mcp=MCP,
    skills=SKILLS,
    subagents=SUBAGENTS,
    plugins=PLUGINS,
    sessions=SESSIONS,
    config_directory=ConfigDirectory(
        variable="CODEX_HOME", path=directory, credentials=("auth.json",), settings=("config.toml",)
    ),
    host_variables=("CODEX_THREAD_ID",),
    hooks=HOOKS,
    update=("update",),
)
