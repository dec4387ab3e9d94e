"""Evaluation of parallel loops: the strategies of `agent_evaluation` over outcomes, and a model as their judge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Protocol

import anyio
from msgspec.structs import replace

from agent_evaluation import STRATEGIES, Selection, TrialView, select
from agent_evaluation.strategies.judging import (
    Answer,
    Attempt,
    build_prompt,
    combine_orders,
    ordered_pairs,
    parse_verdict,
    win_rates,
)
from agent_loop.agent import Agent
from agent_loop.behavior import Behavior, ExecutionLimits
from agent_loop.errors import ConfigurationError
from agent_loop.messages import AssistantMessage, UserMessage
from agent_loop.messages.formatting import pretty
from agent_loop.parallel.outcomes import ParallelLoopOutcome
from agent_loop.providers import Provider
from agent_loop.usage import Usage

JUDGE_STRATEGIES = ("llm-judge", "tests-then-judge")
JUDGE_PROMPT = "You compare the work of two assistants and answer with JSON only."
JUDGE_BEHAVIOR = Behavior(max_tokens=2_048, limits=ExecutionLimits(max_turns=1, max_duration=120.0))


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The selection among outcomes, and the usage of the model calls that it took."""

    selection: Selection
    usage: Usage = field(default_factory=Usage)


class EvaluationStrategy(Protocol):
    """Selects one of several outcomes. `Selection.winner` is the id of a loop, or None."""

    async def evaluate(self, outcomes: Sequence[ParallelLoopOutcome]) -> Evaluation:
        """Return the selection. An exception ends the parallel run without a selection."""
        ...


@dataclass(frozen=True, slots=True)
class NamedStrategy:
    """A strategy of `agent_evaluation` that needs no judge."""

    name: str

    async def evaluate(self, outcomes: Sequence[ParallelLoopOutcome]) -> Evaluation:
        """Select by the strategy."""
        return Evaluation(select(self.name, [one.view() for one in outcomes]))


@dataclass(frozen=True, slots=True)
class LlmJudge:
    """A model that compares the outcomes in pairs, blind and in both orders; a contradiction counts as a tie."""

    provider: Provider
    name: str = "llm-judge"
    """"llm-judge", or "tests-then-judge": only loops that passed their checks."""
    system_prompt: str = JUDGE_PROMPT
    max_concurrency: int = 4

    async def evaluate(self, outcomes: Sequence[ParallelLoopOutcome]) -> Evaluation:
        """Select the outcome that wins most comparisons. Comparisons that fail are left out."""
        views = [one.view() for one in outcomes]
        eligible = set(select("pick-first", views).ranking)
        if self.name == "tests-then-judge":
            eligible &= set(select(self.name, views).ranking)
        if len(eligible) < 2:  # a pair
            return Evaluation(_without_comparison(self.name, views))
        answers, usage = await self._compare({one.loop_id: one for one in outcomes if one.loop_id in eligible})
        return Evaluation(select(self.name, views, scores=win_rates(combine_orders(answers))), usage)

    async def _compare(self, outcomes: Mapping[str, ParallelLoopOutcome]) -> tuple[list[Answer], Usage]:
        answers: list[Answer] = []
        usage = Usage()
        limiter = anyio.CapacityLimiter(self.max_concurrency)

        async def compare(first: str, second: str) -> None:
            nonlocal usage
            async with limiter:
                judge = Agent(self.provider, system_prompt=self.system_prompt, behavior=JUDGE_BEHAVIOR)
                result = await judge.attempt(judge_prompt(outcomes[first], outcomes[second]))
            usage += result.usage
            verdict = parse_verdict(result.text, first, second)
            if verdict is not None:
                answers.append(Answer(first=first, second=second, preferred=verdict[0]))

        async with anyio.create_task_group() as tasks:
            for first, second in ordered_pairs(outcomes):
                tasks.start_soon(compare, first, second)
        return answers, usage


def judge_prompt(first: ParallelLoopOutcome, second: ParallelLoopOutcome) -> str:
    """Return the prompt that compares two outcomes: the conversation before, and what each loop added."""
    prompts = takewhile(lambda message: isinstance(message, UserMessage), first.result.messages)
    task = pretty([*first.messages[: first.original_context_len], *prompts])
    names = sorted(hidden_names(first) | hidden_names(second))
    return build_prompt(task, _attempt(first), _attempt(second), hidden_names=names, work="WORK")


def hidden_names(outcome: ParallelLoopOutcome) -> set[str]:
    """Return the names by which a judge could recognize a configuration."""
    answers = (message for message in outcome.result.messages if isinstance(message, AssistantMessage))
    return {outcome.name, *(name for one in answers for name in (one.provider, one.model))} - {""}


def _attempt(outcome: ParallelLoopOutcome) -> Attempt:
    work = [message for message in outcome.result.messages if not isinstance(message, UserMessage)]
    return Attempt(id=outcome.loop_id, patch=pretty(work), text=outcome.result.text)


def _without_comparison(name: str, views: Sequence[TrialView]) -> Selection:
    """Return the selection of a judge that has nothing to compare: the only eligible outcome, or none."""
    selection = select("tests-then-judge" if name == "tests-then-judge" else "pick-first", views)
    note = selection.note if selection.winner is None else "the only loop that could be selected"
    return replace(selection, strategy=name, note=note)


def strategy_of(strategy: "str | EvaluationStrategy", judge: Provider, count: int) -> EvaluationStrategy:
    """Return the strategy with this name. Raises `ConfigurationError` for an unknown one."""
    if not isinstance(strategy, str):
        return strategy
    if strategy not in STRATEGIES:
        raise ConfigurationError(f"no strategy is named {strategy!r}; known: {', '.join(STRATEGIES)}")
    if STRATEGIES[strategy].is_single and count > 1:
        raise ConfigurationError(f"{strategy!r} selects nothing among {count} configurations; use another strategy")
    return LlmJudge(judge, strategy) if strategy in JUDGE_STRATEGIES else NamedStrategy(strategy)
