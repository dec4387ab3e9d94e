"""Installed kits, the cache of provisioned programs, and how a run starts the program of a kit.

Kits are found through the entry-point group `agent_mux.live_kits`, in this distribution and in any other.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from agent_mux.errors import AgentMuxError
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux_testing.live.kit import KitContext, LiveKit, Pin

__all__ = ["GROUP", "Launch", "cache_directory", "kit_of", "kits", "launch", "pin_of"]

GROUP = "agent_mux.live_kits"


@cache
def kits() -> dict[str, LiveKit]:
    """Return all installed kits by agent, in the order of their names."""
    found = [point.load() for point in metadata.entry_points(group=GROUP)]
    return {kit.agent: kit for kit in sorted(found, key=lambda kit: kit.agent)}


def kit_of(agent: str) -> LiveKit:
    """Return the kit of an agent. Raise AGENT_NOT_FOUND when it has none."""
    if agent not in kits():
        known = ", ".join(kits()) or "none"
        raise AgentMuxError("AGENT_NOT_FOUND", f"no live kit for {agent!r}; agents with kits: {known}")
    return kits()[agent]


def pin_of(agent: str, version: str | None = None) -> Pin:
    """Return a pinned version of an agent, by default its first. Raise AGENT_NOT_FOUND when it is not pinned."""
    pins = kit_of(agent).pins
    for pin in pins:
        if version in {None, pin.version}:
            return pin
    known = ", ".join(pin.version for pin in pins)
    raise AgentMuxError("AGENT_NOT_FOUND", f"{agent} {version} is not pinned; pinned: {known}")


def cache_directory() -> Path:
    """Return the directory of provisioned programs: `$AMUX_AGENT_CACHE`, else `~/.cache/agent-mux/agents`."""
    directory = os.environ.get("AMUX_AGENT_CACHE")
    return Path(directory) if directory else Path.home() / ".cache" / "agent-mux" / "agents"


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """The options that make a run start one program in one place."""

    environment: Mapping[str, str]
    """The whole environment of the agent, with the variable that names its program."""
    command: tuple[str, ...] = ()
    """`RunOptions.command`; empty for an agent with a program of its own."""


def launch(kit: LiveKit, context: KitContext, program: str) -> Launch:
    """Return how to start this program as the agent of the kit, and write the agent's configuration."""
    adapter = AdapterRegistry().get(kit.agent)
    environment = kit.environment(context)
    if adapter.needs_command:
        return Launch(environment=environment, command=(program, *kit.arguments))
    return Launch(environment={**environment, adapter.executable_variable: program})
