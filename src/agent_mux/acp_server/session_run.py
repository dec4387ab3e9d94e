"""One run of a session: forward its events to the editor and determine how each turn ends."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from agent_mux import events
from agent_mux.acp_server.turns import EditorTurn, run_outcome, turn_outcome
from agent_mux.acp_server.updates import RunUpdates
from agent_mux.run.base import TERMINAL_STATES
from agent_mux.run.handle import RunHandle
from agent_mux.run.result import RunResult

_WORK_EVENTS = (
    events.TurnStartEvent, events.MessageStartEvent, events.ThinkingStartEvent, events.ToolCallStartEvent,
    events.McpToolCallStartEvent, events.SubagentSpawnEvent,
)  # fmt: skip
"""Events of continued work: an error before one of these did not end the turn."""
SendUpdate = Callable[[Any], Awaitable[None]]


class SessionRun:
    """A run and the state derived from its events."""

    def __init__(self, handle: RunHandle, updates: RunUpdates, choices: tuple[Any, ...], *, stays_open: bool) -> None:
        """Initialize the state. `choices` are the values at its start; `stays_open`: it accepts more prompts."""
        self.handle = handle
        self.updates = updates
        self.choices = choices
        self.turn: EditorTurn | None = None
        """The turn of the current prompt."""
        self.all_reported = anyio.Event()
        """Set when all updates are sent to the editor."""
        self.takes_no_input = False
        """Whether the agent rejected a prompt because it is exiting."""
        self._stays_open = stays_open
        self._reported: dict[str, anyio.Event] = {}
        self._request_scopes: dict[str, anyio.CancelScope] = {}

    @property
    def is_over(self) -> bool:
        """Whether it accepts no more prompts."""
        return not self._stays_open or self.handle.state in TERMINAL_STATES

    async def follow(self, send_update: SendUpdate) -> RunResult:
        """Send updates for all events until the run is over. Return its result."""
        async for event in self.handle:
            for update in self.updates.convert(event):
                await send_update(update)
            self._track(event)
        result = await self.handle
        turn = self.turn
        if turn is not None:
            exited = result.exit_reason in {"completed", "truncated"} and result.exit_code == 0
            turn.is_unread = exited and turn.is_follow_up and not turn.has_begun
            turn.finish(run_outcome(result, self._guidance))
        return result

    async def wait_until_reported(self, interaction_id: str) -> None:
        """Wait until the updates before this request are sent."""
        await self._reported.setdefault(interaction_id, anyio.Event()).wait()

    def request_scope(self, interaction_id: str) -> anyio.CancelScope:
        """Return the cancel scope of a request; it is cancelled when no answer is needed any more."""
        return self._request_scopes.setdefault(interaction_id, anyio.CancelScope())

    def cancel_requests(self) -> None:
        """Cancel all pending requests to the editor."""
        for scope in self._request_scopes.values():
            scope.cancel()

    @property
    def _guidance(self) -> str:
        return self.handle.adapter.auth_guidance

    def _track(self, event: events.AgentEvent) -> None:
        turn = self.turn
        match event:
            case events.ApprovalRequestEvent() | events.InputRequiredEvent():
                self._reported.setdefault(event.interaction_id, anyio.Event()).set()
            case events.ApprovalGrantedEvent() | events.ApprovalDeniedEvent():
                self._close_request(event.interaction_id)
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
                self._end_turn(turn, event.stop_reason)

    def _end_turn(self, turn: EditorTurn, stop_reason: str | None) -> None:
        # A turn also ends with its run; the result of the run then determines the outcome.
        if not self.is_over:
            turn.finish(turn_outcome(turn.failure, self._guidance, stop_reason))
            self.turn = None

    def _close_request(self, interaction_id: str) -> None:
        self._reported.pop(interaction_id, None)
        scope = self._request_scopes.pop(interaction_id, None)
        if scope is not None:
            scope.cancel()
