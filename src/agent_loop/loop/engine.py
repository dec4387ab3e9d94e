"""One run: its beginning, its turns, its end. Source: loop spec, section 2; zidane, "Per run".

Whatever happens in it, it ends with `loop_end`, every tool call has its answer, and the session can go on.
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
    lone,
    words_of,
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
    LoopOver,
    SessionStart,
    SystemBefore,
    Trouble,
)
from agent_loop.loop.inputs import InputFilter, filtered
from agent_loop.loop.run import STOPPED_BY_HOOK, Ending, Run
from agent_loop.loop.turns import Turns
from agent_loop.messages import UserMessage
from agent_loop.tools.toolset import Toolset

CLEANUP = 5.0
"""Seconds for leaving things in order when the task itself is cancelled."""
Step = Callable[[], Awaitable[None]]


class Engine:
    """One run, from the first hook to `loop_end`."""

    def __init__(
        self,
        run: Run,
        prompts: Sequence[UserMessage],
        *,
        filters: Sequence[InputFilter] = (),
        make_toolset: Callable[[Sequence[Any]], Toolset],
    ) -> None:
        self._run = run
        self._prompts = prompts
        self._filters = filters
        self._make_toolset = make_toolset
        self._turns = Turns(run)
        self._to_do: deque[Step] = deque((self._begin_at_last, self._tell_final, self._tell_hooks, self._tell_end))
        """What is left of the end, in order."""
        self.scope = anyio.CancelScope()
        self.ending = Ending(status="aborted")

    def abort(self, reason: str) -> None:
        """Stop as soon as possible, in order. For the event loop's own thread."""
        if self._run.abort_reason is None:
            self._run.abort_reason = reason
            self.scope.cancel()

    async def execute(self) -> Ending:
        """All of it. Raises cancellation from outside, and what a watcher raises at the end, with things in order."""
        try:
            await self._carried_out()
            await self._end()
        except BaseException:
            with anyio.CancelScope(shield=True), anyio.move_on_after(CLEANUP):
                await self._end()
            raise
        return self.ending

    async def _carried_out(self) -> None:
        with self.scope:
            self.ending = await self._within_time()
        if self.scope.cancelled_caught:
            reason = self._run.abort_reason or "aborted"
            self.ending = Ending(status="aborted", error=AbortedError(reason))
            await self._run.hooks.fire("agent:abort", Abort(reason=reason, **self._run.where))

    # -- beginning and end ------------------------------------------------------------------------------------------

    async def _within_time(self) -> Ending:
        ending: Ending | None = None
        with anyio.move_on_after(self._seconds()):
            ending = await self._guarded()
        return ending if ending is not None else await self._turns.stopped(self._run.tracker.out_of_time())

    def _seconds(self) -> float | None:
        seconds = self._run.tracker.remaining_seconds()
        return None if seconds == float("inf") else seconds

    async def _guarded(self) -> Ending:
        try:
            return await self._begin() or await self._turns.play()
        except Exception as several:  # noqa: BLE001  # whatever it is, the run ends in order and says it
            error = lone(several)
            await self._run.hooks.fire("error", Trouble(error=error, **self._run.where))
            return Ending(status="failed", error=error)

    async def _begin(self) -> Ending | None:
        run = self._run
        loading = BeforeAgent(tools=list(run.toolset), state=run.state, **run.where)
        await run.hooks.fire("agent:before", loading)
        for note in loading.notes:
            await run.tell(Noted(loop_id=run.loop_id, text=str(note)))
        run.toolset = self._make_toolset(loading.tools)
        run.tool_tokens = estimate_tools(run.toolset.definitions())
        await run.hooks.fire("session:start", SessionStart(resumed=run.base > 0, **run.where))
        if run.own_system:
            await run.hooks.fire("system:before", SystemBefore(system=run.system, **run.where))
        before = BeforeLoop(messages=list(run.history), loop_index=run.loop_index, **run.where)
        await run.hooks.fire("loop:before", before)
        await run.tell(self._start())
        if before.stop:
            return Ending(status="aborted", error=AbortedError(STOPPED_BY_HOOK))
        return await self._take_prompts()

    def _start(self) -> LoopStart:
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
        )

    async def _take_prompts(self) -> Ending | None:
        run = self._run
        done = await filtered(self._prompts, self._filters)
        for warning in done.warnings:
            await run.tell(InputWarning(loop_id=run.loop_id, message=warning))
        if done.rejection is not None:
            await run.tell(InputRejected(loop_id=run.loop_id, reason=done.rejection))
            return Ending(status="rejected", rejection=done.rejection)
        await run.add(*done.prompts)
        return None

    async def _end(self) -> None:
        """Close what is open, and tell the end. Where it was broken off, it goes on behind that: nothing is twice."""
        try:
            await self._turns.close(f"Aborted: {self._run.abort_reason or 'the run ended before this tool did'}")
        except AgentLoopError as error:  # it cannot be stored; what happened before is worse news
            if self.ending.error is None:
                self.ending = Ending(status="failed", error=error)
        while self._to_do:
            await self._to_do.popleft()()

    async def _begin_at_last(self) -> None:
        """A run that was over before its beginning was told has both."""
        if not self._run.has_begun:
            await self._run.tell(self._start())

    async def _tell_final(self) -> None:
        run, ending = self._run, self.ending
        if ending.text is not None:
            await run.tell(Final(loop_id=run.loop_id, text=ending.text, output=ending.output))

    async def _tell_hooks(self) -> None:
        for hook in ("agent:done", "session:end"):
            await self._run.hooks.fire(hook, self._over())

    async def _tell_end(self) -> None:
        await self._run.tell(self._told_end())
        await self._run.hooks.fire("loop:after", self._over())

    def _over(self) -> LoopOver:
        run, ending = self._run, self.ending
        return LoopOver(
            status=ending.status,
            usage=run.tracker.usage,
            turns=run.tracker.turns,
            turn_range=(run.prior_turns, run.prior_turns + run.tracker.turns),
            messages=run.added,
            output=ending.output,
            **run.where,
        )

    def _told_end(self) -> LoopEnd:
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
            error=None if error is None else words_of(error) or type(error).__name__,
            error_kind="aborted" if isinstance(error, AbortedError) else kind,
            retry_after=error.retry_after if isinstance(error, RateLimitedError) else None,
            used_tokens=error.used_tokens if isinstance(error, ContextExceededError) else None,
            max_tokens=error.max_tokens if isinstance(error, ContextExceededError) else None,
            timestamp=run.surroundings.now_ms(),
        )
