"""What OpenCode keeps on a machine: settings, MCP servers, skills, sub-agents, plugins.

Measured with 1.18.33; tests/e2e/test_live_home.py checks it against the CLI.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agent_mux.sdk.config import AgentConfig, AgentPaths, ConfigField, ModelField, Scope
from agent_mux.sdk.documents import FieldPath
from agent_mux.sdk.installation import (
    AgentInstallation,
    DefinitionFolder,
    DefinitionFolders,
    McpFiles,
    Plugin,
    PluginCommands,
)
from agent_mux.sdk.options import McpServer
from agent_mux_adapters._dialects.mcp_servers import string_map
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.opencode.argv import write_server
from agent_mux_adapters.opencode.credentials import AUTH
from agent_mux_adapters.opencode.paths import FILES, config_directory, extra_directory, files_with_table, project_file
from agent_mux_adapters.opencode.session_changes import SESSIONS


def _model(model: str, _: Mapping[str, Any]) -> dict[FieldPath, Any]:
    provider, slash, name = model.partition("/")
    if not (provider and slash and name):
        raise ValueError("provider/model, for example anthropic/claude-sonnet-4-6")
    return {("model",): model}


CONFIG = AgentConfig(
    files=FILES,
    fields={
        "model": ConfigField(kind="string", meaning="model, as provider/model"),
        "small_model": ConfigField(
            kind="string", meaning="model for titles and similar small tasks, as provider/model"
        ),
        "default_agent": ConfigField(kind="string", meaning="agent of new sessions, such as build or plan"),
        "permission": ConfigField(
            kind="string",
            or_kinds=("table",),
            meaning="allow, ask or deny: for everything, or per tool and pattern",
        ),
        "instructions": ConfigField(
            kind="list", meaning="files, patterns or URLs of instructions in addition to AGENTS.md"
        ),
        "share": ConfigField(
            kind="string",
            meaning="whether sessions are shared on request, automatically or never",
            choices=("manual", "auto", "disabled"),
        ),
        "autoupdate": ConfigField(
            kind="boolean", or_kinds=("string",), meaning="update at start: true, false, or notify"
        ),
        "snapshot": ConfigField(kind="boolean", meaning="keep snapshots of files, to undo changes"),
        "provider": ConfigField(kind="table", meaning="providers by name: their options and models"),
        "enabled_providers": ConfigField(kind="list", meaning="allowed providers; others are disabled"),
        "disabled_providers": ConfigField(kind="list", meaning="disabled providers"),
        "mcp": ConfigField(kind="table", meaning="MCP servers by name"),
        "plugin": ConfigField(kind="list", meaning="plugins: npm packages or paths"),
        "agent": ConfigField(kind="table", meaning="agents by name"),
        "command": ConfigField(kind="table", meaning="commands by name"),
        "skills.paths": ConfigField(kind="list", meaning="additional skill directories"),
        "compaction.auto": ConfigField(kind="boolean", meaning="compact the context when it is full"),
        "logLevel": ConfigField(kind="string", meaning="log level", choices=("DEBUG", "INFO", "WARN", "ERROR")),
        "username": ConfigField(kind="string", meaning="user name shown in conversations"),
    },
    model=ModelField(read=lambda data: text(data.get("model")) or None, write=_model),
)


def read_server(name: str, native: Mapping[str, Any]) -> McpServer | None:
    """Parse an MCP server: `local` with a list of words, or `remote`, whose transport OpenCode detects.

    Returns None for an entry that only disables a server of another file.
    """
    words = native.get("command")
    if isinstance(words, list) and words:
        program, *args = map(str, words)
        return McpServer(name=name, command=program, args=tuple(args), env=string_map(native.get("environment")))
    url = text(native.get("url"))
    if not url:
        return None
    return McpServer(name=name, transport="streamable-http", url=url, headers=string_map(native.get("headers")))


def is_enabled(native: Mapping[str, Any]) -> bool:
    """Return whether the server is enabled; an entry has no other such field."""
    return native.get("enabled") is not False


MCP = McpFiles(files=files_with_table("mcp"), read=read_server, write=write_server, is_enabled=is_enabled)


def _in_config_directory(scope: Scope, *names: str) -> DefinitionFolder:
    def path(place: AgentPaths) -> Path | None:
        if scope == "global":
            return config_directory(place).joinpath(*names)
        return project_file(place, ".opencode", *names)

    return DefinitionFolder(scope=scope, path=path)


def _in_home(name: str) -> DefinitionFolder:
    return DefinitionFolder(scope="global", path=lambda place: place.home / ".opencode" / name)


def _in_extra_directory(name: str) -> DefinitionFolder:
    def path(place: AgentPaths) -> Path | None:
        directory = extra_directory(place)
        return None if directory is None else directory / name

    return DefinitionFolder(scope="global", path=path)


def _own_folders(*names: str) -> tuple[DefinitionFolder, ...]:
    """Return the folders of a definition; OpenCode reads each of the names, and we write the first."""
    return tuple(
        folder
        for name in names
        for folder in (
            _in_config_directory("global", name),
            _in_config_directory("project", name),
            _in_home(name),
            _in_extra_directory(name),
        )
    )


def _shared(scope: Scope, hidden: str, variables: tuple[str, ...]) -> DefinitionFolder:
    """Return a folder with skills of other agents, which the variables can disable."""

    def path(place: AgentPaths) -> Path | None:
        if any(place.environ.get(variable) in {"1", "true"} for variable in variables):
            return None
        return place.home / hidden / "skills" if scope == "global" else place.project_file(hidden, "skills")

    return DefinitionFolder(scope=scope, path=path, is_shared=True)


def _all_shared() -> Iterator[DefinitionFolder]:
    all_off = "OPENCODE_DISABLE_EXTERNAL_SKILLS"
    claude_off = (all_off, "OPENCODE_DISABLE_CLAUDE_CODE_SKILLS", "OPENCODE_DISABLE_CLAUDE_CODE")
    scopes: tuple[Scope, ...] = ("global", "project")
    for scope in scopes:
        yield _shared(scope, ".claude", claude_off)
        yield _shared(scope, ".agents", (all_off,))


def _plugins(printed: str) -> tuple[Plugin, ...]:
    """Parse the plugins in the printed configuration: npm packages with versions, and paths."""
    config = json.loads(printed)
    if not isinstance(config, dict):
        raise ValueError("the output contains no configuration")  # noqa: TRY004  # the contract of `parse`
    listed = config.get("plugin_origins")
    return tuple(_plugin(mapping(one)) for one in (listed if isinstance(listed, list) else ()))


def _plugin(origin: Any) -> Plugin:
    spec = origin.get("spec")
    name = text(spec[0]) if isinstance(spec, list) and spec else text(spec)
    package, at, version = name.rpartition("@")
    is_versioned = bool(package and at) and "://" not in name
    return Plugin(
        name=package if is_versioned else name,
        version=version if is_versioned else None,
        source=text(origin.get("source")) or None,
        extra={"scope": text(origin.get("scope"))},
    )


PLUGINS = PluginCommands(
    list=("debug", "config", "--pure"),  # without --pure it first installs the packages of the plugins
    parse=_plugins,
    install=lambda name: ("plugin", "--global", name),
    environment={"NO_COLOR": "1"},
)

HOME = AgentInstallation(
    config=CONFIG,
    auth=AUTH,
    mcp=MCP,
    skills=DefinitionFolders(
        folders=(*_own_folders("skills", "skill"), *_all_shared()), layout="folder", file="SKILL.md"
    ),
    subagents=DefinitionFolders(
        folders=_own_folders("agents", "agent"), layout="file", file=".md", required=("description",)
    ),
    plugins=PLUGINS,
    sessions=SESSIONS,
    host_variables=("OPENCODE",),
    update=("upgrade",),
    uninstall=("uninstall", "--keep-config", "--keep-data", "--force"),
)
