"""Requests that nobody answers: declined at once where nobody can, logged where nobody has seen them."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.process.checked_runs import types
from tests.process.scripted import ScriptedMux

from agent_mux.events import ApprovalRequestEvent, BaseEvent
from agent_mux.run import audience
from agent_mux.run.handle import RunHandle
from agent_mux.sdk.interactions import Defer

pytestmark = pytest.mark.anyio


@pytest.fixture
def scripted(tmp_path: Path) -> ScriptedMux:
    return ScriptedMux(tmp_path)


ASK = 'read(); emit(ask="rm x"); emit(text=read()["answer"]); emit(over=True); emit(done=True)'
QUESTION = 'read(); emit(question="choice"); emit(text=read()["answer"]); emit(over=True); emit(done=True)'
MODE: dict[str, Any] = {"prompt": "go", "approval_mode": "prompt"}


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_request_of_a_run_that_is_only_awaited_is_denied_at_once(
    scripted: ScriptedMux, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), anyio.fail_after(30):
        async with scripted.client(ASK) as mux:
            result = await mux.run(**MODE, collect_events=True)
    assert result.text == "no"
    assert [one.reason for one in result.denials] == [audience.NOBODY]
    (note,) = [event.message for event in result.events if event.type == "debug" and "declined" in event.message]
    assert "approval_mode=" in note
    (logged,) = [one.getMessage() for one in caplog.records if "interaction_declined" in one.getMessage()]
    assert result.run_id in logged
    assert "on_approval_request=" in logged
    assert "tool=Shell" in logged
    assert "rm x" not in logged


async def test_question_of_a_run_that_is_only_awaited_is_declined_at_once(scripted: ScriptedMux) -> None:
    with anyio.fail_after(30):
        async with scripted.client(QUESTION) as mux:
            result = await mux.run(**MODE, collect_events=True, on_approval_request=lambda _: True)
    assert result.text == "no"
    notes = [event.message for event in result.events if event.type == "debug" and "declined" in event.message]
    assert "on_input_required=" in notes[0]


async def test_traces_and_handlers_of_other_events_are_nobody_who_could_answer(scripted: ScriptedMux) -> None:
    seen: list[str] = []
    with anyio.fail_after(30):
        async with scripted.client(ASK) as mux:
            run = mux.run(**MODE)
            run.observe(lambda event: seen.append(event.type))
            run.on("message_stop", lambda _: None)
            result = await run
    assert [one.reason for one in result.denials] == [audience.NOBODY]
    assert "approval_request" in seen


def _subscribe(run: RunHandle) -> Any:
    run.on(ApprovalRequestEvent, lambda _: None)


def _subscribe_once(run: RunHandle) -> Any:
    run.once(ApprovalRequestEvent, lambda _: None)


def _subscribe_to_all(run: RunHandle) -> Any:
    run.on(BaseEvent, lambda _: None)


def _listen(run: RunHandle) -> Any:
    run.interaction.on_pending(lambda _: None)


def _poll(run: RunHandle) -> Any:
    assert run.interaction.pending == []


def _open_reader(run: RunHandle) -> Any:
    return run.events()  # it is read a moment later


def _keep_open(run: RunHandle) -> Any:
    run.interaction.keep_open()


@pytest.mark.parametrize(
    "attach", [_subscribe, _subscribe_once, _subscribe_to_all, _listen, _poll, _open_reader, _keep_open]
)
async def test_request_waits_for_somebody_who_can_answer(
    scripted: ScriptedMux, attach: Callable[[RunHandle], Any]
) -> None:
    with anyio.fail_after(30):
        async with scripted.client(ASK) as mux:
            run = mux.run(**MODE)
            attached = attach(run)
            await asked(run)
            await anyio.sleep(0.1)
            await run.approve()
            result = await run
            del attached
    assert result.text == "yes"
    assert result.denials == ()


async def test_request_waits_for_a_reader_and_a_callback_that_defers(scripted: ScriptedMux) -> None:
    with anyio.fail_after(30):
        async with scripted.client(ASK) as mux:
            run = mux.run(**MODE)
            async for event in run:
                if event.type == "approval_request":
                    await run.approve()
            assert (await run).text == "yes"
            run = mux.run(**MODE, on_approval_request=lambda _: Defer())
            await asked(run)
            await run.approve()
            assert (await run).text == "yes"


async def test_request_after_the_only_reader_left_is_denied(scripted: ScriptedMux) -> None:
    with anyio.fail_after(30):
        async with scripted.client(f'emit(text="first"); time.sleep(0.5); {ASK}') as mux:
            run = mux.run(**MODE)
            async for event in run:
                if event.type == "text_delta":
                    break
            result = await run
    assert [one.reason for one in result.denials] == [audience.NOBODY]


async def test_continuing_a_run_is_no_reader(scripted: ScriptedMux) -> None:
    with anyio.fail_after(30):
        async with scripted.client(
            f"read(); emit(text='one'); emit(over=True); emit(done=True); {ASK}; drain()"
        ) as mux:
            run = mux.run(**MODE, interactive=True)
            await run.continue_("more")
            await run.close()
            result = await run
    assert [one.reason for one in result.denials] == [audience.NOBODY]


@pytest.mark.slow
async def test_request_that_a_slow_reader_has_not_consumed_is_logged(
    scripted: ScriptedMux, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audience, "UNSEEN_AFTER", 0.3)
    with caplog.at_level(logging.WARNING), anyio.fail_after(30):
        async with scripted.client(ASK) as mux:
            run = mux.run(**MODE)
            reader = run.events()
            await polled(lambda: unseen(caplog))
            events = [event async for event in _answering(run, reader)]
            await run
    (message,) = unseen(caplog)
    assert types(events, "approval_request") == ["approval_request"]
    for part in (
        run.run_id,
        "kind=approval",
        f"amux runs watch {run.run_id}",
        "on_approval_request=",
        "approval_mode=",
    ):
        assert part in message


@pytest.mark.slow
@pytest.mark.parametrize("see", [_subscribe, _subscribe_once, _listen])
async def test_request_that_somebody_has_seen_is_not_logged(
    scripted: ScriptedMux,
    see: Callable[[RunHandle], Any],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(audience, "UNSEEN_AFTER", 0.2)
    with caplog.at_level(logging.WARNING), anyio.fail_after(30):
        async with scripted.client(ASK) as mux:
            run = mux.run(**MODE)
            see(run)
            await asked(run)
            await anyio.sleep(1)
            await run.approve()
            await run
    assert unseen(caplog) == []


@pytest.mark.slow
async def test_request_that_a_reader_consumed_and_left_is_not_logged(
    scripted: ScriptedMux, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audience, "UNSEEN_AFTER", 0.2)
    with caplog.at_level(logging.WARNING), anyio.fail_after(30):
        async with scripted.client(ASK) as mux:
            run = mux.run(**MODE)
            async for event in run:
                if event.type == "approval_request":
                    break
            await anyio.sleep(1)
            await run.approve()
            await run
    assert unseen(caplog) == []


def unseen(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if "interaction_unseen" in one.getMessage()]


async def _answering(run: RunHandle, reader: Any) -> Any:
    async for event in reader:
        if event.type == "approval_request":
            await run.approve()
        yield event


async def asked(run: RunHandle) -> None:
    await polled(run.interaction.peek)


async def polled(condition: Callable[[], Any]) -> None:
    while not condition():  # noqa: ASYNC110  # nothing announces it
        await anyio.sleep(0.02)
