"""Whenever a client is closed or cancelled, its runs end within one grace period and leave nothing behind."""

import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import lowlevel
from tests.process.scripted import MakeClient, ScriptedCodec

from agent_mux import AgentMux, RetryPolicy, RunResult, encode_event, validate
from agent_mux.process.marker import processes_of
from agent_mux.run import lifecycle
from agent_mux.run.derivation import derive_events
from agent_mux.run.environment import temp_dir_of
from agent_mux.run.handle import RunHandle
from agent_mux_testing.torture.census import Footprint

pytestmark = pytest.mark.anyio
GRACE = 1.0
MANY = 20
STUBBORN = """
signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGINT, signal.SIG_IGN)
subprocess.Popen(["sleep", "1000"], start_new_session=True)
read(); emit(text="ready")
while True: time.sleep(100)"""
WORKS = "read(); emit(text='ready'); emit(ask='it'); time.sleep(1000)"
LEAVES = """
subprocess.Popen(["sleep", "1000"], start_new_session=True)
read(); emit(text="ready"); emit(done=True); drain()"""


@pytest.fixture(autouse=True)
def no_unraisable_exceptions(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Fail on unraisable exceptions. As warnings are errors, coroutines that were never awaited are among them."""
    caught: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: caught.append(unraisable.exc_value))
    before = Footprint.now()
    yield
    gc.collect()
    assert caught == []
    assert before.leaks() == []


def assert_gone(*runs: RunHandle) -> None:
    for run in runs:
        assert processes_of(run.run_id) == []
        assert not temp_dir_of(run.run_id).exists()


async def checked_result(run: RunHandle) -> RunResult:
    """Return the result, after checking that the events conform and that the journal derives them again."""
    with anyio.fail_after(60):
        result = await run
        events = [event async for event in run]
    assert validate(events) == []
    if result.journal is not None:
        derived = [encode_event(event) for event in derive_events(Path(result.journal), ScriptedCodec)]
        assert derived == [encode_event(event) for event in events]
    return result


async def wait_for(run: RunHandle, kind: str) -> None:
    async for event in run:
        if event.type == kind:
            return
    raise AssertionError(f"the run ended without {kind}")


@pytest.mark.slow
@pytest.mark.promise("abort-leaves-no-process")
@pytest.mark.parametrize(("anyio_backend", "how"), [("asyncio", "left"), ("trio", "cancelled")])
async def test_twenty_runs_that_ignore_sigterm_end_within_one_grace_period(make_client: MakeClient, how: str) -> None:
    with anyio.fail_after(60), anyio.CancelScope() as scope:
        async with make_client(STUBBORN) as mux:
            runs = [mux.run(prompt="hi", grace_period=GRACE) for _ in range(MANY)]
            for run in runs:
                await wait_for(run, "text_delta")
            began = time.monotonic()
            if how == "cancelled":
                scope.cancel()
    assert time.monotonic() - began < MANY * GRACE  # one after the other they would take longer; 2 s on an idle machine
    assert {(await checked_result(run)).exit_reason for run in runs} == {"aborted"}
    assert_gone(*runs)


# -- cancelled at every stage


class Stage:
    """A stage of a run at which the client's scope is cancelled."""

    body = WORKS

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch
        self.scope = anyio.CancelScope()

    def wrap(self, name: str) -> None:
        """Cancel when this function of the lifecycle module is called."""
        real = getattr(lifecycle, name)

        def wrapper(*arguments: Any, **named: Any) -> Any:
            self.scope.cancel()
            return real(*arguments, **named)

        self.monkeypatch.setattr(lifecycle, name, wrapper)

    async def play(self, mux: AgentMux) -> list[RunHandle]:
        run = mux.run(prompt="hi", grace_period=0.2)
        return [run]


class BeforeStart(Stage):
    async def play(self, mux: AgentMux) -> list[RunHandle]:
        runs = await super().play(mux)
        self.scope.cancel()
        return runs


class DuringSpawn(Stage):
    async def play(self, mux: AgentMux) -> list[RunHandle]:
        self.wrap("spawn_child")
        return await super().play(mux)


class DuringFileCreation(Stage):
    async def play(self, mux: AgentMux) -> list[RunHandle]:
        self.wrap("private_files")
        return await super().play(mux)


class WhileQueued(Stage):
    async def play(self, mux: AgentMux) -> list[RunHandle]:
        runs = [*await super().play(mux), *await super().play(mux), *await super().play(mux)]
        with anyio.move_on_after(5):
            while not any(run.state == "running" for run in runs):  # noqa: ASYNC110
                await anyio.sleep(0.01)
        self.scope.cancel()
        return runs


class DuringStream(Stage):
    async def play(self, mux: AgentMux) -> list[RunHandle]:
        runs = await super().play(mux)
        await wait_for(runs[0], "text_delta")
        self.scope.cancel()
        return runs


class InHandler(Stage):
    async def play(self, mux: AgentMux) -> list[RunHandle]:
        runs = await super().play(mux)
        runs[0].on("text_delta", lambda _: self.scope.cancel())
        return runs


class InCallback(Stage):
    async def play(self, mux: AgentMux) -> list[RunHandle]:
        async def ask(_: Any) -> None:
            self.scope.cancel()
            await anyio.sleep(1000)

        return [mux.run(prompt="hi", grace_period=0.2, on_approval_request=ask)]


class DuringSettling(Stage):
    body = LEAVES

    async def play(self, mux: AgentMux) -> list[RunHandle]:
        self.wrap("drain_output")
        return await super().play(mux)


class DuringAbort(Stage):
    body = STUBBORN

    async def play(self, mux: AgentMux) -> list[RunHandle]:
        self.wrap("terminate_agent")
        runs = await super().play(mux)
        await wait_for(runs[0], "text_delta")
        await runs[0].abort()
        return runs


class BetweenAttempts(Stage):
    body = "read(); emit(text='x'); sys.exit(1)"

    async def play(self, mux: AgentMux) -> list[RunHandle]:
        runs = [mux.run(prompt="hi", retry_policy=RetryPolicy(base_delay=1000, max_delay=1000))]
        await wait_for(runs[0], "retry")
        self.scope.cancel()
        return runs


class WhileAwaited(Stage):
    async def play(self, mux: AgentMux) -> list[RunHandle]:
        runs = await super().play(mux)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(runs[0].result)
            tasks.start_soon(runs[0].continue_, "more")
            await wait_for(runs[0], "text_delta")
            self.scope.cancel()
        return runs


STAGES = [
    BeforeStart, DuringSpawn, DuringFileCreation, WhileQueued, DuringStream, InHandler,
    InCallback, DuringSettling, DuringAbort, BetweenAttempts, WhileAwaited,
]  # fmt: skip


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.__name__)
async def test_cancelled_client_leaves_nothing_behind(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, stage: type[Stage]
) -> None:
    play = stage(monkeypatch)
    runs: list[RunHandle] = []
    with anyio.fail_after(30):
        with play.scope:
            async with make_client(play.body, max_concurrent_runs=1) as mux:
                real = mux.run

                def run(*arguments: Any, **fields: Any) -> RunHandle:
                    runs.append(real(*arguments, **fields))
                    return runs[-1]

                monkeypatch.setattr(mux, "run", run)
                await play.play(mux)
                await anyio.sleep(1000)
        assert play.scope.cancelled_caught
        assert_gone(*runs)
        reasons = {(await checked_result(run)).exit_reason for run in runs}
    assert reasons == {"aborted"}
    assert mux._reaper._process is None


@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 4, 6, 9, 30])
async def test_client_can_be_cancelled_after_any_number_of_checkpoints(make_client: MakeClient, rounds: int) -> None:
    runs: list[RunHandle] = []
    with anyio.fail_after(30):
        with anyio.CancelScope() as scope:
            async with make_client(WORKS) as mux:
                runs.append(mux.run(prompt="hi", grace_period=0.2))
                for _ in range(rounds):
                    await lowlevel.checkpoint()
                scope.cancel()
                await lowlevel.checkpoint()
        assert (await checked_result(runs[0])).exit_reason == "aborted"
    assert_gone(*runs)


@pytest.mark.parametrize("end", [RunHandle.kill, lambda run: run._runner.stop("abort")], ids=["kill", "abort"])
async def test_run_can_be_ended_before_it_starts(make_client: MakeClient, end: Callable[[RunHandle], None]) -> None:
    with anyio.fail_after(30):
        async with make_client(WORKS) as mux:
            run = mux.run(prompt="hi")
            end(run)
            result = await checked_result(run)
    assert (result.exit_reason, result.exit_code, result.signal, run.state) == ("aborted", None, None, "aborted")
    assert mux._reaper._process is None  # nothing was started
    assert_gone(run)
