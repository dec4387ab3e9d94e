"""Runs that are ended from outside leave no processes and no files."""

import anyio
import pytest
from tests.e2e.harness import LiveAgent, assert_nothing_left, finish, wait_for_event
from tests.e2e.ways import ALL_AGENTS, BOTH_WAYS, ON_BOTH_LOOPS, WAYS

from agent_mux import AgentMux, RunHandle
from agent_mux.process.marker import processes_of
from agent_mux_testing.live import Say, Shell

pytestmark = pytest.mark.anyio
BUSY = "touch started; sleep 300"


@ALL_AGENTS
@BOTH_WAYS
@ON_BOTH_LOOPS
async def test_abort_in_a_tool(live: LiveAgent, way: str) -> None:
    live.script(live.answer(Say("Working."), Shell(BUSY)))
    async with live.running(**WAYS[way]) as run:
        await live.wait_for_file("started")
        await wait_for_event(run, "tool_call_ready")
        assert len(processes_of(run.run_id)) > 1  # the agent and its shell
        await run.abort()
        assert_nothing_left(run.run_id)
        assert live.processes() == []
    done = await finish(run)
    assert done.result.exit_reason == "aborted"
    assert done.types("tool_result", "tool_error", "turn_end", "aborted", "session_end") == [
        "tool_error", "turn_end", "aborted", "session_end",
    ]  # fmt: skip
    assert done.result.messages == ["Working."]


async def test_abort_with_an_approval_pending(live: LiveAgent) -> None:
    live.script(live.answer(Shell("touch made", asks=True)))
    async with live.running(approval_mode="prompt") as run:
        await wait_for_event(run, "approval_request")
        await run.abort()
    done = await finish(run)
    assert done.result.exit_reason == "aborted"
    assert done.types("approval_request", "approval_granted", "approval_denied", "aborted") == [
        "approval_request", "approval_denied", "aborted",
    ]  # fmt: skip
    assert not live.file("made").exists()


@ALL_AGENTS
@BOTH_WAYS
async def test_interrupt_ends_a_one_prompt_run(live: LiveAgent, way: str) -> None:
    live.script(live.answer(Say("A long text that hangs here."), hang=True))
    async with live.running(**WAYS[way]) as run:
        await live.model.wait_for_requests(1)
        await run.interrupt()
    done = await finish(run)
    assert done.result.exit_reason == "interrupted"
    assert done.types("turn_end", "interrupted", "session_end") == ["turn_end", "interrupted", "session_end"]


@BOTH_WAYS
async def test_timeout(live: LiveAgent, way: str) -> None:
    live.script(live.answer(Say("A long text that hangs here."), hang=True))
    done = await live.run(timeout=8.0, **WAYS[way])
    assert done.result.exit_reason == "timeout"
    assert done.one("timeout").kind == "run"
    assert 8000 <= done.result.duration_ms < 60_000  # without the limit it would hang


async def test_inactivity_timeout(live: LiveAgent) -> None:
    live.script(live.answer(Shell(BUSY)))
    done = await live.run(inactivity_timeout=8.0)  # Codex calls its model again after 10 s of a command
    assert done.result.exit_reason == "inactivity"
    assert done.one("timeout").kind == "inactivity"


async def test_leaving_the_client_ends_the_run(live: LiveAgent) -> None:
    live.script(live.answer(Shell(BUSY)))
    with anyio.fail_after(live.kit.patience):
        async with AgentMux(config_dir=live.config_directory) as mux:
            run = mux.run(live.options())
            await live.wait_for_file("started")
        assert_nothing_left(run.run_id)
    assert (await finish(run)).result.exit_reason == "aborted"


@ON_BOTH_LOOPS
async def test_error_of_the_caller_ends_the_run(live: LiveAgent) -> None:
    live.script(live.answer(Shell(BUSY)))
    runs: list[RunHandle] = []

    async def fail() -> None:
        async with AgentMux(config_dir=live.config_directory) as mux:
            runs.append(mux.run(live.options()))
            await live.wait_for_file("started")
            raise LookupError

    with anyio.fail_after(live.kit.patience), pytest.raises(LookupError):  # not wrapped in an exception group
        await fail()
    assert_nothing_left(runs[0].run_id)
    assert (await finish(runs[0])).result.exit_reason == "aborted"


async def test_pause_and_resume(live: LiveAgent) -> None:
    live.script(live.answer(Shell("touch started; sleep 0.5")), live.answer(Say("Done.")))
    async with live.running() as run:
        await live.wait_for_file("started")
        await run.pause()
        assert run.state == "paused"
        await run.resume()
    done = await finish(run)
    assert done.result.exit_reason == "completed"
    assert done.types("paused", "resumed") == ["paused", "resumed"]
    assert done.result.text == "Done."
