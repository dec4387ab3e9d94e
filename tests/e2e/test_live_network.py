"""A provider that cannot be reached, or whose connection breaks off: a network error, not a crash of the agent."""

import pytest
from tests.e2e.harness import FinishedRun, LiveAgent
from tests.e2e.ways import ALL_AGENTS, BOTH_WAYS, HEAVY, WAYS

from agent_mux_testing.live import Say

pytestmark = pytest.mark.anyio
PARTIAL = "partial text that is always cut"


def assert_network_error(live: LiveAgent, done: FinishedRun) -> None:
    assert done.result.exit_reason == "failed"
    assert done.result.error is not None
    assert done.result.error.code == "NETWORK_ERROR", done.result.error
    assert [event.code for event in done.all("error") if not event.recoverable] == ["NETWORK_ERROR"]
    assert live.processes() == []


@HEAVY
@ALL_AGENTS
@BOTH_WAYS
async def test_refused_connection(live: LiveAgent, way: str) -> None:
    live.script()
    await live.model.stop()
    assert_network_error(live, await live.run(**WAYS[way]))


@HEAVY
@ALL_AGENTS
@BOTH_WAYS
async def test_stream_that_always_breaks_off(live: LiveAgent, way: str) -> None:
    """The text of a broken stream is never the result of a completed run."""
    # With pauses, because clients may discard data that arrives together with the end of the connection.
    live.script(live.answer(Say(PARTIAL), drop=True, delay=0.1, repeat=True))
    assert_network_error(live, await live.run(**WAYS[way]))
