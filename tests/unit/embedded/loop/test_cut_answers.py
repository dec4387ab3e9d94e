"""Answers that the output limit cut, answers without text, and the limits of a request."""

from typing import Any

import pytest
from tests.unit.embedded.fake_provider import FakeProvider, FakeTool, calls, reply
from tests.unit.embedded.loop.harness import agent, kinds, streamed

from agent_loop.behavior import Behavior, ContextSettings
from agent_loop.context.manager import request_window
from agent_loop.errors import ContentFilteredError, EmptyAnswerError
from agent_loop.events import ContextFilling, LoopEnd
from agent_loop.messages import RAW_ARGUMENTS, ToolCall, ToolMessage, user

pytestmark = pytest.mark.anyio


def cut(text: str = "", *wanted: ToolCall) -> Any:
    return reply(text, *wanted, stop_reason="length")


async def test_cut_answer_is_no_success() -> None:
    events, result = await streamed(agent(FakeProvider(cut("The first half of")), behavior=Behavior(max_tokens=2_000)))
    assert (result.status, result.limit, result.text) == ("limited", "output", "The first half of")
    assert kinds(events)[-3:] == ["limit_reached", "final", "loop_end"]
    assert "limit of 2,000 tokens" in events[-3].reason  # type: ignore[union-attr]
    assert isinstance(events[-1], LoopEnd)
    assert events[-1].limit == "output"


@pytest.mark.parametrize("last", [
    ToolCall("2", "write", {RAW_ARGUMENTS: '{"path": "a", "content": "lo'}, '{"path": "a", "content": "lo'),
    ToolCall("2", "write", {}),
])  # fmt: skip
async def test_cut_call_is_not_executed_and_its_result_names_the_limit(last: ToolCall) -> None:
    gated: list[str] = []
    tool = FakeTool("write")
    one = agent(
        FakeProvider(cut("", calls("write", "1", path="b"), last), reply("ok")),
        tool,
        hooks={"tool:gate": lambda context: gated.append(context.call_id)},
    )
    _, result = await streamed(one)
    texts = {m.tool_call_id: m for m in result.messages if isinstance(m, ToolMessage)}
    assert tool.seen == [{"path": "b"}]
    assert gated == ["1"]
    assert texts["2"].is_error
    assert "cut at its limit of 16,384 tokens before the arguments of write were complete" in texts["2"].text


async def test_complete_call_at_the_end_of_a_cut_answer_is_executed() -> None:
    tool = FakeTool("look")
    _, result = await streamed(agent(FakeProvider(cut("", calls("look", path="a")), reply("ok")), tool))
    assert (tool.seen, result.status) == ([{"path": "a"}], "completed")


async def test_run_that_ends_without_any_text_fails_as_an_empty_answer() -> None:
    events, result = await streamed(agent(FakeProvider(reply("", thinking="Hm."))))
    assert result.status == "failed"
    assert isinstance(result.error, EmptyAnswerError)
    assert isinstance(events[-1], LoopEnd)
    assert events[-1].error_kind == "empty"


async def test_empty_answer_after_text_ends_the_run_as_completed() -> None:
    _, result = await streamed(agent(FakeProvider(reply("Done.", calls("look")), reply("")), FakeTool("look")))
    assert (result.status, result.text) == ("completed", "")


async def test_refused_answer_fails_as_filtered() -> None:
    events, result = await streamed(agent(FakeProvider(reply("I can", stop_reason="filtered"))))
    assert isinstance(result.error, ContentFilteredError)
    assert isinstance(events[-1], LoopEnd)
    assert events[-1].error_kind == "filtered"


@pytest.mark.parametrize(
    ("window", "settings", "tokens"),
    [
        (None, ContextSettings(), 100_000),
        (200_000, ContextSettings(), 200_000 - 16_384),
        (1_000_000, ContextSettings(), 1_000_000 - 16_384),
        (8_000, ContextSettings(), 4_000),
        (200_000, ContextSettings(max_context_tokens=50_000), 50_000),
        (32_000, ContextSettings(max_context_tokens=50_000), 16_000),
    ],
)
async def test_context_budget_is_the_window_of_the_model_without_the_answer(
    window: int | None, settings: ContextSettings, tokens: int
) -> None:
    words = "x" * 4 * max(1, tokens - 200)
    one = agent(FakeProvider(reply("ok"), context_window=window), behavior=Behavior(context=settings))
    events, _ = await streamed(one, [user(words)])
    filling = [event.max_tokens for event in events if isinstance(event, ContextFilling)]
    assert filling in ([tokens], [])
    assert one.provider.capabilities.context_window == window


def test_request_gets_at_least_half_of_the_window() -> None:
    assert request_window(None, 16_384) is None
    assert request_window(200_000, None) == 200_000
    assert request_window(10_000, 16_384) == 5_000
