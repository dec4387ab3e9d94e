"""Execution of one run: its start, its turns, its end.

Whatever fails, the run ends with `loop_end`, every tool call has a result, and the session can be continued.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import anyio

from agent_loop.context.estimation import estimate_tools
from agent_loop.errors import (
    AbortedError,
    AgentLoopError,
    ContextExceededError,
    ProviderError,
    RateLimitedError,
    error_text,
    first_error,
)
from agent_loop.events import (
    Final,
    InputRejected,
    InputWarning,
    LoopEnd,
    LoopStart,
    Noted,
)
from agent_loop.hooks.contexts import (
    Abort,
    BeforeAgent,
    BeforeLoop,
    LoopEnded,
    RunFailed,
    SessionStart,
    SystemBefore,
)
from agent_loop.loop.inputs import InputFilter, apply_filters
from agent_loop.loop.run import STOPPED_BY_HOOK, Ending, LoopRun
from agent_loop.loop.turns import TurnLoop
from agent_loop.messages import UserMessage
from agent_loop.tools.toolset import Toolset

CLEANUP = 5.0
"""Seconds for cleanup when the surrounding task is cancelled."""
EndStep = Callable[[], Awaitable[None]]


class Engine:
    """Executes one run, from the first hook to `loop_end`."""

    def __init__(
        self,
        run: LoopRun,
        prompts: Sequence[UserMessage],
        *,
        filters: Sequence[InputFilter] = (),
        make_toolset: Callable[[Sequence[Any]], Toolset],
    ) -> None:
        self._run = run
        self._prompts = prompts
        self._filters = filters
        self._make_toolset = make_toolset
        self._turns = TurnLoop(run)
        self._end_steps: deque[EndStep] = deque(
            (self._ensure_loop_start, self._emit_final, self._fire_end_hooks, self._emit_loop_end)
        )
        """Remaining steps of the end, in order."""
        self.scope = anyio.CancelScope()
        self.ending = Ending(status="aborted")

    def abort(self, reason: str) -> None:
        """Cancel the run and end it in an orderly way. Call it from the event loop's thread only."""
        if self._run.abort_reason is None:
            self._run.abort_reason = reason
            self.scope.cancel()

    async def execute(self) -> Ending:
        """Execute the whole run and return its outcome.

        Cancellation from outside and exceptions of a subscriber are raised after the run has been closed.
        """
        try:
            await self._run_until_aborted()
            await self._end()
        except BaseException:
            with anyio.CancelScope(shield=True), anyio.move_on_after(CLEANUP):
                await self._end()
            raise
        return self.ending

    async def _run_until_aborted(self) -> None:
        with self.scope:
            self.ending = await self._run_within_time()
        if self.scope.cancelled_caught:
            reason = self._run.abort_reason or "aborted"
            self.ending = Ending(status="aborted", error=AbortedError(reason))
            await self._run.hooks.fire("agent:abort", Abort(reason=reason, **self._run.hook_fields))

    # -- beginning and end ------------------------------------------------------------------------------------------

    async def _run_within_time(self) -> Ending:
        ending: Ending | None = None
        with anyio.move_on_after(self._seconds()):
            ending = await self._run_guarded()
        return ending if ending is not None else await self._turns.stop_at_limit(self._run.tracker.out_of_time())

    def _seconds(self) -> float | None:
        seconds = self._run.tracker.remaining_seconds()
        return None if seconds == float("inf") else seconds

    async def _run_guarded(self) -> Ending:
        try:
            return await self._begin() or await self._turns.run()
        except Exception as raised:  # noqa: BLE001  # any failure ends the run in an orderly way
            error = first_error(raised)
            await self._run.hooks.fire("error", RunFailed(error=error, **self._run.hook_fields))
            return Ending(status="failed", error=error)

    async def _begin(self) -> Ending | None:
        run = self._run
        context = BeforeAgent(tools=list(run.toolset), state=run.state, **run.hook_fields)
        await run.hooks.fire("agent:before", context)
        for note in context.notes:
            await run.emit(Noted(loop_id=run.loop_id, text=str(note)))
        run.toolset = self._make_toolset(context.tools)
        run.tool_tokens = estimate_tools(run.toolset.definitions())
        await run.hooks.fire("session:start", SessionStart(resumed=run.base > 0, **run.hook_fields))
        if run.overrides_system:
            await run.hooks.fire("system:before", SystemBefore(system=run.system, **run.hook_fields))
        before = BeforeLoop(messages=list(run.history), loop_index=run.loop_index, **run.hook_fields)
        await run.hooks.fire("loop:before", before)
        await run.emit(self._loop_start_event())
        if before.stop:
            return Ending(status="aborted", error=AbortedError(STOPPED_BY_HOOK))
        return await self._take_prompts()

    def _loop_start_event(self) -> LoopStart:
        run = self._run
        return LoopStart(
            loop_id=run.loop_id,
            agent_id=run.agent_id,
            session_id=run.session_id,
            parent_loop_id=run.parent_loop_id,
            continuation_kind=run.kind,
            model=run.provider.model,
            provider=run.provider.id,
            base=run.base,
            prior_turns=run.prior_turns,
            timestamp=run.surroundings.now_ms(),
            metadata=run.metadata,
            agent=run.acting,
            agent_since=run.agent_since,
        )

    async def _take_prompts(self) -> Ending | None:
        run = self._run
        outcome = await apply_filters(self._prompts, self._filters)
        for warning in outcome.warnings:
            await run.emit(InputWarning(loop_id=run.loop_id, message=warning))
        if outcome.rejection is not None:
            await run.emit(InputRejected(loop_id=run.loop_id, reason=outcome.rejection))
            return Ending(status="rejected", rejection=outcome.rejection)
        await run.add(*outcome.prompts)
        return None

    async def _end(self) -> None:
        """Close the open turn and emit the final events. A repeated call resumes at the step that was interrupted."""
        try:
            await self._turns.close(f"Aborted: {self._run.abort_reason or 'the run ended before this tool did'}")
        except AgentLoopError as error:  # the session cannot be stored; an earlier error takes precedence
            if self.ending.error is None:
                self.ending = Ending(status="failed", error=error)
        while self._end_steps:
            await self._end_steps.popleft()()

    async def _ensure_loop_start(self) -> None:
        """Emit `loop_start` if the run ended before it was emitted."""
        if not self._run.has_begun:
            await self._run.emit(self._loop_start_event())

    async def _emit_final(self) -> None:
        run, ending = self._run, self.ending
        if ending.text is not None:
            await run.emit(Final(loop_id=run.loop_id, text=ending.text, output=ending.output))

    async def _fire_end_hooks(self) -> None:
        for hook in ("agent:done", "session:end"):
            await self._run.hooks.fire(hook, self._loop_ended_context())

    async def _emit_loop_end(self) -> None:
        await self._run.emit(self._loop_end_event())
        await self._run.hooks.fire("loop:after", self._loop_ended_context())

    def _loop_ended_context(self) -> LoopEnded:
        run, ending = self._run, self.ending
        return LoopEnded(
            status=ending.status,
            usage=run.tracker.usage,
            turns=run.tracker.turns,
            turn_range=(run.prior_turns, run.prior_turns + run.tracker.turns),
            messages=run.added,
            output=ending.output,
            **run.hook_fields,
        )

    def _loop_end_event(self) -> LoopEnd:
        run, ending = self._run, self.ending
        error = ending.error
        kind = error.kind if isinstance(error, ProviderError) else None if error is None else "internal"
        return LoopEnd(
            loop_id=run.loop_id,
            status=ending.status,
            usage=run.tracker.usage,
            turns=run.tracker.turns,
            messages=tuple(run.added),
            rejection=ending.rejection,
            limit=ending.limit,
            error=None if error is None else error_text(error) or type(error).__name__,
            error_kind="aborted" if isinstance(error, AbortedError) else kind,
            error_status=error.status if isinstance(error, ProviderError) else None,
            retry_after=error.retry_after if isinstance(error, RateLimitedError) else None,
            used_tokens=error.used_tokens if isinstance(error, ContextExceededError) else None,
            max_tokens=error.max_tokens if isinstance(error, ContextExceededError) else None,
            timestamp=run.surroundings.now_ms(),
            handed_off_to=ending.handed_off_to,
        )
