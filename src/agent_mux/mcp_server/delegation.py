"""One run that somebody delegated, as the server sees it."""

from collections.abc import Callable

import anyio

from agent_mux.events import AgentEvent, CostEvent, TurnEndEvent, TurnStartEvent
from agent_mux.mcp_server.entries import file_of, is_told
from agent_mux.run.handle import RunHandle
from agent_mux.sdk.options import ApprovalMode

MOST_FILES = 200  # that are remembered as changed; the events have them all


class Delegation:
    """A run, and what is remembered of it: numbers and names, never what it printed."""

    def __init__(self, run: RunHandle, on_cost: Callable[[str, float], None]) -> None:
        """Listen from the first event on."""
        self.run = run
        self.prompt = ""
        """Its beginning."""
        self.cwd = ""
        self.approval_mode: ApprovalMode = "deny"
        self.is_kept_open = False
        self.count = 0
        """Events so far."""
        self.told = 0
        """Events up to the last one that has an entry."""
        self.cursor = 0
        """Events that were shown to the client."""
        self.files: dict[str, None] = {}
        self.cost_usd: float | None = None
        self.is_over = False
        self._is_between_turns = False
        self._on_cost = on_cost
        self._news = anyio.Event()
        run.on("*", self._see)

    def _see(self, event: AgentEvent) -> None:
        self.count += 1
        if is_told(event):
            self.told = self.count
        path = file_of(event)
        if path is not None and len(self.files) < MOST_FILES:
            self.files[path] = None
        if isinstance(event, CostEvent) and event.cost.source != "unknown":
            self.cost_usd = event.cost.total_usd
            self._on_cost(self.run.run_id, event.cost.total_usd)
        elif isinstance(event, TurnStartEvent | TurnEndEvent) and event.subagent_id is None:
            self._is_between_turns = isinstance(event, TurnEndEvent)
        self._wake()

    def end(self) -> None:
        """The run is over: its result is there."""
        self.is_over = True
        self._wake()

    def _wake(self) -> None:
        news, self._news = self._news, anyio.Event()
        news.set()

    @property
    def is_idle(self) -> bool:
        """It has done all it was asked, and waits for a further prompt. A run that is not kept open is about to end."""
        return self.is_kept_open and self._is_between_turns and not self.is_over and not self.run.is_busy

    @property
    def is_waiting(self) -> bool:
        """It is over, or it waits for somebody."""
        return self.is_over or self.is_idle or bool(self.run.interaction.pending)

    async def until_news(self, seconds: float) -> None:
        """Wait for the next event, or the end, at most so long."""
        with anyio.move_on_after(seconds):
            await self._news.wait()
