"""The loop: ask the model, run its tools, until it is done. Source: loop spec, section 2; zidane, "Turn Loop".

Whatever happens in it, it ends with `loop_end`, every tool call has its answer, and the session can go on.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio

from agent_loop.context.estimation import estimate_tools
from agent_loop.context.output_budget import output_budget_message
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
    BudgetExceeded,
    Final,
    InputRejected,
    InputWarning,
    LimitReached,
    LoopEnd,
    LoopStart,
    LoopStatus,
    OutputProduced,
    Reasoning,
    TextSaid,
    TurnEnd,
    TurnStart,
)
from agent_loop.hooks.contexts import (
    Abort,
    BeforeAgent,
    BeforeLoop,
    BudgetOver,
    IncompleteWork,
    LoopOver,
    OutputTold,
    SessionStart,
    StreamEnd,
    SystemBefore,
    ToolResultsAfter,
    Trouble,
    TurnAfter,
    TurnBefore,
    TurnOver,
)
from agent_loop.loop.batches import Batch
from agent_loop.loop.filters import InputFilter, filtered
from agent_loop.loop.limits import Reached
from agent_loop.loop.model_calls import answered, prepared
from agent_loop.loop.outputs import final_summary, structured
from agent_loop.loop.responses import stamped
from agent_loop.loop.run import Run
from agent_loop.messages import AssistantMessage, UserMessage, user
from agent_loop.providers import ModelResponse
from agent_loop.tools.toolset import Toolset
from agent_loop.usage import Usage

CLEANUP = 5.0
"""Seconds for leaving things in order when the task itself is cancelled."""
Step = Callable[[], Awaitable[None]]
STOPPED_BY_HOOK = "a hook stopped the run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How the run ended."""

    status: LoopStatus
    text: str | None = None
    """None: there is no final answer."""
    output: Any = None
    error: Exception | None = None
    rejection: str | None = None


@dataclass(slots=True)
class _Turn:
    """The turn that goes on."""

    response: ModelResponse | None = None
    batch: Batch | None = None
    history_at: int = 0
    usage: Usage = field(default_factory=Usage)


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
        self._turn: _Turn | None = None
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
        return ending if ending is not None else await self._stopped(self._run.tracker.out_of_time())

    def _seconds(self) -> float | None:
        seconds = self._run.tracker.remaining_seconds()
        return None if seconds == float("inf") else seconds

    async def _guarded(self) -> Ending:
        try:
            return await self._begin() or await self._loop()
        except Exception as several:  # noqa: BLE001  # whatever it is, the run ends in order and says it
            error = lone(several)
            await self._run.hooks.fire("error", Trouble(error=error, **self._run.where))
            return Ending(status="failed", error=error)

    async def _begin(self) -> Ending | None:
        run = self._run
        tools = BeforeAgent(tools=list(run.toolset), state=run.state, **run.where)
        await run.hooks.fire("agent:before", tools)
        run.toolset = self._make_toolset(tools.tools)
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
        since = len(run.history)
        for prompt in done.prompts:
            await run.inject(prompt)
        if done.prompts:
            await run.keep(since)
        return None

    async def _end(self) -> None:
        """Close what is open, and tell the end. Where it was broken off, it goes on behind that: nothing is twice."""
        try:
            await self._close_turn(f"Aborted: {self._run.abort_reason or 'the run ended before this tool did'}")
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

    # -- turns ------------------------------------------------------------------------------------------------------

    async def _loop(self) -> Ending:
        run = self._run
        while True:
            await self._take_steering()
            reached = run.tracker.reached()
            if reached is not None:
                return await self._stopped(reached)
            if run.tracker.turns >= run.behavior.max_iterations:
                return await self._out_of_iterations()
            ending = await self._one_turn()
            if ending is not None:
                return ending
            run.turn += 1

    async def _take_steering(self) -> None:
        run = self._run
        since = len(run.history)
        for message in run.steering.take(run.behavior.steering_mode):
            await run.inject(message)
        if len(run.history) > since:
            await run.keep(since)

    async def _stopped(self, reached: Reached) -> Ending:
        """At a limit: the history says so, nothing more is asked. Source: phi-core, "Execution Limit Exhaustion"."""
        run = self._run
        await self._close_turn(f"Aborted: {reached.reason}")
        since = len(run.history)
        await run.inject(user(f"[Agent stopped: {reached.reason}]", origin="limit"))
        await run.tell(LimitReached(loop_id=run.loop_id, limit=reached.limit, reason=reached.reason))
        await run.keep(since)
        return Ending(status="limited")

    async def _out_of_iterations(self) -> Ending:
        run = self._run
        reason = f"{run.behavior.max_iterations} iterations were used"
        await run.tell(LimitReached(loop_id=run.loop_id, limit="iterations", reason=reason))
        return Ending(status="limited", text=await final_summary(run))

    async def _one_turn(self) -> Ending | None:
        """One model call and its tools. None: there is more to do."""
        run = self._run
        request = await prepared(run)
        before = TurnBefore(messages=list(request.messages), **run.where)
        await run.hooks.fire("turn:before", before)
        if before.stop:
            return Ending(status="aborted", error=AbortedError(STOPPED_BY_HOOK))
        self._turn = turn = _Turn(history_at=len(run.history))
        run.tracker.add_turn()
        await run.tell(
            TurnStart(loop_id=run.loop_id, turn=run.turn, trigger=run.trigger if run.turn == 0 else "continuation")
        )
        try:
            turn.response = stamped(await answered(run, request), run.surroundings.now_ms())
        except ProviderError as error:
            await run.hooks.fire("turn:after", self._after(turn, error))
            raise
        turn.usage = turn.response.usage
        run.context.record(turn.response.usage, run.fitted)
        await self._told(turn.response)
        await run.hooks.fire("turn:after", self._after(turn, None))
        if turn.response.tool_calls:
            return await self._run_tools(turn, turn.response)
        return await self._terminal(turn.response)

    def _after(self, turn: _Turn, error: Exception | None) -> TurnAfter:
        counts: dict[str, int] = {}
        for call in () if turn.response is None else turn.response.tool_calls:
            counts[call.name] = counts.get(call.name, 0) + 1
        messages: list[AssistantMessage] = [] if turn.response is None else list(turn.response.messages)
        return TurnAfter(messages=messages, usage=turn.usage, tool_counts=counts, error=error, **self._run.where)

    async def _told(self, response: ModelResponse) -> None:
        run = self._run
        if response.thinking:
            await run.tell(Reasoning(loop_id=run.loop_id, text=response.thinking))
        if response.text:
            await run.hooks.fire("stream:end", StreamEnd(text=response.text, **run.where))
            if response.tool_calls:
                await run.tell(TextSaid(loop_id=run.loop_id, text=response.text))

    async def _run_tools(self, turn: _Turn, response: ModelResponse) -> Ending | None:
        run = self._run
        turn.batch = Batch(run, response.tool_calls)
        await turn.batch.carry_out()
        done = turn.batch.done
        size = turn.batch.output_bytes
        await self._close_turn("")
        if done is not None and not run.steering and not run.follow_ups:
            text = response.text.strip() if done.message is None else done.message
            return Ending(status="completed", text=text)
        if done is not None and not run.steering:
            await self._take_follow_ups()
        await self._check_output_budget(size)
        return None

    async def _terminal(self, response: ModelResponse) -> Ending | None:
        """The model wants no more tools: is that the end? Source: zidane, "Turn Loop"; loop spec, section 7."""
        run = self._run
        text = response.text.strip()
        steered = bool(run.steering)
        reminder = None if steered else await self._reminder(text)
        if steered or reminder is not None or run.follow_ups:
            await self._said(response)
        await self._close_turn("")
        if steered:
            return None
        if reminder is not None:
            since = len(run.history)
            await run.inject(user(reminder, origin="reminder"))
            await run.keep(since)
            return None
        if run.follow_ups:
            await self._take_follow_ups()
            return None
        return await self._answer(text)

    async def _said(self, response: ModelResponse) -> None:
        """What looked like the answer was not the last word."""
        if response.text:
            await self._run.tell(TextSaid(loop_id=self._run.loop_id, text=response.text))

    async def _answer(self, text: str) -> Ending:
        run = self._run
        schema = run.behavior.output_schema
        if schema is None:
            return Ending(status="completed", text=text)
        value = await structured(run, schema, text)
        await run.hooks.fire("output", OutputTold(value=value, **run.where))
        await run.tell(OutputProduced(loop_id=run.loop_id, value=value))
        return Ending(status="completed", text=text, output=value)

    async def _reminder(self, text: str) -> str | None:
        run = self._run
        told = IncompleteWork(state=run.state, text=text, reminders=run.reminders, **run.where)
        await run.hooks.fire("work:incomplete", told)
        if told.prompt is not None:
            run.reminders += 1
        return told.prompt

    async def _take_follow_ups(self) -> None:
        run = self._run
        since = len(run.history)
        for message in run.follow_ups.take(run.behavior.follow_up_mode):
            await run.inject(message)
        await run.keep(since)

    async def _close_turn(self, unanswered: str) -> None:
        """The turn's messages go into the history as a whole: calls and their results, or neither."""
        run, turn = self._run, self._turn
        if turn is None:
            return
        if turn.batch is not None:
            with anyio.CancelScope(shield=True):
                await turn.batch.close(unanswered)
        self._turn = None
        messages = () if turn.response is None else turn.response.messages
        results = [] if turn.batch is None else turn.batch.results
        if turn.response is not None and turn.response.tool_calls and turn.batch is None:
            turn.batch = Batch(run, turn.response.tool_calls)
            await turn.batch.close(unanswered)
            results = turn.batch.results
        run.history += [*messages, *results]
        await run.tell(
            TurnEnd(
                loop_id=run.loop_id,
                turn=run.turn,
                messages=messages,
                tool_results=tuple(results),
                usage=turn.usage,
            )
        )
        if results:
            pair = ToolResultsAfter(assistant=list(messages), results=results, **run.where)
            await run.hooks.fire("tool-results:after", pair)
        over = TurnOver(messages=list(messages), tool_results=results, usage=turn.usage, **run.where)
        await run.hooks.fire("turn:end", over)
        await run.keep(turn.history_at)

    async def _check_output_budget(self, size: int) -> None:
        run = self._run
        budget = run.behavior.tool_output_budget
        if budget is None or size <= budget:
            return
        await run.hooks.fire("budget:exceeded", BudgetOver(bytes=size, budget=budget, **run.where))
        await run.tell(BudgetExceeded(loop_id=run.loop_id, budget="tool_output", limit=budget, used=size))
        since = len(run.history)
        await run.inject(output_budget_message(size, budget))
        await run.keep(since)
