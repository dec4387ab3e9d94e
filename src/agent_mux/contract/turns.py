"""Turns and steps: numbered, nested, never overlapping. Sections 6 and 25.2."""

from agent_mux.contract.breach import Report
from agent_mux.contract.opened import Opened
from agent_mux.events.base import BaseEvent
from agent_mux.events.turn import StepEndEvent, StepStartEvent, TurnEndEvent, TurnStartEvent


class Turns:
    """The turn and the step that are open."""

    def __init__(self) -> None:
        self.turn: int | None = None
        """Index of the open turn."""
        self.started = 0
        """Turns begun so far."""
        self.ended = 0
        self._step: int | None = None
        self._next_step = 0

    def see(self, event: BaseEvent, report: Report) -> None:
        """Check one event; those of other families say nothing here."""
        match event:
            case TurnStartEvent():
                self._start(event.turn_index, report)
            case TurnEndEvent():
                self._end(event.turn_index, report)
            case StepStartEvent():
                self._start_step(event, report)
            case StepEndEvent():
                self._end_step(event, report)

    def opened_turn(self) -> Opened:
        """The open turn."""
        if self.turn is not None:
            yield "25.2.1", f"turn {self.turn}"

    def opened_step(self) -> Opened:
        """The open step."""
        if self._step is not None:
            yield "6.5", f"step {self._step}"

    def _start(self, index: int, report: Report) -> None:
        if self.turn is not None:
            report("25.2.2", f"turn {index} starts while turn {self.turn} is open")
        if index != self.started:
            report("6.1", f"turn {index} comes where turn {self.started} is due")
        self.started = max(self.started, index) + 1
        self.turn, self._step, self._next_step = index, None, 0

    def _end(self, index: int, report: Report) -> None:
        if self.turn is None:
            report("25.2.1", f"turn {index} ends and none is open")
        elif index != self.turn:
            report("25.2.1", f"turn {index} ends while turn {self.turn} is open")
        self.ended += self.turn is not None
        self.turn = self._step = None

    def _start_step(self, event: StepStartEvent, report: Report) -> None:
        self._in_its_turn(event, report)
        if self._step is not None:
            report("6.5", f"step {event.step_index} starts while step {self._step} is open")
        if event.step_index != self._next_step:
            report("6.5", f"step {event.step_index} comes where step {self._next_step} is due")
        self._step = event.step_index
        self._next_step = event.step_index + 1

    def _end_step(self, event: StepEndEvent, report: Report) -> None:
        self._in_its_turn(event, report)
        if self._step is None:
            report("6.5", f"step {event.step_index} ends and none is open")
        elif event.step_index != self._step:
            report("6.5", f"step {event.step_index} ends while step {self._step} is open")
        self._step = None

    def _in_its_turn(self, event: StepStartEvent | StepEndEvent, report: Report) -> None:
        if self.turn is None:
            report("25.2.4", "a step outside a turn")
        elif event.turn_index != self.turn:
            report("25.2.4", f"a step of turn {event.turn_index} inside turn {self.turn}")
