"""Models that replace a failing model for the rest of a run."""

from typing import Any

import pytest
from tests.unit.embedded.fake_provider import FakeProvider, FakeTool, calls, reply
from tests.unit.embedded.loop.harness import agent, kinds, streamed

from agent_loop.behavior import Behavior, RetrySettings
from agent_loop.errors import (
    AuthenticationError,
    ContentFilteredError,
    NetworkError,
    ProviderError,
    QuotaExceededError,
    RateLimitedError,
)
from agent_loop.events import ModelChanged

pytestmark = pytest.mark.anyio


def named(model: str, *answers: Any, **able: Any) -> FakeProvider:
    provider = FakeProvider(*answers, **able)
    provider.model = model
    return provider


@pytest.mark.parametrize(
    "error",
    [QuotaExceededError("empty"), AuthenticationError("who?"), ProviderError("broken"), RateLimitedError("slow"),
     NetworkError("down")],
)  # fmt: skip
async def test_next_model_answers_once_the_retries_of_the_first_are_used(error: ProviderError) -> None:
    tries = 3 if error.retryable else 1
    first, second = named("a", *[error] * tries), named("b", reply("", calls("look")), reply("ok"))
    events, result = await streamed(agent(first, FakeTool("look"), fallbacks=[second]))
    assert (result.status, result.text) == ("completed", "ok")
    assert (len(first.requests), len(second.requests)) == (tries, 2)
    [changed] = [event for event in events if isinstance(event, ModelChanged)]
    assert (changed.model, changed.kind, changed.reason) == ("b", error.kind, str(error))
    assert kinds(events).count("turn_start") == 2


async def test_next_run_begins_with_the_first_model_again() -> None:
    first, second = named("a", ProviderError("broken"), reply("back")), named("b", reply("ok"))
    one = agent(first, fallbacks=[second])
    assert [(await streamed(one))[1].text for _ in range(2)] == ["ok", "back"]


async def test_failure_that_another_model_cannot_avoid_ends_the_run() -> None:
    second = named("b", reply("ok"))
    _, result = await streamed(agent(named("a", ContentFilteredError("no")), fallbacks=[second]))
    assert isinstance(result.error, ContentFilteredError)
    assert second.requests == []


async def test_error_of_the_last_model_ends_the_run() -> None:
    models = [named(name, ProviderError(f"{name} broken")) for name in "abc"]
    events, result = await streamed(agent(models[0], fallbacks=models[1:]))
    assert str(result.error) == "c broken"
    assert kinds(events).count("model_changed") == 2


async def test_request_is_built_for_the_next_model() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    first = named("a", ProviderError("broken"), structured_output=True)
    second = named("b", reply('{"n": 1}'), vision=False)
    one = agent(first, fallbacks=[second], behavior=Behavior(output_schema=schema, retry=RetrySettings(max_retries=0)))
    _, result = await streamed(one)
    assert result.output == {"n": 1}
    assert first.requests[0].output_schema == schema
    assert second.requests[0].output_schema is None


async def test_call_outside_of_turns_is_repeated_with_the_next_model() -> None:
    first = named("a", reply("no json"), ProviderError("broken"))
    second = named("b", reply("", calls("__output__", n=2)))
    _, result = await streamed(agent(first, fallbacks=[second], behavior=Behavior(output_schema={"type": "object"})))
    assert result.output == {"n": 2}
