"""One run of a session: its events go to the editor, in order, and tell how the turn ended."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from agent_mux import events
from agent_mux.acp_agent.turns import EditorTurn, run_outcome, turn_outcome
from agent_mux.acp_agent.updates import RunUpdates
from agent_mux.run.handle import RunHandle
from agent_mux.run.result import RunResult
from agent_mux.run.state import TERMINAL

_WORK_EVENTS = (
    events.TurnStartEvent, events.MessageStartEvent, events.ThinkingStartEvent, events.ToolCallStartEvent,
    events.McpToolCallStartEvent, events.SubagentSpawnEvent,
)  # fmt: skip
"""After one of these, an error that was told before it did not end the turn."""
SendUpdate = Callable[[Any], Awaitable[None]]


class SessionRun:
    """A run, and what has been read of it."""

    def __init__(self, run: RunHandle, updates: RunUpdates, choices: tuple[Any, ...], *, stays_open: bool) -> None:
        """`choices`: what was chosen when it was started. `stays_open`: it takes more prompts than the first."""
        self.run = run
        self.updates = updates
        self.choices = choices
        self.turn: EditorTurn | None = None
        """The prompt that it works on."""
        self.all_reported = anyio.Event()
        """The editor knows all of it."""
        self._stays_open = stays_open
        self._asked: dict[str, anyio.Event] = {}
        self._scopes: dict[str, anyio.CancelScope] = {}

    @property
    def is_over(self) -> bool:
        """It takes no more prompts."""
        return not self._stays_open or self.run.state in TERMINAL

    async def follow(self, tell: SendUpdate) -> RunResult:
        """Tell the editor of everything, until the run is over."""
        async for event in self.run:
            for update in self.updates.convert(event):
                await tell(update)
            self._note(event)
        result = await self.run
        if self.turn is not None:
            self.turn.finish(run_outcome(result, self._guidance))
        return result

    async def wait_until_reported(self, interaction_id: str) -> None:
        """Wait until the editor knows what was before this request."""
        await self._asked.setdefault(interaction_id, anyio.Event()).wait()

    def request_scope(self, interaction_id: str) -> anyio.CancelScope:
        """What is asked inside of this scope is dropped when the agent waits for it no more."""
        return self._scopes.setdefault(interaction_id, anyio.CancelScope())

    def cancel_requests(self) -> None:
        """Nobody wants to know any more."""
        for scope in self._scopes.values():
            scope.cancel()

    @property
    def _guidance(self) -> str:
        return self.run.adapter.auth_guidance

    def _note(self, event: events.AgentEvent) -> None:
        turn = self.turn
        match event:
            case events.ApprovalRequestEvent() | events.InputRequiredEvent():
                self._asked.setdefault(event.interaction_id, anyio.Event()).set()
            case events.ApprovalGrantedEvent() | events.ApprovalDeniedEvent():
                self._forget(event.interaction_id)
        if turn is None:
            return
        if isinstance(event, _WORK_EVENTS):
            turn.failure = None
        match event:
            case events.TurnStartEvent():
                turn.has_begun = True
            case events.ErrorEvent(recoverable=True):
                turn.failure = event
            case events.TurnEndEvent() if turn.has_begun:
                turn.cost = event.cost
                self._hand_back(turn)

    def _hand_back(self, turn: EditorTurn) -> None:
        # A turn also ends where its run does: then the run says how.
        if not self.is_over:
            turn.finish(turn_outcome(turn.failure, self._guidance))
            self.turn = None

    def _forget(self, interaction_id: str) -> None:
        self._asked.pop(interaction_id, None)
        scope = self._scopes.pop(interaction_id, None)
        if scope is not None:
            scope.cancel()
