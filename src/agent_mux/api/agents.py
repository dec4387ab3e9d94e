"""Agents as JSON: what is known of them, what was found on this machine, and what they can do."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from agent_mux.agents.detection import DetectedAgent
from agent_mux.api import JsonView
from agent_mux.sdk.adapter import Adapter, AgentCapabilities
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.settings.options_json import camel


class AgentView(JsonView, kw_only=True):
    """An agent that can be driven: what its adapter says, and what was found on the machine when it was looked for."""

    agent: str
    """Its name, in every request."""
    display_name: str | UnsetType = UNSET
    aliases: list[str] | UnsetType = UNSET
    """Other names that mean it."""
    protocols: list[str] | UnsetType = UNSET
    """The native protocols that its adapter reads."""
    min_version: str | UnsetType = UNSET
    """Lowest version that the adapter is tested with."""
    tested_version: str | UnsetType = UNSET
    """The version of the recordings."""
    installed: bool | UnsetType = UNSET
    supported: bool | UnsetType = UNSET
    """Installed, in a version that is not too old."""
    version: str | UnsetType = UNSET
    """Of what is installed."""
    path: str | UnsetType = UNSET
    """Of its program, on the machine of the service."""
    problem: str | UnsetType = UNSET
    """What stands in the way, and what to do."""


class DetectedView(JsonView, kw_only=True):
    """What was found of one agent on the machine."""

    agent: str
    display_name: str
    installed: bool
    supported: bool
    """Installed, in a version that is not too old."""
    version: str | UnsetType = UNSET
    min_version: str
    """Lowest version that the adapter is tested with."""
    path: str | UnsetType = UNSET
    """Of its program."""
    problem: str | UnsetType = UNSET
    """What stands in the way, and what to do."""


def known_agents(adapters: AdapterRegistry) -> Iterator[AgentView]:
    """Every adapter, and behind them those that cannot be loaded."""
    yield from map(agent_view, adapters)
    yield from (AgentView(agent=name, problem=problem) for name, problem in adapters.problems.items())


def agent_view(adapter: Adapter) -> AgentView:
    """What an adapter says of its agent."""
    return AgentView(
        agent=adapter.agent,
        display_name=adapter.display_name,
        aliases=list(adapter.aliases),
        protocols=sorted(adapter.protocols),
        min_version=adapter.min_version,
        tested_version=adapter.tested_version,
    )


def detected_view(found: DetectedAgent) -> DetectedView:
    """What was found of one agent."""
    return DetectedView(
        agent=found.agent,
        display_name=found.display_name,
        installed=found.installed,
        supported=found.supported,
        version=_said(found.version),
        min_version=found.min_version,
        path=_said(found.path),
        problem=_said(found.problem),
    )


def with_detected(view: AgentView, found: DetectedAgent) -> AgentView:
    """Both together."""
    view.installed, view.supported = found.installed, found.supported
    view.version, view.path = _said(found.version), _said(found.path)
    if view.problem is UNSET:
        view.problem = _said(found.problem)
    return view


def capabilities_of(adapter: Adapter) -> dict[str, Any]:
    """What an agent can do, as fields of `AgentCapabilities`: plain lists, the sets sorted; and its protocols."""
    known = {name: _plain(value) for name, value in asdict(adapter.capabilities).items()}
    return {**known, "protocols": sorted(adapter.protocols)}


def capabilities_json(adapter: Adapter) -> dict[str, Any]:
    """The same in camelCase."""
    return {camel(name): value for name, value in capabilities_of(adapter).items()}


def detected_from_view(told: AgentView | DetectedView) -> DetectedAgent:
    """What was found, as it was told. Of an agent that was not looked for, that it is not installed."""
    return DetectedAgent(
        told.agent,
        told.display_name or told.agent,
        told.installed or False,
        told.path or None,
        told.version or None,
        told.min_version or "",
        told.supported or False,
        told.problem or None,
    )


def capabilities_from_json(told: Mapping[str, Any]) -> AgentCapabilities:
    """What an agent can do, as it was told. What is not told is as by default; what is told besides is passed over.

    Raises `msgspec.ValidationError` for what is of another kind.
    """
    known = {field.name: told[camel(field.name)] for field in fields(AgentCapabilities) if camel(field.name) in told}
    return msgspec.convert(known, AgentCapabilities)


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else list(value) if isinstance(value, tuple) else value


def _said(value: str | None) -> str | UnsetType:
    return UNSET if value is None else value


_HINTS = get_type_hints(AgentCapabilities)
CapabilitiesView = msgspec.defstruct(
    "AgentCapabilities",
    [*((field.name, _HINTS[field.name]) for field in fields(AgentCapabilities)), ("protocols", list[str])],
    namespace={"__doc__": AgentCapabilities.__doc__},
    rename="camel",
    kw_only=True,
)
"""The shape of `capabilities_json`."""
