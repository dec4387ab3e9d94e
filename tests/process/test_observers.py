"""Observers see every run and affect none."""

import logging

import anyio
import pytest
from tests.process.local_and_remote import LocalOnly, local_only
from tests.process.scripted import MakeClient

from agent_mux import RunHandle

pytestmark = [pytest.mark.anyio, pytest.mark.local_and_remote]
HELLO = "read(); emit(session='S'); emit(text=os.environ.get('ADDED', 'none')); emit(done=True); drain()"


@local_only(LocalOnly.ENVIRONMENT)
async def test_observer_sees_every_run_from_start_to_end(make_client: MakeClient) -> None:
    seen: list[str] = []

    def observe(run: RunHandle) -> object:
        run.on("*", lambda event: seen.append(event.type))
        run.add_environment({"ADDED": "by the observer"})
        seen.append("begin")
        return lambda: seen.append("end")

    with anyio.fail_after(20):
        async with make_client(HELLO) as mux:
            stop = mux.on_run(observe)
            result = await mux.run(prompt="hi")
            mine = await mux.run(prompt="hi", env={"ADDED": "mine"})
            stop()
            await mux.run(prompt="hi")
    assert seen.count("begin") == seen.count("end") == 2
    assert (seen[0], seen[1]) == ("begin", "session_start")
    assert (result.text, mine.text) == ("by the observer", "mine")


async def test_failing_observer_does_not_affect_the_run(
    make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: RunHandle) -> None:
        raise ZeroDivisionError

    def broken_later(_: RunHandle) -> object:
        return lambda: 1 // 0

    with anyio.fail_after(20), caplog.at_level(logging.ERROR):
        async with make_client(HELLO) as mux:
            mux.on_run(broken)
            mux.on_run(broken_later)
            run = mux.run(prompt="hi")
            events = [event async for event in run]
            result = await run
    assert result.exit_reason == "completed"
    assert ["an observer raised ZeroDivisionError()" in event.message for event in events if event.type == "debug"]
    assert [record.getMessage() for record in caplog.records] == [f"an observer raised at the end of run {run.run_id}"]


async def test_events_stay_in_order_when_a_handler_raises(make_client: MakeClient) -> None:
    """The warning about a handler follows the events that were published with the one on which it raised."""
    seen: list[object] = []

    def broken(_: object) -> None:
        raise ZeroDivisionError

    with anyio.fail_after(20):
        # The run waits: after its end, warnings are only logged.
        async with make_client(HELLO.replace("emit(done", "emit(ask='it'); read(); emit(done")) as mux:
            run = mux.run(prompt="hi")
            run.on("session_start", broken)
            run.on("text_delta", broken)
            run.on("*", seen.append)
            events = []
            async for event in run:
                events.append(event)
                if event.type == "approval_request":
                    await run.approve()
            await run
    assert [event.type for event in events].count("debug") == 2, events
    assert seen == events
    assert seen[0] is events[0]
    assert events[0].type == "session_start"
