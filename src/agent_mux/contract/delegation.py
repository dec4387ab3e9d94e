"""Sub-agents: spawned once, ended once, with a lawful inside. Section 13.

An event with a `subagentId` that is none of the three sub-agent events happened inside that sub-agent. The inside is a
stream of its own: it keeps the rules of a turn's content among itself, may be anywhere between spawn and end (also
while no turn of the main agent is open), and has no session, turn, or run of its own. Tool call ids and interaction
ids are unique in the whole run, inside and outside.
"""

from agent_mux.contract.breach import Report
from agent_mux.contract.content import Content
from agent_mux.contract.opened import Opened, report_opened
from agent_mux.events.base import BaseEvent
from agent_mux.events.subagent import SubagentErrorEvent, SubagentResultEvent, SubagentSpawnEvent


class Delegations:
    """The sub-agents that have not reported yet."""

    def __init__(self, used_call_ids: set[str]) -> None:
        self._used_call_ids = used_call_ids
        self._used: set[str] = set()
        self._open: dict[str, tuple[str, Content]] = {}

    def see(self, event: BaseEvent, report: Report) -> None:
        """Check one event of the main stream; those of other families say nothing here."""
        match event:
            case SubagentSpawnEvent():
                if event.subagent_id in self._used:
                    report("13.1", f"sub-agent id {event.subagent_id!r} was used before")
                self._used.add(event.subagent_id)
                self._open[event.subagent_id] = event.agent_name, Content(self._used_call_ids)
            case SubagentResultEvent() | SubagentErrorEvent():
                self._end(event, report)

    def see_inside(self, event: BaseEvent, *, compact: bool, report: Report) -> None:
        """Check one event that happened inside a sub-agent."""
        subagent = self._open.get(event.subagent_id or "")
        if subagent is None:
            report("13.2", f"an event inside sub-agent {event.subagent_id!r}, which is not open")
        else:
            subagent[1].see(event, compact=compact, report=report)

    def opened(self) -> Opened:
        """What is open."""
        for subagent_id, (_, inside) in self._open.items():
            yield "13.2", f"sub-agent {subagent_id!r}"
            yield from inside.opened()

    def _end(self, event: SubagentResultEvent | SubagentErrorEvent, report: Report) -> None:
        subagent = self._open.pop(event.subagent_id, None)
        if subagent is None:
            report("13.2", f"sub-agent {event.subagent_id!r} ends without being open")
            return
        name, inside = subagent
        if event.agent_name != name:
            report("13.1", f"sub-agent {event.subagent_id!r} was spawned as {name!r}, not {event.agent_name!r}")
        report_opened(inside.opened(), f"when sub-agent {event.subagent_id!r} ends", report)
