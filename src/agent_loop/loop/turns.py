"""The turns of a run: model calls with their tools, until a turn ends the run."""

from dataclasses import dataclass, field

import anyio

from agent_loop.context.tool_outputs import output_budget_message
from agent_loop.errors import AbortedError, EmptyAnswerError, ProviderError
from agent_loop.events import BudgetExceeded, LimitReached, OutputProduced, Reasoning, TextSaid, TurnEnd, TurnStart
from agent_loop.hooks.contexts import (
    IncompleteWork,
    OutputBudgetExceeded,
    OutputReady,
    StreamEnd,
    ToolResultsAfter,
    TurnAfter,
    TurnBefore,
    TurnEnded,
)
from agent_loop.loop.batches import ToolBatch
from agent_loop.loop.limits import ReachedLimit
from agent_loop.loop.model_calls import prepare_request, request_answer
from agent_loop.loop.outputs import request_final_summary, request_structured_output
from agent_loop.loop.responses import cut_call, with_timestamps
from agent_loop.loop.run import STOPPED_BY_HOOK, Ending, LoopRun, output_limit
from agent_loop.messages import AssistantMessage, user
from agent_loop.providers import ModelResponse
from agent_loop.usage import Usage


@dataclass(slots=True)
class _OpenTurn:
    """The turn in progress: the answer of the model and the tool calls that have begun."""

    response: ModelResponse | None = None
    batch: ToolBatch | None = None
    history_at: int = 0
    usage: Usage = field(default_factory=Usage)


class TurnLoop:
    """Executes the turns of one run. `close` completes the open turn if the run is interrupted."""

    def __init__(self, run: LoopRun) -> None:
        self._run = run
        self._turn: _OpenTurn | None = None

    async def run(self) -> Ending:
        """Execute turns until one of them ends the run."""
        run = self._run
        while True:
            await run.add(*run.steering.take(run.behavior.steering_mode))
            reached = run.tracker.reached()
            if reached is not None:
                return await self.stop_at_limit(reached)
            if run.tracker.run_turns >= run.behavior.max_iterations:
                return await self._stop_at_max_iterations()
            ending = await self._run_turn()
            if ending is not None:
                return ending
            run.turn += 1

    async def stop_at_limit(self, reached: ReachedLimit) -> Ending:
        """End the run at a limit: record it in the history, without a further model call."""
        run = self._run
        await self.close(f"Aborted: {reached.reason}")
        since = len(run.history)
        await run.inject(user(f"[Agent stopped: {reached.reason}]", origin="limit"))
        await run.emit(LimitReached(loop_id=run.loop_id, limit=reached.limit, reason=reached.reason))
        await run.store_since(since)
        return Ending(status="limited", limit=reached.limit)

    async def _stop_at_max_iterations(self) -> Ending:
        run = self._run
        reason = f"{run.behavior.max_iterations} iterations were used"
        await run.emit(LimitReached(loop_id=run.loop_id, limit="iterations", reason=reason))
        return Ending(status="limited", limit="iterations", text=await request_final_summary(run))

    async def _run_turn(self) -> Ending | None:
        """Execute one model call and its tools. Return None if the run continues."""
        run = self._run
        request = await prepare_request(run)
        before = TurnBefore(messages=list(request.messages), **run.hook_fields)
        await run.hooks.fire("turn:before", before)
        if before.stop:
            return Ending(status="aborted", error=AbortedError(STOPPED_BY_HOOK))
        self._turn = turn = _OpenTurn(history_at=len(run.history))
        run.tracker.add_turn()
        await run.emit(
            TurnStart(loop_id=run.loop_id, turn=run.turn, trigger=run.trigger if run.turn == 0 else "continuation")
        )
        try:
            turn.response = with_timestamps(await request_answer(run, request), run.surroundings.now_ms())
        except ProviderError as error:
            await run.hooks.fire("turn:after", self._after(turn, error))
            raise
        turn.usage = turn.response.usage
        run.context.record(turn.response.usage, run.fitted)
        await self._emit_response(turn.response)
        await run.hooks.fire("turn:after", self._after(turn, None))
        if turn.response.tool_calls:
            return await self._run_tools(turn, turn.response)
        return await self._finish_without_tools(turn.response)

    def _after(self, turn: _OpenTurn, error: Exception | None) -> TurnAfter:
        counts: dict[str, int] = {}
        for call in () if turn.response is None else turn.response.tool_calls:
            counts[call.name] = counts.get(call.name, 0) + 1
        messages: list[AssistantMessage] = [] if turn.response is None else list(turn.response.messages)
        return TurnAfter(messages=messages, usage=turn.usage, tool_counts=counts, error=error, **self._run.hook_fields)

    async def _emit_response(self, response: ModelResponse) -> None:
        run = self._run
        if response.thinking:
            await run.emit(Reasoning(loop_id=run.loop_id, text=response.thinking))
        if response.text:
            run.has_answered = run.has_answered or bool(response.text.strip())
            await run.hooks.fire("stream:end", StreamEnd(text=response.text, **run.hook_fields))
            if response.tool_calls:
                await run.emit(TextSaid(loop_id=run.loop_id, text=response.text))

    async def _run_tools(self, turn: _OpenTurn, response: ModelResponse) -> Ending | None:
        run = self._run
        turn.batch = ToolBatch(run, response.tool_calls, cut_call=cut_call(response))
        await turn.batch.execute()
        done = turn.batch.done
        size = turn.batch.output_bytes
        await self.close("")
        if run.repetitions.reached is not None:
            return await self.stop_at_limit(run.repetitions.reached)
        if run.handed_off_to is not None:
            return Ending(status="completed", handed_off_to=run.handed_off_to)
        if done is not None and not run.steering and not run.follow_ups:
            text = response.text.strip() if done.message is None else done.message
            return Ending(status="completed", text=text)
        if done is not None and not run.steering:
            await self._take_follow_ups()
        await self._check_output_budget(size)
        return None

    async def _finish_without_tools(self, response: ModelResponse) -> Ending | None:
        """Decide what follows an answer without tool calls: another turn or the end of the run."""
        run = self._run
        text = response.text.strip()
        steered = bool(run.steering)
        reminder = None if steered else await self._ask_for_reminder(text)
        if steered or reminder is not None or run.follow_ups:
            await self._emit_text(response)
        await self.close("")
        if steered:
            return None
        if reminder is not None:
            await run.add(user(reminder, origin="reminder"))
            return None
        if run.follow_ups:
            await self._take_follow_ups()
            return None
        return await self._complete_run(text, is_cut=response.stop_reason == "length")

    async def _emit_text(self, response: ModelResponse) -> None:
        """Emit the text of an answer that turned out not to be the last one."""
        if response.text:
            await self._run.emit(TextSaid(loop_id=self._run.loop_id, text=response.text))

    async def _complete_run(self, text: str, *, is_cut: bool) -> Ending:
        run = self._run
        output = run.behavior.output_schema
        if output is None and is_cut:
            return await self._stop_at_output_limit(text)
        if output is None:
            return self._completed(text)
        value, typed = await request_structured_output(run, output, text)
        await run.hooks.fire("output", OutputReady(value=value, **run.hook_fields))
        await run.emit(OutputProduced(loop_id=run.loop_id, value=value))
        return Ending(status="completed", text=text, output=value, typed_output=typed)

    def _completed(self, text: str) -> Ending:
        """Return the end of a run without schema. An empty answer ends it only if the run has other text."""
        if self._run.has_answered:
            return Ending(status="completed", text=text)
        message = "the model ended the run with an empty answer; repeat the prompt or use another model"
        return Ending(status="failed", error=EmptyAnswerError(message, provider=self._run.provider.id))

    async def _stop_at_output_limit(self, text: str) -> Ending:
        """End the run with the part of the answer that fits."""
        run = self._run
        reason = f"the answer was cut at its limit of {output_limit(run)}; raise max_tokens, or ask for the rest"
        await run.emit(LimitReached(loop_id=run.loop_id, limit="output", reason=reason))
        return Ending(status="limited", limit="output", text=text)

    async def _ask_for_reminder(self, text: str) -> str | None:
        run = self._run
        context = IncompleteWork(state=run.state, text=text, reminders=run.reminders, **run.hook_fields)
        await run.hooks.fire("work:incomplete", context)
        if context.prompt is not None:
            run.reminders += 1
        return context.prompt

    async def _take_follow_ups(self) -> None:
        await self._run.add(*self._run.follow_ups.take(self._run.behavior.follow_up_mode))

    async def close(self, unanswered: str) -> None:
        """Append the turn's messages to the history as a unit: calls together with their results."""
        run, turn = self._run, self._turn
        if turn is None:
            return
        if turn.batch is None and turn.response is not None and turn.response.tool_calls:
            turn.batch = ToolBatch(run, turn.response.tool_calls, cut_call=None)  # interrupted before the first call
        if turn.batch is not None:
            with anyio.CancelScope(shield=True):
                await turn.batch.close(unanswered)
        self._turn = None
        messages = () if turn.response is None else turn.response.messages
        results = [] if turn.batch is None else turn.batch.results
        run.history += [*messages, *results]
        await run.emit(
            TurnEnd(
                loop_id=run.loop_id,
                turn=run.turn,
                messages=messages,
                tool_results=tuple(results),
                usage=turn.usage,
            )
        )
        if results:
            stored = ToolResultsAfter(assistant=list(messages), results=results, **run.hook_fields)
            await run.hooks.fire("tool-results:after", stored)
        ended = TurnEnded(messages=list(messages), tool_results=results, usage=turn.usage, **run.hook_fields)
        await run.hooks.fire("turn:end", ended)
        await run.store_since(turn.history_at)

    async def _check_output_budget(self, size: int) -> None:
        run = self._run
        budget = run.behavior.tool_output_budget
        if budget is None or size <= budget:
            return
        await run.hooks.fire("budget:exceeded", OutputBudgetExceeded(bytes=size, budget=budget, **run.hook_fields))
        await run.emit(BudgetExceeded(loop_id=run.loop_id, budget="tool_output", limit=budget, used=size))
        await run.add(output_budget_message(size, budget))
