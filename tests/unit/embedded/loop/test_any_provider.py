"""Streams conform and sessions stay usable for arbitrary behaviour of a provider."""

from collections.abc import Sequence
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.embedded.fake_provider import FakeProvider, FakeTool, calls, reply
from tests.unit.embedded.loop.harness import WAIT, agent, kinds, streamed

from agent_loop.behavior import Behavior, ExecutionLimits, RetrySettings
from agent_loop.errors import (
    AuthenticationError,
    ContextExceededError,
    NetworkError,
    ProviderError,
    RateLimitedError,
)
from agent_loop.events import Final, LoopEnd, LoopEvent, LoopStart
from agent_loop.messages import AssistantMessage, Text, Thinking, ToolCall
from agent_loop.messages.validation import validate
from agent_loop.providers import ModelResponse
from agent_loop.usage import Usage

names = st.sampled_from(["look", "fail", "fly", "", "look look", "\x00"])
ids = st.sampled_from(["1", "2", "", "dup", "dup"])
arguments = st.one_of(
    st.dictionaries(st.text(max_size=3), st.one_of(st.none(), st.integers(), st.text(max_size=3)), max_size=2),
    st.builds(lambda raw: {"_raw": raw}, st.text(max_size=8)),
)
tool_calls = st.builds(ToolCall, ids, names, arguments, st.text(max_size=8))
blocks = st.one_of(st.builds(Text, st.text(max_size=5)), st.builds(Thinking, st.text(max_size=5)), tool_calls)
stops = st.sampled_from(["stop", "length", "tool_use", "error", "aborted"])
messages = st.builds(
    lambda content, stop: AssistantMessage(content=tuple(content), stop_reason=stop),
    st.lists(blocks, max_size=4),
    stops,
)
responses = st.builds(
    lambda answer_text, used: ModelResponse(tuple(answer_text), Usage(input_tokens=used)),
    st.lists(messages, max_size=3),
    st.integers(0, 9),
)
failures = st.sampled_from([
    NetworkError("dropped"), RateLimitedError("slow", retry_after=1.0), AuthenticationError("who?"),
    ContextExceededError("too long"), ProviderError("garbage"), ValueError("a bug"), KeyError("index"),
])  # fmt: skip
behaviors = st.sampled_from(["parallel", "sequential", "batched"])


def check_stream(received: Sequence[LoopEvent]) -> None:
    """Assert the event order that the docstring of `agent_loop.events` defines."""
    assert isinstance(received[0], LoopStart)
    assert isinstance(received[-1], LoopEnd)
    assert sum(isinstance(event, LoopStart | LoopEnd) for event in received) == 2
    open_turn = False
    open_calls: dict[str, str] = {}
    after: dict[str, Sequence[str | None]] = {
        "tool_call_start": (None,), "tool_call": ("tool_call_start",), "tool_update": ("tool_call",),
        "tool_result": ("tool_call",), "tool_call_end": ("tool_result",),
    }  # fmt: skip
    for event, kind in zip(received, kinds(list(received)), strict=True):
        if kind == "turn_start":
            assert not open_turn
            open_turn = True
        elif kind == "turn_end":
            assert open_turn
            assert not open_calls
            open_turn = False
        elif kind in after:
            key = _call_id(event)
            assert open_turn
            assert open_calls.get(key) in after[kind]
            if kind == "tool_call_end":
                del open_calls[key]
            else:
                open_calls[key] = kind
    assert not open_turn


def _call_id(event: Any) -> str:
    if event.__struct_config__.tag == "tool_call":
        return str(event.call.id)
    return str(event.message.tool_call_id if event.__struct_config__.tag == "tool_result" else event.call_id)


def fail(**_: Any) -> str:
    raise RuntimeError("the tool broke")


@given(st.lists(st.one_of(responses, failures), max_size=6), behaviors, st.sampled_from(["asyncio", "trio"]))
def test_any_provider_behaviour_ends_in_a_conforming_stream_and_a_resumable_session(
    answers: list[Any], strategy: str, backend: str
) -> None:
    async def play() -> None:
        model = FakeProvider(*answers, reply("The end."), repeat=True)
        behavior = Behavior(
            tool_execution=strategy,
            max_iterations=8,
            limits=ExecutionLimits(max_turns=12),
            retry=RetrySettings(max_retries=1),
        )
        one = agent(model, FakeTool("look", read_only=True), FakeTool("fail", fail, read_only=True), behavior=behavior)
        received, result = await streamed(one)
        check_stream(received)
        validate(one.messages)
        assert list(one.messages) == one.session.history()
        assert result.status in {"completed", "failed", "limited"}
        one.provider = FakeProvider(reply("Still here."))
        received, result = await streamed(one, "go on")
        check_stream(received)
        assert result.text == "Still here."

    anyio.run(play, backend=backend)


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize(("anyio_backend", "strategy"), [("asyncio", "parallel"), ("trio", "sequential")])
async def test_ten_thousand_tool_calls_in_one_answer_are_all_answered(anyio_backend: str, strategy: str) -> None:
    wanted = [calls("look", f"c{number % 9_000}") for number in range(10_000)]
    model = FakeProvider(reply("", *wanted), reply("Done."))
    received, result = await streamed(
        agent(model, FakeTool("look", read_only=True), behavior=Behavior(tool_execution=strategy, batch_size=64)),
        within=10 * WAIT,
    )
    check_stream(received)
    validate(result.messages)
    assert len({call.id for call in model.requests[-1].messages[1].tool_calls}) == 10_000
    assert (len(result.messages), result.text) == (10_003, "Done.")


@given(st.integers(0, 40), st.sampled_from(["asyncio", "trio"]))
def test_abort_at_any_event_leaves_a_conforming_stream_and_a_resumable_session(at: int, backend: str) -> None:
    async def play() -> None:
        model = FakeProvider(
            reply("Look.", calls("look"), calls("fail", "2"), thinking="Hm."),
            reply("", calls("look", "3")),
            reply("Done."),
        )
        one = agent(model, FakeTool("look"), FakeTool("fail", fail))
        seen = 0

        def count(_: LoopEvent) -> None:
            nonlocal seen
            if seen == at:
                one.abort("now")
            seen += 1

        received, aborted = await streamed(one, on=count)
        has_answer = any(isinstance(event, Final) for event in received)  # the run may be ahead of its reader
        assert aborted.status == ("completed" if has_answer else "aborted")
        check_stream(received)
        validate(one.messages)
        one.provider = FakeProvider(reply("Still here."))
        _, result = await streamed(one, "go on")
        assert result.text == "Still here."

    anyio.run(play, backend=backend)
