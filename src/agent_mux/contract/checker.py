"""The checker: takes the events of one run in order and tells every breach of the contract."""

from collections.abc import Iterable, Mapping
from typing import Any

from agent_mux.contract.breach import Breach, Envelope, Opened, report_opened
from agent_mux.contract.content import Content, Delegations
from agent_mux.contract.reading import read
from agent_mux.contract.run import Run, check_place, is_diagnostic, is_of_the_run
from agent_mux.contract.session import Interactions, Session, Turns
from agent_mux.events.base import BaseEvent
from agent_mux.events.guards import is_terminal_event
from agent_mux.events.session import SessionEndEvent, StepEndEvent, StepStartEvent, TurnEndEvent, TurnStartEvent
from agent_mux.events.tools import SubagentErrorEvent, SubagentResultEvent, SubagentSpawnEvent

_Subagent = SubagentSpawnEvent | SubagentResultEvent | SubagentErrorEvent


class ContractChecker:
    """Checks a stream as it comes, in memory for what is open (and the ids that may not be used again)."""

    def __init__(self) -> None:
        self._index = -1
        self._type: str | None = None
        self._found: list[Breach] = []
        self._call_ids: set[str] = set()
        self._envelope = Envelope()
        self._run = Run()
        self._session = Session()
        self._turns = Turns()
        self._content = Content(self._call_ids)
        self._delegations = Delegations(self._call_ids)
        self._interactions = Interactions()

    def feed(self, event: BaseEvent | Mapping[str, Any]) -> list[Breach]:
        """Take the next event, as an object or in wire form. Returns what it breaks."""
        reading = read(event)
        self._index += 1
        self._type = reading.type
        for problem in reading.problems:
            self._report("2.1", problem)
        if reading.event is not None:
            self._see(reading.event, compact=reading.compact)
        return self._take()

    def finish(self) -> list[Breach]:
        """The stream is complete. Returns what is missing at its end."""
        self._index += 1
        self._type = None
        self._run.finish(self._report)
        if not self._run.is_over:
            report_opened(self._opened(), "at the end", self._report)
        return self._take()

    def _report(self, rule: str, message: str) -> None:
        self._found.append(Breach(rule, message, self._index, self._type))

    def _take(self) -> list[Breach]:
        found, self._found = self._found, []
        return found

    def _see(self, event: BaseEvent, *, compact: bool) -> None:
        self._envelope.see(event, self._report)
        if is_diagnostic(event) or not self._run.admits(event, self._report):
            return
        if event.subagent_id is None or isinstance(event, _Subagent):
            self._see_main(event, compact=compact)
        elif is_of_the_run(event):
            self._report("13.2", f"sub-agent {event.subagent_id!r} has no {event.type} of its own")
        else:
            self._delegations.see_inside(event, compact=compact, report=self._report)
        self._interactions.see(event, self._report)

    def _see_main(self, event: BaseEvent, *, compact: bool) -> None:
        check_place(event, in_turn=self._turns.turn is not None, had_turns=self._turns.started > 0, report=self._report)
        self._check_boundary(event)
        self._run.see(event, self._report)
        self._turns.see(event, self._report)
        self._session.see(event, self._turns.ended, self._report)
        self._content.see(event, compact=compact, report=self._report)
        self._delegations.see(event, self._report)

    def _check_boundary(self, event: BaseEvent) -> None:
        """Some events end others: what is still open then is a breach, told once."""
        if isinstance(event, StepStartEvent | StepEndEvent):
            report_opened(self._content.prose.opened(), f"at {event.type}", self._report)
        elif isinstance(event, SubagentResultEvent | SubagentErrorEvent):
            report_opened(self._interactions.opened_by(event.subagent_id), f"at {event.type}", self._report)
            self._interactions.forget(event.subagent_id)
        elif isinstance(event, TurnStartEvent | TurnEndEvent):
            report_opened(self._opened_in_turn(), f"at {event.type}", self._report)
            self._forget_turn()
        elif (is_terminal_event(event) or isinstance(event, SessionEndEvent)) and not self._run.is_over:
            report_opened(self._opened(), f"at {event.type}", self._report)

    def _opened_in_turn(self) -> Opened:
        yield from self._content.opened()
        yield from self._turns.opened_step()
        yield from self._interactions.opened_by(None)

    def _opened(self) -> Opened:
        yield from self._content.opened()
        yield from self._delegations.opened()
        yield from self._interactions.opened()
        yield from self._turns.opened_step()
        yield from self._turns.opened_turn()

    def _forget_turn(self) -> None:
        self._content = Content(self._call_ids)
        self._interactions.forget(None)


def validate(events: Iterable[BaseEvent | Mapping[str, Any]], *, complete: bool = True) -> list[Breach]:
    """Check a stream. `complete=False`: it is a beginning, and nothing is said about what is open at its end."""
    checker = ContractChecker()
    breaches = [breach for event in events for breach in checker.feed(event)]
    return breaches + checker.finish() if complete else breaches
