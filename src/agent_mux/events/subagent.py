"""Sub-agent dispatch events. Source: agent-events spec, section 13."""

from typing import ClassVar, Literal

from agent_mux.events.base import BaseEvent
from agent_mux.events.cost import CostRecord


class SubagentSpawnEvent(BaseEvent, frozen=True):
    """The agent delegates a task to another agent. Source: agent-events spec, section 13.1."""

    type: ClassVar[Literal["subagent_spawn"]] = "subagent_spawn"

    subagent_id: str
    """Shared by the events of this delegation."""
    agent_name: str
    """Which kind of agent."""
    prompt: str
    """The task."""


class SubagentResultEvent(BaseEvent, frozen=True):
    """The sub-agent finished. Source: agent-events spec, section 13.1."""

    type: ClassVar[Literal["subagent_result"]] = "subagent_result"

    subagent_id: str
    """The delegation."""
    agent_name: str
    """Which kind of agent."""
    summary: str
    """What it reported."""
    cost: CostRecord | None = None
    """What it cost."""


class SubagentErrorEvent(BaseEvent, frozen=True):
    """The sub-agent failed or never reported. Source: agent-events spec, section 13.1."""

    type: ClassVar[Literal["subagent_error"]] = "subagent_error"

    subagent_id: str
    """The delegation."""
    agent_name: str
    """Which kind of agent."""
    error: str
    """What went wrong."""
