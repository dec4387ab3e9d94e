"""However and whenever a client is left, its runs are over within one grace period and nothing is behind them."""

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
from agent_mux.run import runner
from agent_mux.run.agent_process import DRAIN_TIMEOUT
from agent_mux.run.derivation import derive_events
from agent_mux.run.environment import temp_dir_of
from agent_mux.run.handle import RunHandle
from agent_mux_testing.torture.census import Footprint

pytestmark = pytest.mark.anyio
GRACE = 0.5
SLACK = 4.0  # seconds for a busy machine; one after the other the runs would take twice as long
STUBBORN = """
signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.signal(signal.SIGINT, signal.SIG_IGN)
subprocess.Popen(["sleep", "1000"], start_new_session=True)
hear(); say(text="ready")
while True: time.sleep(100)"""
WORKS = "hear(); say(text='ready'); say(ask='it'); time.sleep(1000)"
LEAVES = """
subprocess.Popen(["sleep", "1000"], start_new_session=True)
hear(); say(text="ready"); say(done=True); rest()"""


@pytest.fixture(autouse=True)
def nothing_unraised(monkeypatch: pytest.MonkeyPatch) -> Any:
    """No exception that nobody could catch: warnings are errors, so coroutines that nobody awaited are among them."""
    caught: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: caught.append(unraisable.exc_value))
    before = Footprint.now()
    yield
    gc.collect()
    assert caught == []
    assert before.leaks() == []


def gone(*runs: RunHandle) -> None:
    for run in runs:
        assert processes_of(run.run_id) == []
        assert not temp_dir_of(run.run_id).exists()


async def lawful(run: RunHandle) -> RunResult:
    """The run has a result, its events are lawful, and its journal tells the same."""
    with anyio.fail_after(5):
        result = await run
        events = [event async for event in run]
    assert validate(events) == []
    if result.journal is not None:
        derived = [encode_event(event) for event in derive_events(Path(result.journal), ScriptedCodec)]
        assert derived == [encode_event(event) for event in events]
    return result


async def said(run: RunHandle, kind: str) -> None:
    async for event in run:
        if event.type == kind:
            return
    raise AssertionError(f"the run ended without {kind}")


@pytest.mark.parametrize(("anyio_backend", "how"), [("asyncio", "left"), ("trio", "cancelled")])
async def test_twenty_runs_that_ignore_sigterm_end_within_one_grace_period(make_client: MakeClient, how: str) -> None:
    with anyio.fail_after(60), anyio.CancelScope() as scope:
        async with make_client(STUBBORN) as mux:
            runs = [mux.run(prompt="hi", grace_period=GRACE) for _ in range(20)]
            for run in runs:
                await said(run, "text_delta")
            began = time.monotonic()
            if how == "cancelled":
                scope.cancel()
    assert time.monotonic() - began < GRACE + DRAIN_TIMEOUT + SLACK
    assert {(await lawful(run)).exit_reason for run in runs} == {"aborted"}
    gone(*runs)


# -- cancelled at every stage


class Stage:
    """Cancels the client's scope when the run is there."""

    body = WORKS

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch
        self.scope = anyio.CancelScope()

    def wrap(self, name: str) -> None:
        """Cancel as soon as this function of the runner's module is called."""
        real = getattr(runner, name)

        def wrapper(*arguments: Any, **named: Any) -> Any:
            self.scope.cancel()
            return real(*arguments, **named)

        self.monkeypatch.setattr(runner, name, wrapper)

    async def play(self, mux: AgentMux) -> list[RunHandle]:
        run = mux.run(prompt="hi", grace_period=0.2)
        return [run]


class BeforeItBegins(Stage):
    async def play(self, mux: AgentMux) -> list[RunHandle]:
        runs = await super().play(mux)
        self.scope.cancel()
        return runs


class WhileItIsStarted(Stage):
    async def play(self, mux: AgentMux) -> list[RunHandle]:
        self.wrap("spawn_child")
        return await super().play(mux)


class WhileItsFilesAreMade(Stage):
    async def play(self, mux: AgentMux) -> list[RunHandle]:
        self.wrap("private_files")
        return await super().play(mux)


class WhileItWaitsForAPlace(Stage):
    async def play(self, mux: AgentMux) -> list[RunHandle]:
        runs = [*await super().play(mux), *await super().play(mux), *await super().play(mux)]
        with anyio.move_on_after(5):
            while not any(run.state == "running" for run in runs):  # noqa: ASYNC110
                await anyio.sleep(0.01)
        self.scope.cancel()
        return runs


class InTheStream(Stage):
    async def play(self, mux: AgentMux) -> list[RunHandle]:
        runs = await super().play(mux)
        await said(runs[0], "text_delta")
        self.scope.cancel()
        return runs


class InAHandler(Stage):
    async def play(self, mux: AgentMux) -> list[RunHandle]:
        runs = await super().play(mux)
        runs[0].on("text_delta", lambda _: self.scope.cancel())
        return runs


class InACallback(Stage):
    async def play(self, mux: AgentMux) -> list[RunHandle]:
        async def ask(_: Any) -> None:
            self.scope.cancel()
            await anyio.sleep(1000)

        return [mux.run(prompt="hi", grace_period=0.2, on_approval_request=ask)]


class WhileItSettles(Stage):
    body = LEAVES

    async def play(self, mux: AgentMux) -> list[RunHandle]:
        self.wrap("settle")
        return await super().play(mux)


class WhileItIsAborted(Stage):
    body = STUBBORN

    async def play(self, mux: AgentMux) -> list[RunHandle]:
        self.wrap("terminate_agent")
        runs = await super().play(mux)
        await said(runs[0], "text_delta")
        await runs[0].abort()
        return runs


class BetweenTwoAttempts(Stage):
    body = "hear(); say(text='x'); sys.exit(1)"

    async def play(self, mux: AgentMux) -> list[RunHandle]:
        runs = [mux.run(prompt="hi", retry_policy=RetryPolicy(base_delay=1000, max_delay=1000))]
        await said(runs[0], "retry")
        self.scope.cancel()
        return runs


class WhileSomebodyWaitsForIt(Stage):
    async def play(self, mux: AgentMux) -> list[RunHandle]:
        runs = await super().play(mux)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(runs[0].result)
            tasks.start_soon(runs[0].continue_, "more")
            await said(runs[0], "text_delta")
            self.scope.cancel()
        return runs


STAGES = [
    BeforeItBegins, WhileItIsStarted, WhileItsFilesAreMade, WhileItWaitsForAPlace, InTheStream, InAHandler,
    InACallback, WhileItSettles, WhileItIsAborted, BetweenTwoAttempts, WhileSomebodyWaitsForIt,
]  # fmt: skip


@pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.__name__)
async def test_a_client_that_is_cancelled_leaves_nothing(
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
        gone(*runs)
        reasons = {(await lawful(run)).exit_reason for run in runs}
    assert reasons == {"aborted"}
    assert mux._reaper._process is None


@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 4, 6, 9, 30])
async def test_a_client_can_be_cancelled_after_any_number_of_rounds_of_the_loop(
    make_client: MakeClient, rounds: int
) -> None:
    runs: list[RunHandle] = []
    with anyio.fail_after(30):
        with anyio.CancelScope() as scope:
            async with make_client(WORKS) as mux:
                runs.append(mux.run(prompt="hi", grace_period=0.2))
                for _ in range(rounds):
                    await lowlevel.checkpoint()
                scope.cancel()
                await lowlevel.checkpoint()
        assert (await lawful(runs[0])).exit_reason == "aborted"
    gone(*runs)


@pytest.mark.parametrize("end", [RunHandle.kill, lambda run: run._runner.stop("abort")], ids=["kill", "abort"])
async def test_a_run_can_be_ended_before_it_begins(make_client: MakeClient, end: Callable[[RunHandle], None]) -> None:
    with anyio.fail_after(30):
        async with make_client(WORKS) as mux:
            run = mux.run(prompt="hi")
            end(run)
            result = await lawful(run)
    assert (result.exit_reason, result.exit_code, result.signal, run.state) == ("aborted", None, None, "aborted")
    assert mux._reaper._process is None  # nothing was ever started
    gone(run)
