"""What the provider answers instead of an answer: no error and no partial answer is ever a success."""

import re

import pytest
from tests.e2e.harness import FinishedRun, LiveAgent
from tests.e2e.ways import ALL_AGENTS, BOTH_WAYS, HEAVY, WAYS

from agent_mux.sdk.facts import CUT_ANSWER
from agent_mux_testing.live import STATUSES, Say, early_end, provider_error

pytestmark = pytest.mark.anyio
TERMINAL_EVENTS = ("auth_error", "rate_limit_error", "context_exceeded", "error", "crash")
OTHER_CLASSES = {
    400: {"AUTH_ERROR", "RATE_LIMITED", "CONTEXT_EXCEEDED"},
    402: {"CONTEXT_EXCEEDED"},
    403: {"RATE_LIMITED", "CONTEXT_EXCEEDED"},
    404: {"AUTH_ERROR", "RATE_LIMITED", "CONTEXT_EXCEEDED"},
    408: {"AUTH_ERROR", "CONTEXT_EXCEEDED"},
    413: {"AUTH_ERROR", "RATE_LIMITED"},
    500: {"AUTH_ERROR", "RATE_LIMITED", "CONTEXT_EXCEEDED"},
    502: {"AUTH_ERROR", "CONTEXT_EXCEEDED"},
    503: {"AUTH_ERROR", "CONTEXT_EXCEEDED"},
    504: {"AUTH_ERROR", "CONTEXT_EXCEEDED"},
    529: {"AUTH_ERROR", "CONTEXT_EXCEEDED"},
}
"""Error codes that mislead: they name another cause, for which another action helps."""
REPEATED = tuple(status for status in STATUSES if status == 429 or status >= 500)
"""The statuses after which agents repeat the call."""
CODES = {401: "AUTH_ERROR", 429: "RATE_LIMITED"}
"""The statuses that have a code of their own."""


def assert_error_of(done: FinishedRun, status: int) -> None:
    """Assert that a run failed with an error of the class of this HTTP status, reported once."""
    error = done.result.error
    assert done.result.exit_reason == "failed", done.result
    assert error is not None
    assert error.message.strip()
    assert error.code == CODES.get(status, error.code)
    assert error.code not in {*OTHER_CLASSES.get(status, ()), "ABORTED", "INTERNAL"}
    assert done.all("message_stop") == []
    terminal = [
        event for event in done.events if event.type in TERMINAL_EVENTS and not getattr(event, "recoverable", 0)
    ]
    assert len(terminal) == 1
    assert terminal[0] in done.events[-3:]


@HEAVY
@ALL_AGENTS
@BOTH_WAYS
@pytest.mark.parametrize("status", [status for status in STATUSES if status not in REPEATED])
async def test_refused_model_call(live: LiveAgent, way: str, status: int) -> None:
    live.script(provider_error(live.kit.api, status))
    assert_error_of(await live.run(**WAYS[way]), status)
    assert live.processes() == []


@HEAVY
@ALL_AGENTS
@BOTH_WAYS
@pytest.mark.parametrize("status", REPEATED)
async def test_failing_provider(live: LiveAgent, way: str, status: int) -> None:
    live.script(provider_error(live.kit.api, status))
    assert_error_of(await live.run(**WAYS[way]), status)
    assert live.processes() == []


@ALL_AGENTS
@BOTH_WAYS
async def test_filtered_answer(live: LiveAgent, way: str) -> None:
    live.script(live.answer(Say("I will not"), repeat=True, **early_end(live.kit.api, "filtered")))
    done = await live.run(**WAYS[way])
    assert done.result.exit_reason == "failed"
    assert done.result.error is not None
    assert done.result.error.code == "CONTENT_FILTERED"
    # Claude Code continues with a second call. The text of a repeated call, as of Codex, is no part of the result.
    assert done.result.text.count("I will not") <= max(done.result.model_calls, 1)


@ALL_AGENTS
@BOTH_WAYS
async def test_filtered_answer_without_text(live: LiveAgent, way: str) -> None:
    live.script(live.answer(repeat=True, **early_end(live.kit.api, "filtered")))
    done = await live.run(**WAYS[way])
    assert done.result.exit_reason == "failed"


@ALL_AGENTS
@BOTH_WAYS
async def test_cut_answer(live: LiveAgent, way: str) -> None:
    """An agent may let the model continue, or fail; an answer that stays cut is no complete one."""
    live.script(live.answer(Say("The first half of"), repeat=True, **early_end(live.kit.api, "length")))
    done = await live.run(max_model_calls=10, **WAYS[way])
    if done.result.exit_reason != "completed":
        assert done.result.exit_reason in {"failed", "turn_limit"}
        assert done.result.error is not None
        assert re.search("token|length|incomplete|turn", done.result.error.message)
        return
    assert done.result.text.startswith("The first half of")
    assert done.all("turn_end")[-1].stop_reason == "length"
    assert [event.level for event in done.all("debug") if event.message == CUT_ANSWER] == ["warn"]


@ALL_AGENTS
@BOTH_WAYS
async def test_empty_answer(live: LiveAgent, way: str) -> None:
    """An agent may ask again; it ends, and what it did not get is no text of the result."""
    live.script(live.answer(Say(""), repeat=True))
    done = await live.run(max_model_calls=10, **WAYS[way])
    assert done.result.text == ""
    assert [event for event in done.all("message_stop") if event.text] == []
    assert live.processes() == []
