"""Where kits are found: the entry-point group `agent_mux.live_kits`, of this distribution and of any other."""

from functools import cache
from importlib import metadata

from agent_mux.errors import AgentMuxError
from agent_mux.testing.live.kit import LiveKit, Pin

__all__ = ["GROUP", "kit_of", "kits", "pin_of"]

GROUP = "agent_mux.live_kits"


@cache
def kits() -> dict[str, LiveKit]:
    """All installed kits by agent, in the order of their names."""
    found = [point.load() for point in metadata.entry_points(group=GROUP)]
    return {kit.agent: kit for kit in sorted(found, key=lambda kit: kit.agent)}


def kit_of(agent: str) -> LiveKit:
    """The kit of an agent. Raises AGENT_NOT_FOUND."""
    if agent not in kits():
        known = ", ".join(kits()) or "none"
        raise AgentMuxError("AGENT_NOT_FOUND", f"no kit for driving {agent!r} in tests; there are: {known}")
    return kits()[agent]


def pin_of(agent: str, version: str | None = None) -> Pin:
    """A pinned version of an agent, the first where none is named. Raises AGENT_NOT_FOUND."""
    pins = kit_of(agent).pins
    for pin in pins:
        if version in {None, pin.version}:
            return pin
    known = ", ".join(pin.version for pin in pins)
    raise AgentMuxError("AGENT_NOT_FOUND", f"{agent} {version} is not pinned; pinned: {known}")
