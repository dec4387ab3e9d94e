"""The rules for sessions, turns, steps and interactions.

See docs/spec/events.md, sections 5, 6, 18, 23, 25.2 and 25.4. `approval_denied` may occur without a request: in `deny`
mode nothing is requested (18.2). That the run waits (25.4.2) and that the approved tool runs afterwards (25.4.3) cannot
be checked, because an approval names no tool call.
"""

from agent_mux.contract.breach import OpenItems, Report
from agent_mux.events.base import BaseEvent
from agent_mux.events.run import ApprovalDeniedEvent, ApprovalGrantedEvent, ApprovalRequestEvent, InputRequiredEvent
from agent_mux.events.session import (
    SessionCheckpointEvent,
    SessionEndEvent,
    SessionForkEvent,
    SessionResumeEvent,
    SessionStartEvent,
    StepEndEvent,
    StepStartEvent,
    TurnEndEvent,
    TurnStartEvent,
)

_SessionIdEvent = SessionResumeEvent | SessionForkEvent | SessionCheckpointEvent | SessionEndEvent


class SessionRules:
    """The rules for the session events: their order, and one session id."""

    def __init__(self) -> None:
        self._start: SessionStartEvent | None = None
        self._previous: type[BaseEvent] | None = None
        """The class of the previous domain event."""
        self._prior_turns = 0

    def check(self, event: BaseEvent, turns: int, report: Report) -> None:
        """Check a domain event. `turns` is the number of turns of this run that have ended."""
        start = self._start
        if isinstance(event, SessionStartEvent):
            self._check_start(event, report)
        elif isinstance(event, _SessionIdEvent) and start is not None:
            if event.session_id != start.session_id:
                report("23", f"session {event.session_id!r} in a run of session {start.session_id!r}")
            match event:
                case SessionResumeEvent():
                    self._check_resume(event, start, report)
                case SessionForkEvent():
                    self._check_fork(event, start, report)
                case SessionEndEvent() if event.turn_count < self._prior_turns + turns:
                    report("5.5", f"turnCount {event.turn_count} after {self._prior_turns} + {turns} turns")
        self._previous = type(event)

    def _check_start(self, event: SessionStartEvent, report: Report) -> None:
        if self._start is not None:
            report("5.1", "a second session_start")
        else:
            self._start = event

    def _check_resume(self, event: SessionResumeEvent, start: SessionStartEvent, report: Report) -> None:
        if not start.resumed:
            report("5.2", "session_start.resumed is false")
        if self._previous is not SessionStartEvent:
            report("5.2", "the event does not follow session_start directly")
        self._prior_turns = event.prior_turn_count

    def _check_fork(self, event: SessionForkEvent, start: SessionStartEvent, report: Report) -> None:
        if event.forked_from != start.forked_from:
            report("5.3", f"forkedFrom is {event.forked_from!r}, but {start.forked_from!r} in session_start")
        if self._previous not in (SessionStartEvent, SessionResumeEvent):
            report("5.3", "the event does not follow session_start or session_resume directly")


class TurnRules:
    """The rules for turns and steps: their numbers and nesting."""

    def __init__(self) -> None:
        self.turn: int | None = None
        """Index of the open turn; None between turns."""
        self.started = 0
        """Number of turns that have started."""
        self.ended = 0
        """Number of turns that have ended."""
        self._step: int | None = None
        self._next_step = 0

    def check(self, event: BaseEvent, report: Report) -> None:
        """Check a turn or step event; ignore other events."""
        match event:
            case TurnStartEvent():
                self._start(event.turn_index, report)
            case TurnEndEvent():
                self._end(event.turn_index, report)
            case StepStartEvent():
                self._start_step(event, report)
            case StepEndEvent():
                self._end_step(event, report)

    def open_turn(self) -> OpenItems:
        """Yield the open turn, if any."""
        if self.turn is not None:
            yield "25.2.1", f"turn {self.turn}"

    def open_step(self) -> OpenItems:
        """Yield the open step, if any."""
        if self._step is not None:
            yield "6.5", f"step {self._step}"

    def _start(self, index: int, report: Report) -> None:
        if self.turn is not None:
            report("25.2.2", f"turn {index} starts while turn {self.turn} is open")
        if index != self.started:
            report("6.1", f"turn {index} starts, but turn {self.started} is next")
        self.started = max(self.started, index) + 1
        self.turn, self._step, self._next_step = index, None, 0

    def _end(self, index: int, report: Report) -> None:
        if self.turn is None:
            report("25.2.1", f"turn {index} ends, but no turn is open")
        elif index != self.turn:
            report("25.2.1", f"turn {index} ends while turn {self.turn} is open")
        self.ended += self.turn is not None
        self.turn = self._step = None

    def _start_step(self, event: StepStartEvent, report: Report) -> None:
        self._check_turn_of_step(event, report)
        if self._step is not None:
            report("6.5", f"step {event.step_index} starts while step {self._step} is open")
        if event.step_index != self._next_step:
            report("6.5", f"step {event.step_index} starts, but step {self._next_step} is next")
        self._step = event.step_index
        self._next_step = event.step_index + 1

    def _end_step(self, event: StepEndEvent, report: Report) -> None:
        self._check_turn_of_step(event, report)
        if self._step is None:
            report("6.5", f"step {event.step_index} ends, but no step is open")
        elif event.step_index != self._step:
            report("6.5", f"step {event.step_index} ends while step {self._step} is open")
        self._step = None

    def _check_turn_of_step(self, event: StepStartEvent | StepEndEvent, report: Report) -> None:
        if self.turn is None:
            report("25.2.4", "a step outside a turn")
        elif event.turn_index != self.turn:
            report("25.2.4", f"a step of turn {event.turn_index} inside turn {self.turn}")


class InteractionRules:
    """The rules for approvals and questions of the main agent and its sub-agents."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._open: dict[str, str | None] = {}
        """Interaction id -> the sub-agent that requested the approval; None for the main agent."""

    def check(self, event: BaseEvent, report: Report) -> None:
        """Check an interaction event; ignore other events."""
        match event:
            case InputRequiredEvent():
                self._use(event.interaction_id, report)
            case ApprovalRequestEvent():
                self._use(event.interaction_id, report)
                self._open[event.interaction_id] = event.subagent_id
            case ApprovalGrantedEvent() | ApprovalDeniedEvent():
                self._decide(event, report)

    def open_items(self) -> OpenItems:
        """Yield the approvals that are not decided."""
        for interaction_id in self._open:
            yield "18.2", f"approval {interaction_id!r}"

    def open_items_of(self, subagent_id: str | None) -> OpenItems:
        """Yield the undecided approvals of one sub-agent, or of the main agent if None."""
        for interaction_id, requester in self._open.items():
            if requester == subagent_id:
                yield "18.2", f"approval {interaction_id!r}"

    def forget(self, subagent_id: str | None) -> None:
        """Drop the undecided approvals of one sub-agent, or of the main agent if None."""
        self._open = {key: requester for key, requester in self._open.items() if requester != subagent_id}

    def _use(self, interaction_id: str, report: Report) -> None:
        if interaction_id in self._used:
            report("18.1", f"interaction id {interaction_id!r} was used before")
        self._used.add(interaction_id)

    def _decide(self, event: ApprovalGrantedEvent | ApprovalDeniedEvent, report: Report) -> None:
        interaction_id = event.interaction_id
        if interaction_id in self._open:
            del self._open[interaction_id]
        elif interaction_id in self._used:
            report("18.2", f"approval {interaction_id!r} is decided twice, or is a question")
        elif isinstance(event, ApprovalGrantedEvent):
            report("25.4.1", f"approval {interaction_id!r} is granted without a request")
        else:
            self._used.add(interaction_id)
