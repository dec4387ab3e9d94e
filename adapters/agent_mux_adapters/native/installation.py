"""What the embedded agent keeps on a machine besides its sessions: settings, MCP servers, skills and agents."""

import json
import os
import re
from pathlib import Path
from typing import Any

from agent_mux.sdk.config import AgentConfig, AgentPaths, ConfigField, ConfigFile, ModelField
from agent_mux.sdk.documents.formats import read_header
from agent_mux.sdk.installation import (
    AgentAuth,
    AgentInstallation,
    AuthMethod,
    ConfigDirectory,
    DefinitionFolder,
    DefinitionFolders,
    McpFiles,
    SetupStep,
)
from agent_mux_adapters._dialects.mcp_servers import read_server, write_server
from agent_mux_adapters._dialects.tolerant import mapping, text


def directory(place: AgentPaths) -> Path:
    """Return `$AMUX_AGENT_HOME`, by default a directory in the user's data directory."""
    named = place.environ.get("AMUX_AGENT_HOME")
    if named:
        return place.home / named[2:] if named.startswith("~/") else Path(named)
    data = place.environ.get("XDG_DATA_HOME", "")
    return (Path(data) if data.startswith("/") else place.home / ".local/share") / "agent-mux" / "native"


def _settings(place: AgentPaths) -> Path:
    return directory(place) / "settings.json"


CONFIG = AgentConfig(
    files=(ConfigFile(scope="global", format="json", path=_settings),),
    fields={
        "model": ConfigField(kind="string", meaning="default model, as provider:model"),
        "trustedProjects": ConfigField(kind="list", meaning="directories whose skills and MCP servers are used"),
        "mcpServers": ConfigField(kind="table", meaning="MCP servers by name"),
    },
    model=ModelField(
        read=lambda data: text(data.get("model")) or None,
        write=lambda model, _: {("model",): model},
    ),
)


def _not_trusted(place: AgentPaths) -> str | None:
    """Return why nothing of a project is used; None if `trustedProjects` has the project or one of its parents."""
    file = _settings(place)
    try:
        trusted = mapping(json.loads(file.read_text("utf-8"))).get("trustedProjects")
    except (FileNotFoundError, ValueError):  # reading the settings reports invalid JSON
        trusted = None
    project = Path.cwd() if place.project is None else place.project.resolve()
    named: list[Any] = trusted if isinstance(trusted, list) else []
    trusted_paths = [
        os.path.realpath(os.path.expanduser(each))
        for each in named
        if isinstance(each, str) and each and "\0" not in each
    ]
    if any(project.is_relative_to(each) for each in trusted_paths):
        return None
    return f"the project is not trusted; add it to trustedProjects in {file}, or pass --trust-project"


MCP = McpFiles(
    files=(
        ConfigFile(scope="global", format="json", path=_settings, table=lambda _: ("mcpServers",)),
        ConfigFile(
            scope="project",
            format="json",
            path=lambda place: place.project_file(".mcp.json"),
            table=lambda _: ("mcpServers",),
        ),
    ),
    read=read_server,
    write=write_server,
    is_enabled=lambda native: native.get("disabled") is not True,
    objection=lambda place, file: _not_trusted(place) if file.scope == "project" else None,
)


def _project_folder(name: str) -> DefinitionFolder:
    return DefinitionFolder(
        scope="project",
        path=lambda place: place.project_file(name, "skills"),
        is_shared=True,
        objection=lambda place, _path, _name: _not_trusted(place),
    )


SKILLS = DefinitionFolders(
    folders=(
        DefinitionFolder(scope="global", path=lambda place: directory(place) / "skills"),
        _project_folder(".agents"),
        _project_folder(".claude"),
    ),
    layout="folder",
    file="SKILL.md",
    depth=5,
)

_AGENT_NAME = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*")
_BUILT_IN_AGENTS = frozenset({"build", "plan"})
_PERMISSIONS = ("allowed_tools", "mcp_servers", "skills")
"""Keys by which an agent file extends what the agent may do; one of a project must not have them."""


def _skipped_agent(_place: AgentPaths, _path: Path, name: str) -> str | None:
    """Return why an agent file is skipped because of its name."""
    if name in _BUILT_IN_AGENTS:
        return f"{name} is a built-in agent"
    return None if _AGENT_NAME.fullmatch(name) else "its name is invalid; use lowercase letters, digits, - and _"


def _skipped_project_agent(place: AgentPaths, path: Path, name: str) -> str | None:
    """Return why an agent file of a project is skipped: its name, or permissions that it gives itself."""
    keys = read_header(path, "yaml_file")
    given = [key for key in _PERMISSIONS if keys.get(key)]
    given += ["mode"] if keys.get("mode") in {"accept-edits", "yolo"} else []
    if given:
        return f"an agent of a project cannot have {', '.join(given)}; name the file with --agent-file to trust it"
    return _skipped_agent(place, path, name)


SUBAGENTS = DefinitionFolders(
    folders=(
        DefinitionFolder(scope="global", path=lambda place: directory(place) / "agents", objection=_skipped_agent),
        DefinitionFolder(
            scope="project",
            path=lambda place: place.project_file(".agents", "agents"),
            objection=_skipped_project_agent,
        ),
    ),
    layout="file",
    file=".yaml",
    other_suffixes=(".yml",),
    header="yaml_file",
    required=("description",),
)

AUTH = AgentAuth(
    methods=(
        AuthMethod(
            name="api_key",
            display_name="the API key of a provider",
            variables=(
                "ANTHROPIC_API_KEY",
                "OPENAI_API_KEY",
                "GEMINI_API_KEY",
                "GOOGLE_API_KEY",
                "AZURE_OPENAI_API_KEY",
                "OPENAI_COMPATIBLE_API_KEY",
                "AWS_BEARER_TOKEN_BEDROCK",
            ),
        ),
    ),
    steps=(
        SetupStep(text="Set a provider's API key, for example Anthropic's.", variable="ANTHROPIC_API_KEY"),
        SetupStep(text="Or that of another provider.", variable="OPENAI_API_KEY"),
        SetupStep(text="Or name a model, whose provider needs its own access.", variable="AMUX_AGENT_MODEL"),
    ),
)


HOME = AgentInstallation(
    config=CONFIG,
    auth=AUTH,
    mcp=MCP,
    skills=SKILLS,
    subagents=SUBAGENTS,
    host_variables=("AMUX_AGENT",),
    config_directory=ConfigDirectory(variable="AMUX_AGENT_HOME", path=directory, settings=("settings.json",)),
)
