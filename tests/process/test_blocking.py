"""The blocking client: runs without an event loop of the caller."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.process.local_and_remote import scripted_server
from tests.process.scripted import scripted_adapter

from agent_mux import AgentMuxError, Approve, BlockingAgentMux, BlockingRemoteMux, validate
from agent_mux.sdk.registry import AdapterRegistry


def blocking_client(tmp_path: Any, body: str, backend: str) -> BlockingAgentMux:
    registry = AdapterRegistry()
    registry.register(scripted_adapter(body))
    return BlockingAgentMux(
        backend=backend, adapters=registry, default_agent="scripted", config_dir=tmp_path / "config"
    )


@pytest.fixture(params=["asyncio", "trio"])
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_run_is_watched_answered_and_awaited(tmp_path: Any, backend: str) -> None:
    body = "read(); emit(session='S'); emit(ask='it'); emit(text=read()['answer']); emit(done=True); drain()"
    types: list[str] = []
    with blocking_client(tmp_path, body, backend) as mux:
        run = mux.run(prompt="hi", timeout=20)
        run.on("*", lambda event: types.append(event.type))
        events = []
        for event in run:
            events.append(event)
            if event.type == "approval_request":
                (pending,) = run.pending
                run.respond(pending.id, Approve())
        result = run.result()
    assert (result.exit_reason, result.text, run.session_id, run.state) == ("completed", "yes", "S", "completed")
    assert validate(events) == []
    assert types[-1] == "session_end"
    assert run.journal == result.journal


def test_leaving_the_block_aborts_unfinished_runs(tmp_path: Any, backend: str) -> None:
    with blocking_client(tmp_path, "read(); time.sleep(1000)", backend) as mux:
        run = mux.run(prompt="hi", grace_period=0.1)
        other = mux.run(prompt="hi", grace_period=0.1)
        other.abort()
        assert other.result().exit_reason == "aborted"
    assert run.state == "aborted"


def test_interactive_run_takes_prompts_until_closed(tmp_path: Any, backend: str) -> None:
    body = "read(); emit(done=1)\nfor line in sys.stdin: emit(text='to ' + json.loads(line)['send']); emit(done=True)"
    with blocking_client(tmp_path, body, backend) as mux:
        run = mux.run(prompt="hi", interactive=True, timeout=20)
        run.continue_("two")
        run.send("three")
        for event in run:
            if event.type == "turn_end" and event.turn_index == 2:
                run.close()
        result = run.result()
    assert (result.exit_reason, result.messages) == ("completed", ["to two", "to three"])


def test_run_outside_the_block_is_refused(tmp_path: Any) -> None:
    mux = blocking_client(tmp_path, "", "asyncio")
    with pytest.raises(AgentMuxError, match="inside of") as caught:
        mux.run(prompt="hi")
    assert caught.value.code == "RUN_NOT_ACTIVE"
    with mux, pytest.raises(AgentMuxError, match="prompt"):
        mux.run(prompt="")


def test_result_and_events_remain_after_the_block(tmp_path: Any, backend: str) -> None:
    body = "read(); emit(session='S'); emit(text='a'); emit(text='b'); emit(over=True); emit(done=True)"
    with blocking_client(tmp_path, body, backend) as mux:
        run = mux.run(prompt="hi", timeout=20)
        begun = iter(run)
        first = next(begun)
        result = run.result()
    assert result.text == "ab"
    assert run.result() == result
    events = list(run)
    assert validate(events) == []
    assert [first, *begun] == events
    assert (run.state, run.queue_position, run.pending, run.session_id) == ("completed", None, [], "S")


def test_what_needs_a_working_run_is_refused_after_the_block(tmp_path: Any, backend: str) -> None:
    with blocking_client(tmp_path, "read(); time.sleep(1000)", backend) as mux:
        run = mux.run(prompt="hi", grace_period=0.1)
    actions: list[Callable[[], object]] = [
        lambda: run.send("more"),
        lambda: run.steer("more"),
        lambda: run.queue("more"),
        lambda: run.continue_("more"),
        run.approve,
        run.deny,
        run.interrupt,
        run.pause,
        run.resume,
        run.close,
        lambda: run.set_model("other"),
        lambda: run.set_approval_mode("deny"),
        lambda: run.respond("01", Approve()),
    ]
    for action in actions:
        with pytest.raises(AgentMuxError) as caught:
            action()
        assert caught.value.code == "RUN_NOT_ACTIVE"
    assert run.abort() == "unneeded"
    assert run.result().exit_reason == "aborted"
    run.on("*", lambda _: None)


def test_client_that_is_left_is_refused(tmp_path: Any, backend: str) -> None:
    with blocking_client(tmp_path, "read(); emit(done=True)", backend) as mux:
        assert mux.run(prompt="hi", timeout=20).result().ok
        with pytest.raises(AgentMuxError) as caught:
            mux.__enter__()
        assert caught.value.code == "RUN_NOT_ACTIVE"
    calls: list[Callable[[], object]] = [
        lambda: mux.run(prompt="hi"),
        mux.attach,
        lambda: mux.compare("hi", candidates=["scripted"]),
        mux.resume_comparison,
    ]
    for call in calls:
        with pytest.raises(AgentMuxError, match="inside of") as caught:
            call()
        assert caught.value.code == "RUN_NOT_ACTIVE"


@pytest.mark.slow
def test_result_and_events_of_a_service_remain_after_the_block(tmp_path: Any, backend: Any) -> None:
    with scripted_server(tmp_path) as server:
        server.client("read(); emit(text='a'); emit(over=True); emit(done=True)")
        with BlockingRemoteMux(server.server.url, backend=backend) as mux:
            run = mux.run(agent="scripted", prompt="hi", timeout=20)
            result = run.result()
    assert run.result() == result
    assert (result.text, run.state, run.pending) == ("a", "completed", [])
    assert validate(list(run)) == []
    with pytest.raises(AgentMuxError) as caught:
        run.send("more")
    assert caught.value.code == "RUN_NOT_ACTIVE"


@pytest.mark.slow
def test_active_run_that_was_attached_is_refused_after_the_block(tmp_path: Any, backend: Any) -> None:
    body = "read(); emit(text='a'); time.sleep(1000)"
    with blocking_client(tmp_path, body, backend) as owner:
        run = owner.run(prompt="hi", grace_period=0.1, approval_mode="yolo")
        next(iter(run))
        while not [one for one in owner.runs.list() if one.run_id == run.run_id and one.socket]:
            time.sleep(0.02)
        with blocking_client(tmp_path, "", backend) as other:
            attached = other.attach(run.run_id)
            next(iter(attached))
        assert attached.result().exit_reason == "lost"
        assert "the run continues" in str(attached.result().error)
        assert run.state == "running"
