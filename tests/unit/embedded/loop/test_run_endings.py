"""Every ending of a run emits a complete stream and releases the session."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.unit.embedded.fake_provider import FakeProvider, FakeTool, calls, reply
from tests.unit.embedded.loop.harness import WAIT, agent, kinds, streamed

from agent_loop.behavior import Behavior, ExecutionLimits
from agent_loop.errors import AbortedError, ConfigurationError, SessionError, SessionLockedError
from agent_loop.messages import UserMessage
from agent_loop.sessions import FileSessionStore, MemorySessionStore, Session, resume
from agent_loop.tools.tool import DoneSignal

pytestmark = pytest.mark.anyio


async def test_abort_before_the_first_event_emits_a_complete_stream() -> None:
    async def wait(_: object) -> None:
        one.abort("too late")
        await anyio.sleep_forever()

    one = agent(FakeProvider(reply("never")), hooks={"agent:before": wait})
    received, result = await streamed(one)
    assert kinds(received) == ["loop_start", "loop_end"]
    assert result.status == "aborted"
    assert [loop.status for loop in one.session.loops] == ["aborted"]


async def test_tools_of_hooks_that_collide_fail_the_run_from_start_to_end() -> None:
    one = agent(
        FakeProvider(reply("never")),
        FakeTool("look"),
        hooks={"agent:before": lambda received: received.tools.append(FakeTool("look"))},
    )
    received, result = await streamed(one)
    assert kinds(received) == ["loop_start", "loop_end"]
    assert isinstance(result.error, ConfigurationError)


async def test_time_limit_before_the_first_event_emits_a_complete_stream() -> None:
    async def wait(_: object) -> None:
        await anyio.sleep_forever()

    limits = ExecutionLimits(max_duration=0.01)
    one = agent(FakeProvider(reply("never")), hooks={"agent:before": wait}, behavior=Behavior(limits=limits))
    received, result = await streamed(one)
    assert kinds(received) == ["loop_start", "message_injected", "limit_reached", "loop_end"]
    assert result.status == "limited"


async def test_cancellation_during_the_final_events_still_emits_all_of_them() -> None:
    received: list[str] = []

    async def hang(_: object) -> None:
        if "final" in received and received.count("hook") == 0:
            received.append("hook")
            scope.cancel()
            await anyio.sleep_forever()

    async def note(event: Any) -> None:
        received.append(*kinds([event]))

    one = agent(FakeProvider(reply("done")), hooks={"agent:done": hang})
    with anyio.fail_after(WAIT), anyio.CancelScope() as scope:
        await one.run("go", on_event=note)
    assert scope.cancelled_caught
    assert received.count("final") == 1
    assert received[-1] == "loop_end"
    assert [loop.status for loop in one.session.loops] == ["completed"]


@pytest.mark.parametrize("at", ["loop_start", "tool_call", "tool_result", "turn_end", "final", "loop_end"])
@pytest.mark.parametrize("count", [1, 3])
async def test_an_event_callback_that_raises_fails_the_run_in_order_with_its_own_error(at: str, count: int) -> None:
    async def picky(event: Any) -> None:
        if kinds([event]) == [at]:
            raise LookupError(at)

    wanted = [calls("look", str(number)) for number in range(count)]
    one = agent(FakeProvider(reply("", *wanted), reply("ok"), reply("again")), FakeTool("look"))
    with anyio.fail_after(WAIT), pytest.raises(LookupError, match=at):
        await one.run("go", on_event=picky)
    assert one.session.loops[0].status in {"failed", "completed"}
    assert one.session.history() == list(one.messages)
    assert not one.is_running
    assert (await one.run("go on")).status == "completed"


class Failing(MemorySessionStore):
    """A store that fails after a number of saves."""

    def __init__(self, saves: int) -> None:
        super().__init__()
        self.saves = saves

    async def save(self, session: Session) -> None:
        if self.saves <= 0:
            raise SessionError("the disk is full")
        self.saves -= 1
        await super().save(session)


@pytest.mark.parametrize("saves", range(6))
async def test_store_failing_at_any_save_leaves_a_resumable_session(saves: int) -> None:
    store = Failing(saves)
    one = agent(FakeProvider(reply("", calls("look")), reply("ok"), reply("and on")), FakeTool("look"), store=store)
    with anyio.fail_after(WAIT):
        try:
            await one.run("go")
        except SessionError as error:
            assert str(error) == "the disk is full"  # noqa: PT017  # with more saves there is none
        store.saves = 100
        assert one.session.loops[0].status in {"failed", "completed"}
        await one.run("go on")
        assert (await resume(store, one.session.session_id)).history() == list(one.messages)


async def test_a_result_that_cannot_be_written_is_released_for_others(tmp_path: Path) -> None:
    store = FileSessionStore(tmp_path / "sessions")

    def break_it() -> str:
        (tmp_path / "sessions" / f".{one.session.session_id}.json.tmp").mkdir()
        return "broken"

    one = agent(FakeProvider(reply("", calls("look")), reply("ok")), FakeTool("look", break_it), store=store)
    with anyio.fail_after(WAIT):
        with pytest.raises(SessionError):
            await one.run("go")
        await FileSessionStore(tmp_path / "sessions").hold(one.session.session_id)


async def test_session_locked_by_another_agent_is_refused_without_changes(tmp_path: Path) -> None:
    store = FileSessionStore(tmp_path)
    model = FakeProvider(reply("one"), reply("two"))
    one = agent(model, store=store)
    with anyio.fail_after(WAIT):
        await one.run("go")
        other = FileSessionStore(tmp_path)
        await other.hold(one.session.session_id)
        before = one.messages
        with pytest.raises(SessionLockedError):
            await one.continue_run("rerun")
        with pytest.raises(SessionLockedError):
            await one.run("more")
    assert len(model.requests) == 1
    assert one.messages == before


@pytest.mark.parametrize("kind", ["memory", "file"])
async def test_a_session_that_another_agent_went_on_with_is_not_written_over(kind: str, tmp_path: Path) -> None:
    store = MemorySessionStore() if kind == "memory" else FileSessionStore(tmp_path)
    with anyio.fail_after(WAIT):
        first = agent(FakeProvider(reply("one"), reply("never")), store=store)
        await first.run("go")
        session_id = first.session.session_id
        second = agent(FakeProvider(reply("two")), store=store, session=await resume(store, session_id))
        await second.run("more")
        with pytest.raises(SessionError, match="resume it again"):
            await first.run("and more")
        stored = await resume(store, session_id)
    assert stored.history() == list(second.messages)
    assert not first.is_running


async def test_an_abort_while_the_session_is_awaited_ends_the_run_in_order() -> None:
    class Slow(MemorySessionStore):
        async def hold(self, session_id: str) -> None:
            one.abort("no patience")
            await super().hold(session_id)

    one = agent(FakeProvider(reply("never")), store=Slow())
    with anyio.fail_after(WAIT), pytest.raises(AbortedError, match="no patience"):
        await one.run("go")
    assert [loop.status for loop in one.session.loops] == ["aborted"]


async def test_messages_before_a_done_signal_are_handled_first() -> None:
    def done() -> DoneSignal:
        one.steer("Wait, the tests too.")
        one.follow_up("Then the docs.")
        return DoneSignal("done")

    one = agent(FakeProvider(reply("", calls("done")), reply("tests"), reply("docs")), FakeTool("done", done))
    _, result = await streamed(one)
    assert [m.text for m in result.messages if isinstance(m, UserMessage)] == [
        "go",
        "Wait, the tests too.",
        "Then the docs.",
    ]
    assert result.text == "docs"


async def test_rerun_returns_to_the_last_user_message_not_to_one_of_the_loop() -> None:
    model = FakeProvider(reply("", calls("look")), reply("again"))
    one = agent(model, FakeTool("look"), behavior=Behavior(limits=ExecutionLimits(max_turns=1)))
    with anyio.fail_after(WAIT):
        assert (await one.run("go")).status == "limited"
        await one.continue_run("rerun")
    assert [message.text for message in model.requests[1].messages] == ["go"]
