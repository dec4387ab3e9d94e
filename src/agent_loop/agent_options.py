"""Arguments of one run of an agent, and the settings by which one agent differs from another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, TypedDict

from agent_loop.behavior import Behavior
from agent_loop.errors import ConfigurationError
from agent_loop.events import ContinuationKind
from agent_loop.hooks.registry import Handler, Hooks
from agent_loop.providers import Provider
from agent_loop.providers.registry import to_provider
from agent_loop.sessions.session import SpawnRef
from agent_loop.tools.toolset import ToolLike, as_tool
from agent_loop.workspace import Workspace

HooksArgument = Hooks | Mapping[str, Handler | Sequence[Handler]]
MAIN = "main"
"""Name of an agent without a name."""


class RunArguments(TypedDict, total=False):
    """Keyword arguments of `Agent.run`, which apply to one run and override those of the agent."""

    behavior: Behavior | None
    """Options that override the agent's."""
    hooks: HooksArgument | None
    """Handlers for this run."""
    system_prompt: str | None
    """Instructions instead of the agent's."""
    metadata: Any
    """Plain data for the first event and the record of the run."""
    deps: Any
    """Dependencies of the tools, instead of the agent's: `ToolContext.deps`."""
    spawned_by: SpawnRef | None
    """The tool call of another agent that starts this run as a sub-agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopArguments:
    """Arguments of one run besides its prompt."""

    kind: ContinuationKind | None = None
    at: int | None = None
    prompted: bool = False
    behavior: Behavior | None = None
    hooks: HooksArgument | None = None
    system_prompt: str | None = None
    metadata: Any = None
    deps: Any = None
    spawned_by: SpawnRef | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentChanges:
    """Settings of an agent that replace those of another; None keeps its setting."""

    provider: Provider | str | None = None
    fallbacks: Sequence[Provider | str] | None = None
    system_prompt: str | None = None
    behavior: Behavior | None = None
    """Options that override the agent's."""
    tools: Sequence[ToolLike] | None = None
    workspace: Workspace | str | PathLike[str] | None = None
    deps: Any = None

    def given(self) -> dict[str, Any]:
        """Return the changes that are set, as the values of an agent. Raises `ConfigurationError`."""
        found = {
            "provider": None if self.provider is None else to_provider(self.provider),
            "fallbacks": None if self.fallbacks is None else tuple(map(to_provider, self.fallbacks)),
            "system_prompt": self.system_prompt,
            "behavior": self.behavior,
            "tools": None if self.tools is None else tuple(map(as_tool, self.tools)),
            "workspace": as_workspace(self.workspace),
            "deps": self.deps,
        }
        return {name: value for name, value in found.items() if value is not None}


def as_workspace(workspace: Workspace | str | PathLike[str] | None) -> Workspace | None:
    """Return the workspace in a directory. Raises `ConfigurationError` for other values."""
    if not isinstance(workspace, Workspace | str | PathLike | None):
        raise ConfigurationError(f"workspace must be a directory or a Workspace(...), not {workspace!r}")
    return Workspace(Path(workspace)) if isinstance(workspace, str | PathLike) else workspace
