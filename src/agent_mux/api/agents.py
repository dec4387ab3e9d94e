"""Agents as JSON: what their adapters state, what was detected on this machine, and what they can do."""

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType

from agent_mux.agents.auth import AuthState
from agent_mux.agents.detection import DetectedAgent
from agent_mux.api import JsonView
from agent_mux.sdk.adapter import Adapter, AgentCapabilities
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.sdk.versions import VersionState
from agent_mux.settings.options_json import camel

_TESTED = "The versions that recordings cover, oldest first; empty for an agent that stands for any program."
_STATE = (
    "`tested`: recordings cover the installed version. `in_range`: they cover an older and a newer one. "
    "`unknown`: neither."
)


class AgentView(JsonView, kw_only=True):
    """An agent that can be driven: what its adapter states and, if detection ran, what is installed."""

    agent: Annotated[str, Meta(description="The agent's name, as used in requests.")]
    display_name: str | UnsetType = UNSET
    aliases: Annotated[list[str] | UnsetType, Meta(description="Alternative names of the agent.")] = UNSET
    protocols: Annotated[list[str] | UnsetType, Meta(description="The native protocols that the adapter supports.")] = (
        UNSET
    )
    min_version: Annotated[str | UnsetType, Meta(description="The lowest tested version.")] = UNSET
    tested_version: Annotated[str | UnsetType, Meta(description="The version that the live tests drive.")] = UNSET
    tested_versions: Annotated[list[str] | UnsetType, Meta(description=_TESTED)] = UNSET
    installed: bool | UnsetType = UNSET
    supported: Annotated[
        bool | UnsetType, Meta(description="Whether the agent is installed in a supported version.")
    ] = UNSET
    version: Annotated[str | UnsetType, Meta(description="The installed version.")] = UNSET
    version_state: Annotated[VersionState | UnsetType, Meta(description=_STATE)] = UNSET
    path: Annotated[str | UnsetType, Meta(description="Path of the agent's program on the machine of the service.")] = (
        UNSET
    )
    problem: Annotated[str | UnsetType, Meta(description="Why the agent cannot be used, and how to fix it.")] = UNSET


class DetectedView(JsonView, kw_only=True):
    """The result of detecting one agent on the machine."""

    agent: str
    display_name: str
    installed: bool
    supported: Annotated[bool, Meta(description="Whether the agent is installed in a supported version.")]
    version: str | UnsetType = UNSET
    version_state: Annotated[VersionState | UnsetType, Meta(description=_STATE)] = UNSET
    min_version: Annotated[str, Meta(description="The lowest tested version.")]
    tested_versions: Annotated[list[str] | UnsetType, Meta(description=_TESTED)] = UNSET
    path: Annotated[str | UnsetType, Meta(description="Path of the agent's program.")] = UNSET
    problem: Annotated[str | UnsetType, Meta(description="Why the agent cannot be used, and how to fix it.")] = UNSET


class AgentInfo(AgentView, kw_only=True):
    """Everything about one agent: its adapter, its installation, its credentials, and what it keeps on the machine."""

    auth: Annotated[str | UnsetType, Meta(description="State of its credentials.")] = UNSET
    auth_where: Annotated[str | UnsetType, Meta(description="Variable or file that contains the credentials.")] = UNSET
    auth_guidance: Annotated[str, Meta(description="How a person authenticates the agent.")]
    executables: Annotated[list[str], Meta(description="Names of its program on PATH.")]
    executable_variable: Annotated[str, Meta(description="Environment variable that names another program.")]
    install_commands: Annotated[list[str], Meta(description="Commands that install it on this platform.")]
    default_model: str | UnsetType = UNSET
    models: Annotated[int, Meta(description="Number of models that ship with the adapter.")]
    sessions: Annotated[str | UnsetType, Meta(description="Directory or database of its sessions.")] = UNSET
    config_files: Annotated[list[str], Meta(description="Its configuration files, which need not exist.")]
    keeps: Annotated[list[str], Meta(description="What amux manages for it: mcp, skills, sub-agents, plugins, hooks.")]


def agent_info(
    adapter: Adapter, found: DetectedAgent, auth: AuthState | None, *, place: AgentPaths | None = None
) -> AgentInfo:
    """Return everything about an agent. `place`: where it looks for files; default: that of this process."""
    place = place or AgentPaths(environ=os.environ, project=Path.cwd())
    home, store = adapter.installation(), adapter.sessions()
    view = with_detected(agent_view(adapter), found)
    parts = {
        "mcp": home.mcp,
        "skills": home.skills,
        "sub-agents": home.subagents,
        "plugins": home.plugins,
        "hooks": home.hooks,
    }
    files = () if home.config is None else home.config.files
    paths = (file.path(place) for file in files)
    return AgentInfo(
        **{name: getattr(view, name) for name in view.__struct_fields__},
        auth=UNSET if auth is None else auth.status,
        auth_where=UNSET if auth is None else _unset_if_none(auth.where),
        auth_guidance=adapter.auth_guidance,
        executables=list(adapter.executables),
        executable_variable=adapter.executable_variable,
        install_commands=[method.command for method in adapter.install if sys.platform in method.platforms],
        default_model=_unset_if_none(adapter.default_model),
        models=len(adapter.models()),
        sessions=UNSET if store is None else str(store.root(place)),
        config_files=[str(path) for path in paths if path is not None],
        keeps=[name for name, part in parts.items() if part is not None],
    )


def known_agents(adapters: AdapterRegistry) -> Iterator[AgentView]:
    """Yield a view of every adapter, followed by those that cannot be loaded, with the reason."""
    yield from map(agent_view, adapters)
    yield from (AgentView(agent=name, problem=problem) for name, problem in adapters.problems.items())


def agent_view(adapter: Adapter) -> AgentView:
    """Return the view of an agent that has not been detected."""
    return AgentView(
        agent=adapter.agent,
        display_name=adapter.display_name,
        aliases=list(adapter.aliases),
        protocols=sorted(adapter.protocols),
        min_version=adapter.min_version,
        tested_version=adapter.tested_version,
        tested_versions=list(adapter.tested_versions),
    )


def detected_view(found: DetectedAgent) -> DetectedView:
    """Return the view of a detection result."""
    return DetectedView(
        agent=found.agent,
        display_name=found.display_name,
        installed=found.installed,
        supported=found.supported,
        version=_unset_if_none(found.version),
        version_state=found.version_state or UNSET,
        min_version=found.min_version,
        tested_versions=list(found.tested_versions),
        path=_unset_if_none(found.path),
        problem=_unset_if_none(found.problem),
    )


def with_detected(view: AgentView, found: DetectedAgent) -> AgentView:
    """Add a detection result to the view of an agent; a problem of the adapter is kept."""
    view.installed, view.supported = found.installed, found.supported
    view.version, view.path = _unset_if_none(found.version), _unset_if_none(found.path)
    view.version_state = found.version_state or UNSET
    if view.problem is UNSET:
        view.problem = _unset_if_none(found.problem)
    return view


def detected_from_view(view: AgentView | DetectedView) -> DetectedAgent:
    """Convert a view to a detection result. An agent that was not detected counts as not installed."""
    return DetectedAgent(
        view.agent,
        view.display_name or view.agent,
        view.installed or False,
        view.path or None,
        view.version or None,
        view.min_version or "",
        view.supported or False,
        view.problem or None,
        view.version_state or None,
        tuple(view.tested_versions or ()),
    )


def capabilities_of(adapter: Adapter) -> dict[str, Any]:
    """Return the fields of `AgentCapabilities`, with sets as sorted lists, and the names of the protocols."""
    known = {name: _to_plain(value) for name, value in asdict(adapter.capabilities).items()}
    return {**known, "protocols": sorted(adapter.protocols)}


def capabilities_json(adapter: Adapter) -> dict[str, Any]:
    """Return `capabilities_of` with camelCase keys."""
    return {camel(name): value for name, value in capabilities_of(adapter).items()}


def capabilities_from_json(content: Mapping[str, Any]) -> AgentCapabilities:
    """Convert capabilities from JSON. Missing keys have their default; unknown keys are ignored.

    Raises `msgspec.ValidationError` for a value of the wrong type.
    """
    known = {
        field.name: content[camel(field.name)] for field in fields(AgentCapabilities) if camel(field.name) in content
    }
    return msgspec.convert(known, AgentCapabilities)


def _to_plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else list(value) if isinstance(value, tuple) else value


def _unset_if_none(value: str | None) -> str | UnsetType:
    return UNSET if value is None else value


_HINTS = get_type_hints(AgentCapabilities)
CapabilitiesView = msgspec.defstruct(
    "AgentCapabilities",
    [*((field.name, _HINTS[field.name]) for field in fields(AgentCapabilities)), ("protocols", list[str])],
    namespace={"__doc__": AgentCapabilities.__doc__},
    rename="camel",
    kw_only=True,
)
"""The type of `capabilities_json`, for schemas."""
