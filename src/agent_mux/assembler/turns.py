"""Turns and the steps inside them: consecutive from zero, properly nested. §6, §25.2."""

from agent_mux.assembler.emitter import Emitter
from agent_mux.events.cost import CostRecord
from agent_mux.events.turn import StepEndEvent, StepStartEvent, TurnEndEvent, TurnStartEvent


class Turns:
    """The turn and the step that are open. A turn may be held: over for the agent, but waiting for its sub-agents."""

    __slots__ = ("_emitter", "_held_cost", "_step", "_step_due", "_step_open", "count", "is_held", "is_open")

    def __init__(self, emitter: Emitter) -> None:
        self._emitter = emitter
        self.is_open = False
        self.is_held = False
        self.count = 0
        """Turns that ended."""
        self._held_cost: CostRecord | None = None
        self._step = 0
        self._step_open = False
        self._step_due = False

    @property
    def has_started_event(self) -> bool:
        """`turn_start` was emitted and `turn_end` was not."""
        return self.is_open or self.is_held

    def open(self) -> None:
        """Begin the next turn."""
        self.is_open = True
        self._step = 0
        self._step_due = False
        self._emitter.emit(TurnStartEvent, self.count)

    def hold(self, cost: CostRecord | None) -> None:
        """The turn is over, but what it delegated is not: `turn_end` waits."""
        self.end_step()
        self.is_open, self.is_held, self._held_cost = False, True, cost

    def close(self, cost: CostRecord | None = None) -> None:
        """End the turn, if one is open or held."""
        if not self.has_started_event:
            return
        self.end_step()
        self._emitter.emit(TurnEndEvent, self.count, self._held_cost if self.is_held else cost)
        self.is_open = self.is_held = False
        self._held_cost = None
        self.count += 1

    def step_due(self) -> None:
        """A model call begins: a step starts with the first thing that happens in it, which gives it its type."""
        self.end_step()
        self._step_due = True

    def begin_step_if_due(self, step_type: str) -> None:
        """Something happens."""
        if self._step_due:
            self._step_due = False
            self._step_open = True
            self._emitter.emit(StepStartEvent, self.count, self._step, step_type)

    def end_step(self) -> None:
        """End the open step, if any."""
        self._step_due = False
        if self._step_open:
            self._step_open = False
            self._emitter.emit(StepEndEvent, self.count, self._step)
            self._step += 1
