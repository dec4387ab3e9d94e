"""Requests that nobody answers: declined at once where nobody can, logged where nobody has seen them."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from tests.process.checked_runs import types
from tests.process.local_and_remote import ScriptedServer, scripted_server
from tests.process.scripted import ScriptedMux

from agent_mux import Policy
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
PLAIN = {"prompt": "go", "approvalMode": "prompt"}


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


@pytest.mark.slow
@pytest.mark.parametrize(("on_timeout", "answer"), [("allow", "yes"), ("deny", "no")])
async def test_deadline_for_answers_decides_where_nobody_can_answer(
    scripted: ScriptedMux, on_timeout: Any, answer: str
) -> None:
    with anyio.fail_after(30):
        async with scripted.client(ASK) as mux:
            result = await mux.run(**MODE, policy=Policy(timeout=0.5, on_timeout=on_timeout))
            unanswered = await mux.run(**MODE, approval_timeout=0.5)
    assert result.text == answer
    assert [one.reason for one in result.denials] == ([] if answer == "yes" else [audience.NOBODY])
    assert [one.reason for one in unanswered.denials] == ["no answer within 0.5 s"]


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


@contextmanager
def unwatched_run(server: ScriptedServer, body: str) -> Iterator[tuple[httpx.Client, str]]:
    """Start a run over plain HTTP, without a stream; yield a client and the path of the run."""
    server.client(body)
    with httpx.Client(base_url=server.server.url, timeout=30) as client:
        started = client.post("/v1/runs", json={"agent": "scripted", **PLAIN})
        started.raise_for_status()
        yield client, f"/v1/runs/{started.json()['runId']}"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ScriptedServer]:
    with scripted_server(tmp_path / "service") as server:
        yield server


@pytest.mark.slow
def test_request_of_a_service_waits_and_is_logged_until_a_client_gets_it(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audience, "UNSEEN_AFTER", 0.3)
    with caplog.at_level(logging.WARNING), unwatched_run(server, ASK) as (client, run):
        wait_until(lambda: unseen(caplog))
        client.post(f"{run}/approve", json={}).raise_for_status()
        wait_until(lambda: client.get(run).json()["state"] == "completed")
        assert client.get(run).json()["result"]["text"] == "yes"
    assert len(unseen(caplog)) == 1


@pytest.mark.slow
def test_request_that_an_http_client_listed_is_not_logged(
    server: ScriptedServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audience, "UNSEEN_AFTER", 3.0)
    with caplog.at_level(logging.WARNING), unwatched_run(server, ASK) as (client, run):
        wait_until(lambda: client.get(f"{run}/interactions").json()["pending"])
        time.sleep(4)
        assert client.get(run).json()["state"] == "running"
        client.post(f"{run}/deny", json={}).raise_for_status()
        wait_until(lambda: client.get(run).json()["state"] == "completed")
    assert unseen(caplog) == []


def wait_until(condition: Callable[[], Any]) -> None:
    limit = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.02)


@pytest.mark.slow
async def test_request_waits_for_a_control_peer_that_follows_the_run(scripted: ScriptedMux, tmp_path: Path) -> None:
    go = tmp_path / "go"
    wait = f"while not os.path.exists({str(go)!r}): time.sleep(0.02)"
    body = f"""read(); emit(text="first")
{wait}
{ASK.removeprefix("read(); ")}"""
    with anyio.fail_after(60):
        async with scripted.client(body) as mux:
            run = mux.run(**MODE)
            await polled(lambda: [one for one in mux.runs.list() if one.run_id == run.run_id and one.socket])
            async with scripted.client("") as other:
                follower = await other.attach(run.run_id)
                async for event in follower:
                    go.touch()
                    if event.type == "approval_request":
                        await follower.approve()
            assert (await run).text == "firstyes"


async def test_listing_runs_is_no_peer(scripted: ScriptedMux) -> None:
    with anyio.fail_after(30):
        async with scripted.client(f"read(); time.sleep(1); {ASK.removeprefix('read(); ')}") as mux:
            run = mux.run(**MODE)
            await polled(lambda: [one for one in mux.runs.list() if one.run_id == run.run_id and one.socket])
            result = await run
    assert [one.reason for one in result.denials] == [audience.NOBODY]
