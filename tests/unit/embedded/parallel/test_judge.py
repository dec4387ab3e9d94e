"""The judge of parallel loops: blind, in both orders, its usage counted."""

from typing import Any

import anyio
import pytest
from tests.unit.embedded.loop.harness import WAIT, agent

from agent_loop import ScriptedProvider, Usage
from agent_loop.errors import ProviderError
from agent_loop.parallel import LoopVariant, run_parallel
from agent_loop.providers.script import Step, say

pytestmark = pytest.mark.anyio


def preferring(text: str) -> Any:
    """Return a step of a judge that prefers the attempt with this text, whatever its letter is."""

    def answer(request: Any) -> Step:
        prompt = request.messages[-1].text
        is_first = prompt.index(text) < prompt.index("BEGIN B: WORK")
        return say(f'{{"preferred": "{"A" if is_first else "B"}", "reason": "r"}}', usage=Usage(input_tokens=7))

    return answer


async def test_judge_compares_blind_in_both_orders_and_its_usage_counts() -> None:
    judge = ScriptedProvider([preferring("GOOD"), preferring("GOOD")])
    one = agent(ScriptedProvider(["hello"], model="secret-model"))
    with anyio.fail_after(WAIT):
        await one.run("earlier question")
        result = await run_parallel(
            one,
            "the task",
            [
                LoopVariant(name="alpha", provider=ScriptedProvider(["I, alpha, say BAD"], model="secret-model")),
                LoopVariant(name="beta", provider=ScriptedProvider(["GOOD"], model="other-model")),
            ],
            strategy="llm-judge",
            judge=judge,
        )
    assert result.selected is not None
    assert result.selected.name == "beta"
    assert result.evaluation_usage.input_tokens == 14
    assert one.session.total_usage().input_tokens == 14
    prompts = [request.messages[-1].text for request in judge.requests]  # type: ignore[union-attr]
    assert len(prompts) == 2
    assert all("earlier question" in prompt and "the task" in prompt for prompt in prompts)
    assert not any(name in prompt for prompt in prompts for name in ("alpha", "beta", "secret-model"))


async def test_judge_that_contradicts_itself_or_fails_leaves_a_tie_or_no_selection() -> None:
    always_a = say('{"preferred": "A", "reason": "r"}', repeat=2)
    for steps, winner in (([always_a], 0), ([ProviderError("down"), ProviderError("down")], None)):
        one = agent(ScriptedProvider())
        with anyio.fail_after(WAIT):
            result = await run_parallel(
                one,
                "go",
                [LoopVariant(provider=ScriptedProvider([text])) for text in ("a", "b")],
                strategy="llm-judge",
                judge=ScriptedProvider(steps),
            )
        assert (None if result.selected is None else result.selected.index) == winner


async def test_only_usable_loop_is_selected_without_a_judge() -> None:
    one = agent(ScriptedProvider())
    judge = ScriptedProvider()
    with anyio.fail_after(WAIT):
        result = await run_parallel(
            one,
            "go",
            [LoopVariant(provider=ScriptedProvider([answer])) for answer in (ProviderError("x"), "b")],
            strategy="llm-judge",
            judge=judge,
        )
    assert result.selected is not None
    assert result.selected.index == 1
    assert result.selection.strategy == "llm-judge"
    assert judge.requests == []
