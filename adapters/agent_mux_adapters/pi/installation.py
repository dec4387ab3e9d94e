"""What pi keeps on a machine: settings, credentials, MCP servers, skills, packages.

Measured with 1.6.0, 0.87.1 and 0.73.1; tests/e2e/test_live_home.py checks it against the CLI.
"""

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

from agent_mux.sdk.config import AgentConfig, AgentPaths, ConfigField, ConfigFile, ModelField, read_document
from agent_mux.sdk.documents import FieldPath
from agent_mux.sdk.installation import (
    AgentAuth,
    AgentInstallation,
    AuthMethod,
    ConfigDirectory,
    FoundCredentials,
    McpFiles,
    Plugin,
    PluginCommands,
    SetupStep,
)
from agent_mux.sdk.options import McpServer
from agent_mux_adapters._dialects.mcp_servers import read_server, write_server
from agent_mux_adapters._dialects.pi.installation import (
    CLOUD_VARIABLES,
    KEY_VARIABLES,
    aws_keys,
    is_key,
    provider_key,
    skill_folders,
)
from agent_mux_adapters._dialects.tolerant import mapping, optional_whole, text
from agent_mux_adapters.pi.session_changes import SESSIONS


def directory(place: AgentPaths) -> Path:
    """Return pi's own directory (`$PI_CODING_AGENT_DIR`, default ~/.pi/agent)."""
    return place.home_of("PI_CODING_AGENT_DIR", ".pi/agent")


ONE_BY_ONE = ("all", "one-at-a-time")
DISTANT = ("npm:", "git:", "http:", "https:", "ssh:")
"""Prefixes of package sources that are not folders."""
NO_PACKAGES = "No packages installed."
SCOPES = {"User packages:": "user", "Project packages:": "project"}
PATH = "    "
"""Indentation of the line with a package's path in `pi list`."""


def _read_model(data: Mapping[str, Any]) -> str | None:
    provider, model = text(data.get("defaultProvider")), text(data.get("defaultModel"))
    return (f"{provider}/{model}" if provider else model) if model else None


def _write_model(model: str, _: Mapping[str, Any]) -> Mapping[FieldPath, Any]:
    provider, slash, name = model.partition("/")
    if not provider or not slash or not name:
        raise ValueError("provider/model, for example anthropic/claude-opus-4-6")
    return {("defaultProvider",): provider, ("defaultModel",): name}


CONFIG = AgentConfig(
    files=(
        ConfigFile(scope="global", format="json", path=lambda place: directory(place) / "settings.json"),
        # pi reads it only in trusted projects (`/trust`, `defaultProjectTrust`); before 0.79 in all projects.
        ConfigFile(scope="project", format="json", path=lambda place: place.project_file(".pi", "settings.json")),
    ),
    fields={
        "defaultProvider": ConfigField(kind="string", meaning="provider of new sessions"),
        "defaultModel": ConfigField(kind="string", meaning="model of new sessions, from that provider"),
        "defaultThinkingLevel": ConfigField(
            kind="string",
            meaning="thinking level of new sessions",
            choices=("off", "minimal", "low", "medium", "high", "xhigh", "max"),
        ),
        "enabledModels": ConfigField(kind="list", meaning="patterns of the models to choose from"),
        "packages": ConfigField(kind="list", meaning="packages of extensions, skills, prompts and themes"),
        "extensions": ConfigField(kind="list", meaning="additional extension files or folders"),
        "skills": ConfigField(kind="list", meaning="additional skill files or folders"),
        "sessionDir": ConfigField(kind="string", meaning="directory of stored sessions"),
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
        "compaction.enabled": ConfigField(kind="boolean", meaning="compact the context when it is full"),
        "compaction.reserveTokens": ConfigField(kind="number", meaning="tokens reserved for the answer"),
        "compaction.keepRecentTokens": ConfigField(kind="number", meaning="recent tokens to keep unsummarized"),
        "retry.enabled": ConfigField(kind="boolean", meaning="retry model calls after transient failures"),
        "retry.maxRetries": ConfigField(kind="number", meaning="maximum number of retries"),
        "retry.baseDelayMs": ConfigField(
            kind="number", meaning="initial retry delay in milliseconds; doubles each time"
        ),
        "shellPath": ConfigField(kind="string", meaning="shell for commands"),
        "shellCommandPrefix": ConfigField(kind="string", meaning="prefix of every command"),
        "images.blockImages": ConfigField(kind="boolean", meaning="never send images to the model"),
        "defaultProjectTrust": ConfigField(
            kind="string",
            meaning="default trust for project files; global only, not in 0.73",
            choices=("ask", "always", "never"),
        ),
    },
    model=ModelField(read=_read_model, write=_write_model),
)


def _credentials(place: AgentPaths) -> tuple[Path, dict[str, Any]]:
    path = directory(place) / "auth.json"
    try:
        credentials = json.loads(path.read_bytes())
    except FileNotFoundError:
        return path, {}
    if not isinstance(credentials, dict):
        raise ValueError(f"{path} does not contain a JSON object")  # noqa: TRY004  # the contract of `find`
    return path, credentials


def _login(place: AgentPaths) -> FoundCredentials | None:
    """Find the login that is valid longest."""
    path, stored = _credentials(place)
    logins = [
        FoundCredentials(where=f"{path} ({name})", expires_at=_expiry(login))
        for name, login in ((name, mapping(entry)) for name, entry in stored.items())
        if login.get("type") == "oauth" and text(login.get("access"))
    ]
    return max(logins, key=lambda login: inf if login.expires_at is None else login.expires_at, default=None)


def _expiry(login: Mapping[str, Any]) -> int | None:
    """Return when a login expires; None if it renews itself."""
    return None if text(login.get("refresh")) else optional_whole(login.get("expires"))


def _key(place: AgentPaths) -> FoundCredentials | None:
    path, stored = _credentials(place)
    for name, entry in stored.items():
        key = mapping(entry)
        own = {str(variable): text(value) for variable, value in mapping(key.get("env")).items()}
        if key.get("type") == "api_key" and is_key(key.get("key"), {**place.environ, **own}):
            return FoundCredentials(where=f"{path} ({name})")
    return provider_key(directory(place) / "models.json", "json", place.environ)


AUTH = AgentAuth(
    methods=(
        AuthMethod(
            name="oauth", display_name="an account of a provider", variables=("ANTHROPIC_OAUTH_TOKEN",), find=_login
        ),
        AuthMethod(
            name="api_key",
            display_name="the API key of a provider",
            variables=(
                *KEY_VARIABLES,
                "ANTHROPIC_AUTH_TOKEN",
                "ANT_LING_API_KEY",
                "MINIMAX_CN_API_KEY",
                "QWEN_TOKEN_PLAN_API_KEY",
                "QWEN_TOKEN_PLAN_CN_API_KEY",
                "RADIUS_API_KEY",
                "ZAI_CODING_CN_API_KEY",
            ),
            find=_key,
        ),
        AuthMethod(
            name="cloud",
            display_name="a cloud provider",
            variables=(*CLOUD_VARIABLES, "AWS_PROFILE"),
            find=aws_keys,
        ),
    ),
    steps=(
        SetupStep(text="Run pi without arguments and log in with /login (account or API key)."),
        SetupStep(text="Or set a provider's API key, for example Anthropic's.", variable="ANTHROPIC_API_KEY"),
        SetupStep(text="Or that of another provider.", variable="OPENAI_API_KEY"),
    ),
)


def _plugins(printed: str) -> tuple[Plugin, ...]:
    """Parse `pi list`: two headings, below each one a line per source, and below that its path."""
    lines = printed.splitlines()
    if not {NO_PACKAGES, *SCOPES} & set(lines):
        raise ValueError("the list of packages has no heading")
    return tuple(_read_packages(lines))


def _read_packages(lines: list[str]) -> Iterator[Plugin]:
    scope = ""
    for line, below in pairwise([*lines, ""]):
        scope = SCOPES.get(line, scope)
        if scope and line.startswith("  ") and not line.startswith(PATH):
            yield _plugin(line.strip(), below.strip() if below.startswith(PATH) else "", scope)


def _plugin(label: str, path: str, scope: str) -> Plugin:
    source = label.removesuffix(" (filtered)")
    extra = {"scope": scope, **({"path": path} if path else {})}
    if not source.startswith(DISTANT):
        # pi lists the source relative to its own directory, and removes it by a path relative to the cwd: use the path.
        return Plugin(name=path or source, source=source, extra=extra)
    package = source.removeprefix("npm:") if source.startswith("npm:") else ""
    version = package.rpartition("@")[2] if "@" in package[1:] else None
    return Plugin(name=source, version=version, source=source, extra=extra)


PLUGINS = PluginCommands(
    word="package",
    list=("list",),
    parse=_plugins,
    install=lambda source: ("install", source),
    uninstall=lambda source: ("remove", source),
    update=lambda source: ("update", "--extensions") if source is None else ("update", "--extension", source),
    environment={"FORCE_COLOR": "0"},
)


def _write_server(server: McpServer) -> dict[str, Any]:
    if server.transport == "sse":
        raise ValueError("MCP servers over SSE: it supports streamable HTTP only")
    return {name: value for name, value in write_server(server).items() if value}


def _untrusted(place: AgentPaths, file: ConfigFile) -> str | None:
    """Return why pi ignores the servers of the project; None if it is trusted, or for the user's own file."""
    if file.scope != "project" or place.project is None:
        return None
    trust, settings = (read_document(directory(place) / name, "json") for name in ("trust.json", "settings.json"))
    decisions = {} if trust is None else trust.data()
    project = place.project.resolve()
    known = (decisions.get(str(path)) for path in (project, *project.parents))
    default = text(mapping(None if settings is None else settings.data()).get("defaultProjectTrust"))
    if next((one for one in known if isinstance(one, bool)), default == "always"):
        return None
    return "pi ignores it because the project is not trusted: start pi in it and use /trust"


MCP = McpFiles(
    files=(
        ConfigFile(
            scope="global", format="json", path=lambda place: directory(place) / "mcp.json",
            table=lambda _: ("mcpServers",),
        ),
        ConfigFile(
            scope="project", format="json", path=lambda place: place.project_file(".pi", "mcp.json"),
            table=lambda _: ("mcpServers",),
        ),
    ),
    read=read_server,
    write=_write_server,
    is_enabled=lambda native: native.get("enabled") is not False,
    objection=_untrusted,
)  # fmt: skip
"""MCP servers, which pi has since 0.99; older versions ignore these files."""

HOME = AgentInstallation(
    config=CONFIG,
    auth=AUTH,
    mcp=MCP,
    skills=skill_folders(directory, ".pi", (("global", ".agents"), ("project", ".agents")), depth=6),
    plugins=PLUGINS,
    config_directory=ConfigDirectory(
        variable="PI_CODING_AGENT_DIR",
        path=directory,
        credentials=("auth.json",),
        settings=("settings.json", "models.json"),
    ),
    host_variables=("PI_CODING_AGENT",),
    update=("update", "--self"),
    sessions=SESSIONS,
)
