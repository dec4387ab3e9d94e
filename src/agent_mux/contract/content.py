"""What one agent does: the content of a turn, or the inside of a sub-agent."""

from agent_mux.contract.breach import Report
from agent_mux.contract.calls import Calls
from agent_mux.contract.opened import Opened
from agent_mux.contract.prose import Prose
from agent_mux.events.base import BaseEvent
from agent_mux.events.guards import category_of


class Content:
    """The prose and the calls of one scope."""

    def __init__(self, used_call_ids: set[str]) -> None:
        self.prose = Prose()
        self._calls = Calls(used_call_ids)

    def see(self, event: BaseEvent, *, compact: bool, report: Report) -> None:
        """Check one event; those of other families say nothing here."""
        family = category_of(event.type)
        if family in ("text", "thinking"):
            self.prose.see(event, compact=compact, report=report)
        elif family in ("tool", "mcp", "shell", "file"):
            self._calls.see(event, compact=compact, report=report)

    def opened(self) -> Opened:
        """What is open."""
        yield from self.prose.opened()
        yield from self._calls.opened()
