"""One prompt of the editor that is not answered yet."""

import anyio
from acp import RequestError
from acp.schema import PromptResponse

from agent_mux.acp_agent.outcome import Outcome, response
from agent_mux.events import CostRecord, ErrorEvent


class Turn:
    """What is known of it so far."""

    def __init__(self) -> None:
        self.over = anyio.Event()
        self.is_sent = False
        """The agent was told."""
        self.has_begun = False
        """The agent took it up: the end of a turn is that of this one."""
        self.is_cancelled = False
        self.failure: ErrorEvent | None = None
        """What the agent said last, if it was that the turn failed."""
        self.cost: CostRecord | None = None
        self._outcome: Outcome = "cancelled"

    def settle(self, outcome: Outcome) -> None:
        """It is over. Told once."""
        if not self.over.is_set():
            self._outcome = outcome
            self.over.set()

    def answer(self) -> PromptResponse:
        """What the editor is told. Raises `RequestError` for a turn that failed: unless it was cancelled anyway."""
        if self.is_cancelled:
            return response("cancelled", self.cost)
        if isinstance(self._outcome, RequestError):
            raise self._outcome
        return response(self._outcome, self.cost)
