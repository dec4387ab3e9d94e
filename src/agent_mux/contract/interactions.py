"""Approvals and questions: asked once, decided once. Sections 18 and 25.4.

`approval_denied` may stand alone: in `deny` mode nothing is asked (18.2). That the run waits (25.4.2) and that the
approved tool runs afterwards (25.4.3) cannot be seen in the stream: an approval names no tool call.
"""

from agent_mux.contract.breach import Report
from agent_mux.contract.opened import Opened
from agent_mux.events.base import BaseEvent
from agent_mux.events.interaction import (
    ApprovalDeniedEvent,
    ApprovalGrantedEvent,
    ApprovalRequestEvent,
    InputRequiredEvent,
)


class Interactions:
    """The approvals that are not decided yet, of the main agent and its sub-agents."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._open: dict[str, str | None] = {}
        """Interaction id -> the sub-agent that asks."""

    def see(self, event: BaseEvent, report: Report) -> None:
        """Check one event; those of other families say nothing here."""
        match event:
            case InputRequiredEvent():
                self._use(event.interaction_id, report)
            case ApprovalRequestEvent():
                self._use(event.interaction_id, report)
                self._open[event.interaction_id] = event.subagent_id
            case ApprovalGrantedEvent() | ApprovalDeniedEvent():
                self._decide(event, report)

    def opened(self) -> Opened:
        """What is open."""
        for interaction_id in self._open:
            yield "18.2", f"approval {interaction_id!r}"

    def opened_by(self, subagent_id: str | None) -> Opened:
        """What is open and asked by one agent; None: by the main one."""
        for interaction_id, asking in self._open.items():
            if asking == subagent_id:
                yield "18.2", f"approval {interaction_id!r}"

    def forget(self, subagent_id: str | None) -> None:
        """What this agent asked is over, decided or not."""
        self._open = {key: asking for key, asking in self._open.items() if asking != subagent_id}

    def _use(self, interaction_id: str, report: Report) -> None:
        if interaction_id in self._used:
            report("18.1", f"interaction id {interaction_id!r} was used before")
        self._used.add(interaction_id)

    def _decide(self, event: ApprovalGrantedEvent | ApprovalDeniedEvent, report: Report) -> None:
        interaction_id = event.interaction_id
        if interaction_id in self._open:
            del self._open[interaction_id]
        elif interaction_id in self._used:
            report("18.2", f"approval {interaction_id!r} is decided twice, or was a question")
        elif isinstance(event, ApprovalGrantedEvent):
            report("25.4.1", f"approval {interaction_id!r} is granted and was not requested")
        else:
            self._used.add(interaction_id)
