"""Handles that nobody awaits or reads, and awaits that are cancelled."""

import asyncio
import gc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.process.scripted import ScriptedMux

from agent_mux.run.handle import RunHandle

pytestmark = pytest.mark.anyio

BODY = "read(); emit(text='done'); emit(over=True); emit(done=True)"
SLOW = "read(); emit(text='first'); time.sleep(2); emit(text=' last'); emit(over=True); emit(done=True)"
ENDLESS = "read(); time.sleep(1000)"


@pytest.fixture
def scripted(tmp_path: Path) -> ScriptedMux:
    return ScriptedMux(tmp_path)


async def messages_of(scripted: ScriptedMux, use: Callable[[Any], Any], body: str = BODY) -> list[str]:
    """Return the warnings about a run that is used like this, and released."""
    with warnings.catch_warnings(record=True) as caught, anyio.fail_after(30):
        warnings.simplefilter("always")
        async with scripted.client(body) as mux:
            ended = anyio.Event()
            mux.on_run(lambda _: ended.set)
            await use(mux.run(prompt="go", approval_mode="yolo", grace_period=0.1))
            if body is BODY:
                await ended.wait()
        gc.collect()
    return [
        str(one.message) for one in caught if one.category is RuntimeWarning and "awaited or read" in str(one.message)
    ]


async def leave(_: RunHandle) -> None:
    """Do nothing with the handle."""


async def trace(run: RunHandle) -> None:
    run.observe(lambda _: None)


@pytest.mark.parametrize("use", [leave, trace])
async def test_handle_that_is_never_used_warns(scripted: ScriptedMux, use: Callable[[Any], Any]) -> None:
    (message,) = await messages_of(scripted, use)
    assert "run 01" in message
    assert "scripted" in message
    assert "await mux.run(" in message


async def test_handle_of_a_run_that_leaving_the_block_aborts_warns(scripted: ScriptedMux) -> None:
    (message,) = await messages_of(scripted, leave, ENDLESS)
    assert "it is aborted" in message


async def use_result(run: RunHandle) -> None:
    await run


async def use_events(run: RunHandle) -> None:
    async for _ in run:
        pass


async def use_handler(run: RunHandle) -> None:
    run.on("message_stop", lambda _: None)


async def use_state(run: RunHandle) -> None:
    assert run.state


async def use_on_state(run: RunHandle) -> None:
    run.on_state(lambda _: None)


async def use_abort(run: RunHandle) -> None:
    await run.abort()


async def use_interaction(run: RunHandle) -> None:
    assert run.interaction.pending == []


@pytest.mark.parametrize(
    "use", [use_result, use_events, use_handler, use_state, use_on_state, use_abort, use_interaction]
)
async def test_handle_that_is_used_does_not_warn(scripted: ScriptedMux, use: Callable[[Any], Any]) -> None:
    assert await messages_of(scripted, use) == []


async def test_cancelled_await_leaves_the_run_working(scripted: ScriptedMux) -> None:
    with anyio.fail_after(30):
        async with scripted.client(SLOW) as mux:
            run = mux.run(prompt="go", approval_mode="yolo")
            with pytest.raises(TimeoutError):
                with anyio.fail_after(0.5):
                    await run
            assert run.state in {"spawned", "running"}
            result = await run
    assert (result.exit_reason, result.text) == ("completed", "first last")


async def test_cancelled_reading_leaves_the_run_working(scripted: ScriptedMux) -> None:
    with anyio.fail_after(30):
        async with scripted.client(SLOW) as mux:
            run = mux.run(prompt="go", approval_mode="yolo")
            with anyio.move_on_after(0.5) as scope:
                async for _ in run:
                    pass
            assert scope.cancelled_caught
            assert (await run).text == "first last"
            assert [event async for event in run][-1].type == "session_end"


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_asyncio_timeout_around_an_await_leaves_the_run_working(scripted: ScriptedMux) -> None:
    async with asyncio.timeout(30), scripted.client(SLOW) as mux:
        run = mux.run(prompt="go", approval_mode="yolo")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await run
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(run.result(), 0.1)
        assert (await run).text == "first last"


async def test_run_after_a_cancelled_await_is_aborted_on_request(scripted: ScriptedMux) -> None:
    with anyio.fail_after(30):
        async with scripted.client(ENDLESS) as mux:
            run = mux.run(prompt="go", approval_mode="yolo", grace_period=0.1)
            with anyio.move_on_after(0.3):
                await run
            await run.abort()
            assert (await run).exit_reason == "aborted"


async def test_timeout_around_the_client_aborts_the_run(scripted: ScriptedMux) -> None:
    runs: list[RunHandle] = []
    with anyio.fail_after(30):
        with anyio.move_on_after(1) as scope:
            async with scripted.client(ENDLESS) as mux:
                runs.append(mux.run(prompt="go", approval_mode="yolo", grace_period=0.1))
                await runs[0]
        assert scope.cancelled_caught
        assert (await runs[0]).exit_reason == "aborted"
