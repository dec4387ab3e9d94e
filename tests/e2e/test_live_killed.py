"""Runs that are aborted or killed at random moments: never a success, and no process and no file is left."""

import os
import random
import signal
from contextlib import suppress

import pytest
from tests.e2e.harness import FinishedRun, LiveAgent, assert_nothing_left, finish
from tests.e2e.ways import ALL_AGENTS, BOTH_WAYS, HEAVY, WAYS

from agent_mux import RunHandle
from agent_mux_testing.live import Say, Shell

pytestmark = pytest.mark.anyio
MOMENTS = 4
"""Runs that are ended in each scenario, each after another event."""
LAST = "All done."


def script(live: LiveAgent) -> None:
    live.script(
        live.answer(Say("Working."), Shell("echo one; (sleep 30 >/dev/null 2>&1 &) ; sleep 0.1"), delay=0.02),
        live.answer(Shell("echo two; sleep 0.1"), delay=0.02),
        live.answer(Say(LAST), delay=0.02),
    )


async def random_moments(live: LiveAgent, way: str) -> list[int]:
    """Return numbers of events, other ones for each agent and way, by the length of a run that is not disturbed."""
    script(live)
    done = await live.run(**WAYS[way])
    assert done.result.exit_reason == "completed"
    return random.Random(f"{live.agent} {way}").sample(range(1, len(done.events)), MOMENTS)  # noqa: S311  # no secret


async def wait_for_events(run: RunHandle, count: int) -> None:
    async for _ in run:
        count -= 1
        if count <= 0:
            return


def assert_ended(live: LiveAgent, done: FinishedRun, reason: str) -> None:
    """Assert that the run ended for this reason, or completed with its whole answer before it was ended."""
    assert_nothing_left(done.result.run_id)
    assert live.processes() == []
    if done.result.exit_reason == "completed":
        assert done.result.messages[-1] == LAST
    else:
        assert done.result.exit_reason == reason
        assert done.result.error is not None


@HEAVY
@ALL_AGENTS
@BOTH_WAYS
async def test_abort_at_random_moments(live: LiveAgent, way: str) -> None:
    for moment in await random_moments(live, way):
        script(live)
        async with live.running(**WAYS[way]) as run:
            await wait_for_events(run, moment)
            await run.abort()
            assert live.processes() == []
        assert_ended(live, await finish(run), "aborted")


@HEAVY
@ALL_AGENTS
@BOTH_WAYS
async def test_sigkill_at_random_moments(live: LiveAgent, way: str) -> None:
    for moment in await random_moments(live, way):
        script(live)
        async with live.running(**WAYS[way]) as run:
            await wait_for_events(run, moment)
            with suppress(ProcessLookupError, ValueError):  # the run has ended
                os.kill(live.leader(run.run_id), signal.SIGKILL)
        assert_ended(live, await finish(run), "killed")
