"""Execution of parallel loops: each over its own copy of the conversation, all on the record of one session.

The loops share the session id and have distinct loop ids. The selected loop becomes the head of the session; the
others stay on record as its siblings. A crash or an abort before the selection leaves the session where it was before.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from time import monotonic

import anyio

from agent_evaluation import CheckStatus, JudgedCheck, Selection
from agent_loop.agent import Agent
from agent_loop.errors import AbortedError, ConfigurationError
from agent_loop.events import LoopEvent, LoopStart, ParallelEvent, ParallelLoopEnd, ParallelLoopStart, TurnEnd
from agent_loop.hooks.contexts import ToolGate
from agent_loop.hooks.registry import Hooks
from agent_loop.loop.inputs import Prompt, to_prompt_messages
from agent_loop.parallel.evaluation import Evaluation, EvaluationStrategy, strategy_of
from agent_loop.parallel.outcomes import LoopCheck, LoopVariant, ParallelLoopOutcome, ParallelLoopResult
from agent_loop.providers import Provider
from agent_loop.providers.registry import to_provider
from agent_loop.results import RunResult
from agent_loop.tools.tool import is_read_only, kind_of, risk_of

MAX_CONCURRENCY = 4
SHARED_FILES = (
    "several loops work on these files at the same time, so that they only read; describe the change in the answer"
)
ParallelCallback = Callable[[LoopEvent | ParallelEvent], Awaitable[None]]
"""A coroutine function that receives each event of a parallel run."""


async def run_parallel(  # noqa: PLR0913  # keyword arguments, each documented below
    agent: Agent,
    prompt: Prompt,
    variants: Sequence[LoopVariant],
    *,
    strategy: str | EvaluationStrategy = "pick-first",
    judge: Provider | str | None = None,
    checks: Mapping[str, LoopCheck] | None = None,
    max_concurrency: int = MAX_CONCURRENCY,
    on_event: ParallelCallback | None = None,
) -> ParallelLoopResult:
    """Run a prompt in several configurations over the agent's conversation, and continue it with the selected loop.

    Args:
        agent: The agent whose conversation and settings the loops start with. It counts as running meanwhile, and
            `Agent.abort` ends all loops.
        prompt: The prompt; () continues a history that ends with a user message.
        variants: The configurations, at least one.
        strategy: A name in `agent_evaluation.STRATEGIES`, or an object with `evaluate`.
        judge: The model that compares outcomes for "llm-judge" and "tests-then-judge"; None: the agent's.
        checks: Checks by name that decide which outcomes may be selected. A check that raises could not run.
        max_concurrency: Number of loops that run at the same time.
        on_event: Callback that receives the events of all loops.

    The failure of a loop does not end the others and is not raised: see `ParallelLoopOutcome.result`. Without a usable
    outcome nothing is selected, and the conversation stays as it was.

    Raises `ConfigurationError`, `RunInProgressError`, `AbortedError` if the run was aborted, `SessionError` if the
    session cannot be stored, and any exception of `on_event` and of a strategy.
    """
    if not variants:
        raise ConfigurationError("a parallel run needs at least one configuration")
    if max_concurrency < 1:
        raise ConfigurationError("max_concurrency must be at least 1")
    chosen = strategy_of(strategy, agent.provider if judge is None else to_provider(judge), len(variants))
    to_prompt_messages(prompt)  # raises for an invalid prompt
    run = _ParallelRun(agent, variants, chosen, checks or {}, max_concurrency, on_event or _ignore)
    async with agent.occupied(run):
        return await run.execute(prompt)


async def _ignore(_: LoopEvent | ParallelEvent) -> None:
    """Discard the event: the run has no subscriber."""


class _ParallelRun:
    """One parallel run. `Agent.abort` calls `abort`."""

    def __init__(  # noqa: PLR0913, PLR0917  # the parts of one call
        self,
        agent: Agent,
        variants: Sequence[LoopVariant],
        strategy: EvaluationStrategy,
        checks: Mapping[str, LoopCheck],
        max_concurrency: int,
        watch: ParallelCallback,
    ) -> None:
        self._agent = agent
        self._variants = variants
        self._twins = _twins_of(agent, variants)
        self._session_id = agent.session.session_id
        self._loop_ids = tuple(twin.next_loop_id for twin in self._twins)
        self._strategy = strategy
        self._checks = checks
        self._limiter = anyio.CapacityLimiter(max_concurrency)
        self._watch = watch
        self._turnstile = anyio.Lock()
        """Events are recorded, stored and passed on one by one."""
        self._outcomes: dict[int, ParallelLoopOutcome] = {}
        self._context_length = len(agent.messages)
        self._abort_reason: str | None = None
        self._evaluation_scope = anyio.CancelScope()
        self._has_failed = False

    def abort(self, reason: str) -> None:
        """End all loops and the evaluation."""
        if self._abort_reason is None:
            self._abort_reason = reason
            for twin in self._twins:
                twin.abort(reason)
            self._evaluation_scope.cancel()

    async def execute(self, prompt: Prompt) -> ParallelLoopResult:
        """Run all loops and the evaluation. Exceptions are raised without an exception group."""
        failures: list[Exception] = []
        await self._emit(
            ParallelLoopStart(
                session_id=self._session_id, loop_ids=self._loop_ids, timestamp=self._agent.surroundings.now_ms()
            )
        )
        evaluation = Evaluation(_nothing_selected("the run ended before the evaluation"))
        try:
            async with anyio.create_task_group() as tasks:
                for index in range(len(self._twins)):
                    await self._limiter.acquire_on_behalf_of(index)  # here, so that loops start in the given order
                    tasks.start_soon(self._run_loop, index, prompt, failures, tasks.cancel_scope)
            if failures:
                raise failures[0]
            evaluation = await self._evaluate()
        finally:
            with anyio.CancelScope(shield=True):
                await self._end(evaluation)
        if self._abort_reason is not None:
            raise AbortedError(self._abort_reason)
        return ParallelLoopResult(
            outcomes=self._ordered(), selection=evaluation.selection, evaluation_usage=evaluation.usage
        )

    async def _run_loop(self, index: int, prompt: Prompt, failures: list[Exception], scope: anyio.CancelScope) -> None:
        twin = self._twins[index]

        async def forward(event: LoopEvent) -> None:
            if isinstance(event, LoopStart):
                record = twin.session.get_loop(event.loop_id)
                if record is not None and record.config is not None:
                    self._agent.conversation.set_config(event.loop_id, record.config)
            await self._emit(event)

        try:
            if self._abort_reason is not None:
                return
            started = monotonic()
            result = await twin.attempt(prompt, on_event=forward)
            self._outcomes[index] = self._outcome(index, result, round((monotonic() - started) * 1000))
        except Exception as error:  # noqa: BLE001  # raised by `execute`, without an exception group
            failures.append(error)
            scope.cancel()
        finally:
            self._limiter.release_on_behalf_of(index)

    def _outcome(
        self, index: int, result: RunResult, duration_ms: int, checks: tuple[JudgedCheck, ...] = ()
    ) -> ParallelLoopOutcome:
        variant = self._variants[index]
        return ParallelLoopOutcome(
            index=index,
            name=variant.name or self._twins[index].config_id,
            loop_id=result.loop_id,
            result=result,
            original_context_len=self._context_length,
            messages=self._twins[index].messages,
            duration_ms=duration_ms,
            variant=variant,
            checks=checks,
        )

    async def _evaluate(self) -> Evaluation:
        evaluation: Evaluation | None = None
        with self._evaluation_scope:
            if self._checks:
                for index, outcome in self._outcomes.items():
                    checks = tuple([await _run_check(name, each, outcome) for name, each in self._checks.items()])
                    self._outcomes[index] = self._outcome(index, outcome.result, outcome.duration_ms, checks)
            evaluation = await self._strategy.evaluate(self._ordered())
        if evaluation is None or self._abort_reason is not None:
            return Evaluation(_nothing_selected("the run was aborted"))
        winner = evaluation.selection.winner
        if winner is not None and winner not in self._loop_ids:
            raise ConfigurationError(f"the strategy selected {winner!r}, which is not the id of a loop of this run")
        return evaluation

    async def _end(self, evaluation: Evaluation) -> None:
        """Record the selection and continue the conversation with the selected loop."""
        winner = evaluation.selection.winner
        index = None if winner is None else self._loop_ids.index(winner)
        event = ParallelLoopEnd(
            session_id=self._session_id,
            loop_ids=self._loop_ids,
            selected_loop_id=winner,
            selected_index=index,
            note=evaluation.selection.note,
            evaluation_usage=evaluation.usage,
            timestamp=self._agent.surroundings.now_ms(),
        )
        self._agent.conversation.on_event(event)
        if index is not None:
            self._agent.conversation.continue_from(self._twins[index].session.state)
        if not self._has_failed:
            await self._watch(event)

    async def _emit(self, event: LoopEvent | ParallelEvent) -> None:
        """Record the event, store the session where a turn ended, and pass the event on."""
        async with self._turnstile:
            self._agent.conversation.on_event(event)
            try:
                if isinstance(event, ParallelLoopStart | TurnEnd):
                    await self._agent.conversation.save()
                if not self._has_failed:
                    await self._watch(event)
            except Exception:
                self._has_failed = True  # ends the run; the callback is not called again
                raise

    def _ordered(self) -> tuple[ParallelLoopOutcome, ...]:
        return tuple(self._outcomes[index] for index in sorted(self._outcomes))


def _twins_of(agent: Agent, variants: Sequence[LoopVariant]) -> list[Agent]:
    """Return one agent per configuration; equal names get a number, so that the loop ids differ."""
    twins: list[Agent] = []
    taken: set[str] = set()
    for variant in variants:
        twin = agent.twin(variant)
        if variant.workspace is None and len(variants) > 1:
            twin.first_hooks = Hooks({"tool:gate": _only_reads})
        if variant.name:
            twin.config_id = variant.name
        segment, number = twin.config_id, 1
        while twin.config_id in taken:
            number += 1
            twin.config_id = f"{segment}-{number}"
        taken.add(twin.config_id)
        twins.append(twin)
    return twins


def _only_reads(gate: ToolGate) -> None:
    """Block tools that may write, except those that declare a low risk, such as the todo list."""
    tool = gate.tool
    if tool is not None and not is_read_only(tool) and not (kind_of(tool) == "other" and risk_of(tool) == "low"):
        gate.block, gate.reason = True, SHARED_FILES


async def _run_check(name: str, check: LoopCheck, outcome: ParallelLoopOutcome) -> JudgedCheck:
    status: CheckStatus = "error"
    with suppress(Exception):  # foreign code; a check that raises is no evidence about the loop
        status = "pass" if await check(outcome) else "fail"
    return JudgedCheck(name=name, status=status)


def _nothing_selected(note: str) -> Selection:
    return Selection(strategy="", winner=None, note=note, ranking=())
