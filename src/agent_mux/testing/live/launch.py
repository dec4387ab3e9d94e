"""How a run is told which program is the agent: by the variable of its adapter, or as a command where it takes any."""

from collections.abc import Mapping
from dataclasses import dataclass

from agent_mux.registry import AdapterRegistry
from agent_mux.testing.live.kit import LiveKit, Place

__all__ = ["Launch", "launch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What starts one agent in one place."""

    environment: Mapping[str, str]
    """All that the agent gets, the variable that names its program among it."""
    command: tuple[str, ...] = ()
    """`RunOptions.command`; empty for an agent with a program of its own."""


def launch(kit: LiveKit, place: Place, program: str) -> Launch:
    """Start this program as the agent of the kit. Writes the agent's configuration."""
    adapter = AdapterRegistry().get(kit.agent)
    environment = kit.environment(place)
    if adapter.needs_command:
        return Launch(environment=environment, command=(program, *kit.arguments))
    return Launch(environment={**environment, adapter.executable_variable: program})
