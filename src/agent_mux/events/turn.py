"""Turn and step lifecycle events. Source: agent-events spec, section 6."""

from typing import ClassVar, Literal

from agent_mux.events.base import BaseEvent, Index
from agent_mux.events.cost import CostRecord


class TurnStartEvent(BaseEvent, frozen=True):
    """The agent takes up a prompt. Source: agent-events spec, section 6.1."""

    type: ClassVar[Literal["turn_start"]] = "turn_start"

    turn_index: Index
    """Position in this run."""


class TurnEndEvent(BaseEvent, frozen=True):
    """The agent hands back. Source: agent-events spec, section 6.2."""

    type: ClassVar[Literal["turn_end"]] = "turn_end"

    turn_index: Index
    """As in `turn_start`."""
    cost: CostRecord | None = None
    """This turn alone."""


class StepStartEvent(BaseEvent, frozen=True):
    """One model call and the tools it asks for begin. Source: agent-events spec, section 6.3."""

    type: ClassVar[Literal["step_start"]] = "step_start"

    turn_index: Index
    """The turn."""
    step_index: Index
    """Position within the turn."""
    step_type: str
    """What the step did first: `thinking`, `generation`, `tool_use`; agents may add their own."""


class StepEndEvent(BaseEvent, frozen=True):
    """A step ends. Source: agent-events spec, section 6.4."""

    type: ClassVar[Literal["step_end"]] = "step_end"

    turn_index: Index
    """The turn."""
    step_index: Index
    """As in `step_start`."""
