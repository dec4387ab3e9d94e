"""A sample agent and its installation, for tests of code that works with any installation."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent_mux.agents.installations import InstallationResolver
from agent_mux.sdk.config import AgentConfig, AgentPaths, ConfigField, ConfigFile, ModelField
from agent_mux.sdk.installation import (
    AgentAuth,
    AgentInstallation,
    AuthMethod,
    DefinitionFolder,
    DefinitionFolders,
    FoundCredentials,
    McpFiles,
    SetupStep,
)
from agent_mux.sdk.options import McpServer
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux_adapters._dialects.mcp_servers import read_server, write_server
from agent_mux_adapters.claude import ADAPTER

AGENT = "wombat"


def _model(name: str, _: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
    if " " in name:
        raise ValueError("a name without blanks")
    return {("model", "name"): name, ("model", "kind"): "any"}


def _token(paths: AgentPaths) -> FoundCredentials | None:
    path = paths.home / ".wombat" / "token"
    if not path.exists():
        return None
    return FoundCredentials(where=str(path), expires_at=int(path.read_text("utf-8")))


def _write(server: McpServer) -> dict[str, Any]:
    if server.transport == "sse":
        raise ValueError("the transport sse")
    return write_server(server)


INSTALLATION = AgentInstallation(
    config=AgentConfig(
        files=(
            ConfigFile(scope="global", format="toml", path=lambda paths: paths.home / ".wombat" / "config.toml"),
            ConfigFile(scope="project", format="json", path=lambda paths: paths.project_file("wombat.json")),
        ),
        fields={
            "model.name": ConfigField(kind="string", meaning="the model"),
            "mode": ConfigField(kind="string", meaning="how it digs", choices=("fast", "slow")),
            "limits.depth": ConfigField(kind="number", meaning="metres"),
            "dry": ConfigField(kind="boolean", meaning="no water"),
            "places": ConfigField(kind="list", meaning="where it digs"),
        },
        model=ModelField(read=lambda data: data.get("model", {}).get("name"), write=_model),
    ),
    auth=AgentAuth(
        methods=(
            AuthMethod(name="key", display_name="a key", variables=("WOMBAT_KEY", "WOMBAT_OTHER_KEY")),
            AuthMethod(name="login", display_name="a login", find=_token),
        ),
        steps=(SetupStep(text="Log in.", command=("login",)), SetupStep(text="Or set a key.", variable="WOMBAT_KEY")),
        elsewhere=lambda paths: paths.environ.get("WOMBAT_KEYRING"),
    ),
    mcp=McpFiles(
        files=(
            ConfigFile(
                scope="global", format="toml", path=lambda paths: paths.home / ".wombat" / "config.toml",
                table=lambda _: ("servers",),
            ),
            ConfigFile(
                scope="project", format="json", path=lambda paths: paths.project_file("wombat.json"),
                table=lambda _: ("servers",),
            ),
        ),
        read=read_server,
        write=_write,
        is_enabled=lambda native: native.get("off") is not True,
    ),
    skills=DefinitionFolders(
        folders=(
            DefinitionFolder(scope="global", path=lambda paths: paths.home / ".wombat" / "skills"),
            DefinitionFolder(scope="global", path=lambda paths: paths.home / ".agents" / "skills", is_shared=True),
            DefinitionFolder(scope="project", path=lambda paths: paths.project_file(".wombat", "skills")),
        ),
        layout="folder",
        file="SKILL.md",
    ),
    subagents=DefinitionFolders(
        folders=(DefinitionFolder(scope="project", path=lambda paths: paths.project_file(".wombat", "agents")),),
        layout="file",
        file=".toml",
        header="toml",
    ),
    host_variables=("WOMBAT_RUNS",),
)  # fmt: skip


def sample_resolver(
    directory: Path, installation: AgentInstallation = INSTALLATION, **environ: str
) -> InstallationResolver:
    """Return a resolver that knows only the sample agent; its home and project are below the directory."""
    registry = AdapterRegistry()
    for name in registry.names():
        registry.unregister(name)
    registry.register(
        replace(
            ADAPTER,
            agent=AGENT,
            aliases=("wom",),
            executables=("wombat",),
            installation=lambda: installation,
            install=(),
        )
    )
    project = directory / "project"
    project.mkdir(exist_ok=True)
    return InstallationResolver(registry, environ={"HOME": str(directory / "home"), **environ}, project=project)
