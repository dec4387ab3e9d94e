"""Failures of the provider: temporary ones are retried, permanent ones are reported with their cause."""

import pytest
from tests.e2e.harness import FinishedRun, LiveAgent, finish, wait_for_event
from tests.e2e.ways import ALL_AGENTS, BOTH_WAYS, CORE, WAYS

from agent_mux_testing.live import Say, Shell

pytestmark = pytest.mark.anyio


def assert_failed(done: FinishedRun, code: str, event: str) -> None:
    """Assert that the run failed for this reason, reported once as an error and never as a message."""
    assert done.result.exit_reason == "failed"
    assert done.result.error is not None
    assert done.result.error.code == code
    assert done.all("message_stop") == []
    assert done.types("turn_end", event, "session_end") == ["turn_end", event, "session_end"]


@CORE
@ALL_AGENTS
@BOTH_WAYS
async def test_unauthorized(live: LiveAgent, way: str) -> None:
    live.script(live.refusal("unauthorized", repeat=True))
    done = await live.run(**WAYS[way])
    assert_failed(done, "AUTH_ERROR", "auth_error")
    assert done.one("auth_error").guidance


@ALL_AGENTS
@BOTH_WAYS
async def test_rate_limited_then_recovers(live: LiveAgent, way: str) -> None:
    live.script(live.refusal("rate_limited"), live.answer(Say("Recovered.")))
    done = await live.run(**WAYS[way])
    assert done.result.exit_reason == "completed"
    assert done.result.text == "Recovered."
    assert done.one("retry").attempt == 1
    assert done.types("retry", "message_start") == ["retry", "message_start"]
    assert len(live.model.requests) == 2
    live.assert_usage(done, calls=1)


async def test_rate_limited_permanently(live: LiveAgent) -> None:
    live.script(live.refusal("rate_limited", repeat=True))
    done = await live.run()
    assert_failed(done, "RATE_LIMITED", "rate_limit_error")


@ALL_AGENTS
@BOTH_WAYS
async def test_server_error_permanently(live: LiveAgent, way: str) -> None:
    live.script(live.refusal("server_error", repeat=True))
    done = await live.run(**WAYS[way])
    assert_failed(done, "AGENT_CRASH", "error")
    assert not done.one("error").recoverable
    assert done.all("retry") != []


async def test_server_error_after_a_tool(live: LiveAgent) -> None:
    live.script(live.answer(Say("Working."), Shell("touch made")), live.refusal("server_error", repeat=True))
    done = await live.run()
    assert done.result.exit_reason == "failed"
    assert live.file("made").exists()
    assert done.result.messages == ["Working."]
    assert done.result.error is not None
    assert done.result.error.code == "AGENT_CRASH"


@ALL_AGENTS
@BOTH_WAYS
async def test_dropped_stream_then_recovers(live: LiveAgent, way: str) -> None:
    # With pauses, because clients may discard data that arrives together with the end of the connection.
    cut = live.answer(Say("partial text that will be cut"), drop=True, delay=0.1)
    live.script(cut, live.answer(Say("Whole now.")))
    done = await live.run(**WAYS[way])
    assert done.result.exit_reason == "completed"
    assert done.result.messages[-1] == "Whole now."
    assert len(live.model.requests) == 2
    assert done.types("retry") == ["retry"]
    if "text_delta" in done.types() and not done.all("stream_fallback"):
        # The message of the first attempt ends before the second attempt begins.
        assert done.types("message_start", "message_stop", "retry") == [
            "message_start", "message_stop", "retry", "message_start", "message_stop",
        ]  # fmt: skip


@ALL_AGENTS
@BOTH_WAYS
async def test_context_exceeded(live: LiveAgent, way: str) -> None:
    live.script(live.refusal("context_exceeded", repeat=True))
    done = await live.run(**WAYS[way])
    assert_failed(done, "CONTEXT_EXCEEDED", "context_exceeded")


@BOTH_WAYS
async def test_max_turns(live: LiveAgent, way: str) -> None:
    live.script(live.answer(Shell("touch one")), live.answer(Shell("touch two")), live.answer(Say("Never said.")))
    done = await live.run(max_model_calls=1, **WAYS[way])
    assert done.result.exit_reason == "turn_limit"
    assert done.one("turn_limit").max_turns == 1
    assert done.types("turn_end", "turn_limit", "session_end") == ["turn_end", "turn_limit", "session_end"]
    if live.agent_counts_turns(max_model_calls=1, **WAYS[way]):
        assert not live.file("two").exists()
        assert len(live.model.requests) == 1
    else:  # agent-mux counts, and can stop only a call that has begun
        assert len(live.model.requests) <= 3
        assert "Never said." not in done.result.text


@ALL_AGENTS
async def test_failed_turn_keeps_the_run_open(live: LiveAgent) -> None:
    live.script(live.refusal("refused"), live.answer(Say("Fine now.")))
    async with live.running(interactive=True) as run:
        await run.continue_("again")
        await wait_for_event(run, "turn_end", 2)
        await run.close()
    done = await finish(run)
    assert done.result.exit_reason == "completed"
    assert done.result.messages == ["Fine now."]
    failed = done.one("error")
    assert failed.recoverable
    assert done.types("turn_start", "error", "turn_end") == [
        "turn_start",
        "error",
        "turn_end",
        "turn_start",
        "turn_end",
    ]
