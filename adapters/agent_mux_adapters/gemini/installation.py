"""What Gemini CLI keeps on a machine. Measured with 0.61.0; tests/e2e/test_live_home.py checks it with the CLI.

Files of a project are used only if the directory is trusted. An administrator's files (`/etc/gemini-cli`, or those of
`GEMINI_CLI_SYSTEM_SETTINGS_PATH`) take precedence over all others; agent-mux does not read or change them.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent_mux.sdk import read_text
from agent_mux.sdk.config import AgentConfig, AgentPaths, ConfigField, ConfigFile, ModelField
from agent_mux.sdk.documents import DocumentError, open_document
from agent_mux.sdk.documents.document import value_at
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
from agent_mux_adapters._dialects.mcp_servers import read_server, write_server
from agent_mux_adapters._dialects.tolerant import mapping, rows, text
from agent_mux_adapters.gemini.credentials import AUTH, AUTH_METHODS, gemini_directory, project_file, user_home
from agent_mux_adapters.gemini.hooks import HOOKS
from agent_mux_adapters.gemini.session_changes import SESSIONS


def _settings(place: AgentPaths) -> Path:
    return gemini_directory(place) / "settings.json"


def _project_settings(place: AgentPaths) -> Path | None:
    return project_file(place, ".gemini", "settings.json")


CONFIG = AgentConfig(
    files=(
        ConfigFile(scope="global", format="json", path=_settings),
        ConfigFile(scope="project", format="json", path=_project_settings),
    ),
    fields={
        "model.name": ConfigField(kind="string", meaning="the model, or an alias such as pro or flash"),
        "model.maxSessionTurns": ConfigField(kind="number", meaning="turns of a session at most, -1 for any number"),
        "model.compressionThreshold": ConfigField(
            kind="number", meaning="the part of the context after which it is compressed"
        ),
        "general.defaultApprovalMode": ConfigField(
            kind="string", meaning="what needs approval in new sessions", choices=("default", "auto_edit", "plan")
        ),
        "general.enableAutoUpdate": ConfigField(kind="boolean", meaning="update Gemini CLI as it starts"),
        "general.maxAttempts": ConfigField(kind="number", meaning="attempts for a request to the model, 10 at most"),
        "general.preferredEditor": ConfigField(kind="string", meaning="the editor in which files are opened"),
        "general.sessionRetention.enabled": ConfigField(kind="boolean", meaning="remove old sessions"),
        "general.sessionRetention.maxAge": ConfigField(kind="string", meaning="the age of old sessions, such as 30d"),
        "context.includeDirectories": ConfigField(kind="list", meaning="directories beside the working directory"),
        "tools.core": ConfigField(kind="list", meaning="the only built-in tools that are enabled"),
        "tools.allowed": ConfigField(
            kind="list", meaning="tool uses that need no approval, such as run_shell_command(git)"
        ),
        "tools.exclude": ConfigField(kind="list", meaning="tools that are disabled"),
        "mcp.allowed": ConfigField(kind="list", meaning="the only MCP servers that are used"),
        "mcp.excluded": ConfigField(kind="list", meaning="MCP servers that are not used"),
        "mcpServers": ConfigField(kind="table", meaning="MCP servers by name"),
        "hooks": ConfigField(kind="table", meaning="commands that are run at certain points"),
        "privacy.usageStatisticsEnabled": ConfigField(kind="boolean", meaning="send usage statistics to Google"),
        "security.auth.selectedType": ConfigField(
            kind="string", meaning="the authentication method", choices=AUTH_METHODS
        ),
        "security.disableYoloMode": ConfigField(kind="boolean", meaning="refuse to run without approvals"),
        "security.folderTrust.enabled": ConfigField(kind="boolean", meaning="use files of trusted projects only"),
    },
    model=ModelField(
        read=lambda data: text(value_at(data, ("model", "name"), "")) or None,
        write=lambda model, _: {("model", "name"): model},
    ),
)


def _read_server(name: str, native: Mapping[str, Any]) -> McpServer | None:
    """Parse a native entry. `httpUrl` is the old name of a URL of type `http` and takes precedence."""
    old = text(native.get("httpUrl"))
    return read_server(name, {**native, "url": old, "type": "http"} if old else native)


def _write_server(server: McpServer) -> dict[str, Any]:
    """Return the entry as `gemini mcp add` writes it: without a type for a command."""
    written = write_server(server)
    return {key: value for key, value in written.items() if value and not (key == "type" and value == "stdio")}


def _is_switched_off(place: AgentPaths, name: str) -> bool:
    """Return whether `gemini mcp disable` or a list in the settings disables the server."""
    wanted = name.strip().lower()
    states = _data(gemini_directory(place) / "mcp-server-enablement.json")
    if mapping(states.get(wanted)).get("enabled") is False:
        return True
    lists = [mapping(_data(path).get("mcp")) for path in (_settings(place), _project_settings(place))]
    allowed, excluded = _names(lists, "allowed"), _names(lists, "excluded")
    return (allowed is not None and wanted not in allowed) or (excluded is not None and wanted in excluded)


def _names(lists: list[Mapping[str, Any]], key: str) -> set[str] | None:
    values = [one[key] for one in lists if isinstance(one.get(key), list)]
    return {str(name).strip().lower() for names in values for name in names} if values else None


def _data(path: Path | None) -> dict[str, Any]:
    values = None if path is None else read_text(path)
    try:
        return {} if values is None else open_document(values, "json").data()
    except DocumentError:  # reading the file itself reports the error
        return {}


MCP = McpFiles(
    files=tuple(
        ConfigFile(scope=file.scope, format=file.format, path=file.path, table=lambda _: ("mcpServers",))
        for file in CONFIG.files
    ),
    read=_read_server,
    write=_write_server,
    is_switched_off=_is_switched_off,
)

_SKILLS = DefinitionFolders(
    folders=(
        DefinitionFolder(scope="global", path=lambda place: gemini_directory(place) / "skills"),
        DefinitionFolder(scope="global", path=lambda place: user_home(place) / ".agents" / "skills", is_shared=True),
        DefinitionFolder(scope="project", path=lambda place: project_file(place, ".gemini", "skills")),
        DefinitionFolder(scope="project", path=lambda place: project_file(place, ".agents", "skills"), is_shared=True),
    ),
    layout="folder",
    file="SKILL.md",
)


def _not_confirmed(place: AgentPaths, path: Path, name: str) -> str | None:
    """Return why a sub-agent of a project is not used; None when the user confirmed this exact text in the CLI."""
    agreed = _data(gemini_directory(place) / "acknowledgments" / "agents.json")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if mapping(agreed.get(str(place.project))).get(name) == digest:
        return None
    return "not confirmed; run `gemini` in the project to confirm it"


_SUBAGENTS = DefinitionFolders(
    folders=(
        DefinitionFolder(scope="global", path=lambda place: gemini_directory(place) / "agents"),
        DefinitionFolder(
            scope="project", path=lambda place: project_file(place, ".gemini", "agents"), objection=_not_confirmed
        ),
    ),
    layout="file",
    file=".md",
)


def _extensions(printed: str) -> tuple[Plugin, ...]:
    return tuple(
        Plugin(
            name=text(one.get("name")),
            version=text(one.get("version")) or None,
            enabled=one.get("isActive") is True,
            source=text(mapping(one.get("installMetadata")).get("source")) or None,
        )
        for one in rows(_list_in(printed))
    )


def _list_in(printed: str) -> Any:
    """Return the list that begins on its own line in the output. Raises `ValueError` when there is none."""
    found = re.search(r"^\[$|^\[\]$", printed, re.MULTILINE)
    if found is None:
        raise ValueError("no list")
    return json.JSONDecoder().raw_decode(printed, found.start())[0]


PLUGINS = PluginCommands(
    word="extension",
    list=("extensions", "list", "--output-format=json"),
    parse=_extensions,
    is_on_stderr=True,
    # Without `--consent` it would ask and get no answer; calling install implies consent.
    install=lambda name: ("extensions", "install", "--consent", "--skip-settings", name),
    uninstall=lambda name: ("extensions", "uninstall", name),
    update=lambda name: ("extensions", "update", "--all" if name is None else name),
    environment={"NO_COLOR": "1", "GEMINI_CLI_NO_RELAUNCH": "true"},
)

HOME = AgentInstallation(
    config=CONFIG,
    auth=AUTH,
    mcp=MCP,
    skills=_SKILLS,
    subagents=_SUBAGENTS,
    plugins=PLUGINS,
    config_directory=ConfigDirectory(
        variable="GEMINI_CLI_HOME",  # moves the home directory of the CLI
        path=lambda place: Path(place.environ.get("GEMINI_CLI_HOME") or place.home),
        credentials=(".gemini/oauth_creds.json", ".gemini/google_accounts.json"),
        settings=(".gemini/settings.json",),
    ),
    host_variables=("GEMINI_CLI",),
    hooks=HOOKS,
    sessions=SESSIONS,
)
