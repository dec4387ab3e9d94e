"""The checker: receives the events of one run in order and returns the violations of the contract."""

from collections.abc import Iterable, Mapping
from typing import Any

from agent_mux.contract.breach import Breach, OpenItems, report_open_items
from agent_mux.contract.content import ContentRules, SubagentRules
from agent_mux.contract.reading import read
from agent_mux.contract.run import EnvelopeRules, RunRules, check_position, is_diagnostic, is_run_level
from agent_mux.contract.session import InteractionRules, SessionRules, TurnRules
from agent_mux.events.base import BaseEvent
from agent_mux.events.guards import is_terminal_event
from agent_mux.events.session import SessionEndEvent, StepEndEvent, StepStartEvent, TurnEndEvent, TurnStartEvent
from agent_mux.events.tools import SubagentErrorEvent, SubagentResultEvent, SubagentSpawnEvent

_SubagentEvent = SubagentSpawnEvent | SubagentResultEvent | SubagentErrorEvent


def validate(events: Iterable[BaseEvent | Mapping[str, Any]], *, complete: bool = True) -> list[Breach]:
    """Check a stream and return its violations.

    Args:
        events: Event objects, or objects in JSON form.
        complete: False if the stream may be incomplete; what is open or missing at its end is then accepted.
    """
    checker = ContractChecker()
    breaches = [breach for event in events for breach in checker.feed(event)]
    return breaches + checker.finish() if complete else breaches


class ContractChecker:
    """Checks a stream event by event. Memory holds the open items and the ids that may not be used again."""

    def __init__(self) -> None:
        self._index = -1
        self._type: str | None = None
        self._breaches: list[Breach] = []
        self._call_ids: set[str] = set()
        self._envelope = EnvelopeRules()
        self._run = RunRules()
        self._session = SessionRules()
        self._turns = TurnRules()
        self._content = ContentRules(self._call_ids)
        self._subagents = SubagentRules(self._call_ids)
        self._interactions = InteractionRules()

    def feed(self, event: BaseEvent | Mapping[str, Any]) -> list[Breach]:
        """Check the next event, an object or its JSON form, and return its violations."""
        reading = read(event)
        self._index += 1
        self._type = reading.type
        for problem in reading.problems:
            self._report("2.1", problem)
        if reading.event is not None:
            self._check(reading.event, compact=reading.compact)
        return self._drain()

    def finish(self) -> list[Breach]:
        """End the stream and return what is missing at its end."""
        self._index += 1
        self._type = None
        self._run.finish(self._report)
        if not self._run.is_over:
            report_open_items(self._open_items(), "at the end", self._report)
        return self._drain()

    def _report(self, rule: str, message: str) -> None:
        self._breaches.append(Breach(rule, message, self._index, self._type))

    def _drain(self) -> list[Breach]:
        breaches, self._breaches = self._breaches, []
        return breaches

    def _check(self, event: BaseEvent, *, compact: bool) -> None:
        self._envelope.check(event, self._report)
        if is_diagnostic(event) or not self._run.admits(event, self._report):
            return
        if event.subagent_id is None or isinstance(event, _SubagentEvent):
            self._check_main(event, compact=compact)
        elif is_run_level(event):
            self._report("13.2", f"{event.type} must not occur inside sub-agent {event.subagent_id!r}")
        else:
            self._subagents.check_inside(event, compact=compact, report=self._report)
        self._interactions.check(event, self._report)

    def _check_main(self, event: BaseEvent, *, compact: bool) -> None:
        in_turn, had_turns = self._turns.turn is not None, self._turns.started > 0
        check_position(event, in_turn=in_turn, had_turns=had_turns, report=self._report)
        self._check_boundary(event)
        self._run.check(event, self._report)
        self._turns.check(event, self._report)
        self._session.check(event, self._turns.ended, self._report)
        self._content.check(event, compact=compact, report=self._report)
        self._subagents.check(event, self._report)

    def _check_boundary(self, event: BaseEvent) -> None:
        """Report what is still open at an event that requires its end; each open item is reported once."""
        when = f"at {event.type}"
        if isinstance(event, StepStartEvent | StepEndEvent):
            report_open_items(self._content.messages.open_items(), when, self._report)
        elif isinstance(event, SubagentResultEvent | SubagentErrorEvent):
            report_open_items(self._interactions.open_items_of(event.subagent_id), when, self._report)
            self._interactions.forget(event.subagent_id)
        elif isinstance(event, TurnStartEvent | TurnEndEvent):
            report_open_items(self._open_items_of_turn(), when, self._report)
            self._forget_turn()
        elif (is_terminal_event(event) or isinstance(event, SessionEndEvent)) and not self._run.is_over:
            report_open_items(self._open_items(), when, self._report)

    def _open_items_of_turn(self) -> OpenItems:
        yield from self._content.open_items()
        yield from self._turns.open_step()
        yield from self._interactions.open_items_of(None)

    def _open_items(self) -> OpenItems:
        yield from self._content.open_items()
        yield from self._subagents.open_items()
        yield from self._interactions.open_items()
        yield from self._turns.open_step()
        yield from self._turns.open_turn()

    def _forget_turn(self) -> None:
        self._content = ContentRules(self._call_ids)
        self._interactions.forget(None)
