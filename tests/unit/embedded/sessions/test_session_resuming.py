"""Resuming, repairing and forking stored sessions."""

from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.embedded.strategies import conversations

from agent_loop.errors import SessionNotFoundError
from agent_loop.messages import ABORTED, Message, ToolCall, assistant, tool_message, user, validate
from agent_loop.sessions import (
    FileSessionStore,
    LoopRecord,
    MemorySessionStore,
    Session,
    fork,
    is_idle,
    repair_session,
    resume,
)
from agent_loop.state import Todo
from agent_loop.usage import Usage

CALL = ToolCall("a", "look")


def session(*loops: LoopRecord) -> Session:
    return Session(session_id="s", agent_id="agent", loops=list(loops))


def loop(
    name: str, *messages: Message, parent: str | None = None, base: int = 0, status: str = "completed"
) -> LoopRecord:
    return LoopRecord(loop_id=name, parent_loop_id=parent, base=base, messages=list(messages), status=status)


ABORTED_RESULT = tool_message("a", "look", ABORTED, is_error=True)


def test_unfinished_loop_is_marked_aborted_and_its_calls_get_results() -> None:
    repaired = repair_session(session(loop("one", user("u"), assistant("", CALL), status="running")))

    assert repaired.loops[0].status == "aborted"
    assert repaired.loops[0].error == "the process ended before the loop did"
    assert repaired.history() == [user("u"), assistant("", CALL), ABORTED_RESULT]


def test_loops_after_a_repaired_loop_continue_at_its_end() -> None:
    broken = session(
        loop("one", user("u"), assistant("", CALL), status="aborted"),
        loop("two", user("v"), assistant("w"), parent="one", base=2),
        loop("three", user("x"), parent="two", base=4),
    )
    repaired = repair_session(broken)

    assert [each.base for each in repaired.loops] == [0, 3, 5]
    assert [m.text for m in repaired.history()] == ["u", "", ABORTED, "v", "w", "x"]
    assert broken.loops[0].messages == [user("u"), assistant("", CALL)]


def test_results_that_a_later_loop_holds_stay_the_results() -> None:
    result = tool_message("a", "look", "seen")
    whole = session(
        loop("one", user("u"), assistant("", CALL), status="aborted"),
        loop("two", result, assistant("w"), parent="one", base=2),
    )
    repaired = repair_session(whole)

    assert repaired.history("two") == whole.history("two")
    assert repaired.history("one")[-1] == ABORTED_RESULT


def test_a_branch_between_call_and_result_answers_the_call_itself() -> None:
    whole = session(
        loop("one", user("u"), assistant("", CALL), tool_message("a", "look", "seen"), assistant("w")),
        loop("two", user("other"), parent="one", base=2),
    )
    repaired = repair_session(whole)

    assert repaired.history("one") == whole.history("one")
    assert repaired.history("two") == [user("u"), assistant("", CALL), ABORTED_RESULT, user("other")]


@st.composite
def broken_sessions(draw: st.DrawFn) -> Session:
    """Return sessions whose loops continue any other loop at any position and end anywhere."""
    made = session()
    for number in range(draw(st.integers(1, 4))):
        expected_messages = draw(conversations(turns=2))
        kept = expected_messages[: draw(st.integers(0, len(expected_messages)))]
        parent = draw(st.none() | st.sampled_from(made.loops)) if made.loops else None
        length = len(made.history(parent.loop_id)) if parent else 0
        base = draw(st.just(length) | st.integers(0, length))
        name = parent.loop_id if parent else None
        made.loops.append(loop(f"l{number}", *kept, parent=name, base=base, status="running"))
    return made


@pytest.mark.slow
@given(broken=broken_sessions())
def test_whatever_was_broken_off_every_history_validates_after_repair(broken: Session) -> None:
    repaired = repair_session(broken)

    for each in repaired.loops:
        validate(repaired.history(each.loop_id))
        assert each.status == "aborted"
        expected_messages = [m for m in repaired.history(each.loop_id) if m.text != ABORTED]
        assert [m for m in expected_messages if m.text] == [m for m in broken.history(each.loop_id) if m.text]
    assert repair_session(repaired) == repaired


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["file", "memory"])
async def test_resume_returns_a_session_that_can_be_continued(kind: str, tmp_path: Path) -> None:
    with anyio.fail_after(20):
        store = FileSessionStore(tmp_path) if kind == "file" else MemorySessionStore(clock=lambda: 0.0)
        await store.save(session(loop("one", user("u"), assistant("", CALL), status="running")))
        resumed = await resume(store, "s")

        validate(resumed.history())
        assert resumed.loops[0].status == "aborted"
        assert (await store.load("s")).loops[0].status == "running"
        with pytest.raises(SessionNotFoundError):
            await resume(store, "nobody")


def test_fork_begins_with_a_copy_of_the_history_and_its_own_future() -> None:
    first = session(loop("one", user("u"), assistant("", CALL)), loop("two", user("v"), parent="one", base=2))
    first.state.todos = [Todo("1", "dig")]
    first.loops[0].usage = Usage(input_tokens=9)
    forked = fork(first, "t", now_ms=7)
    forked.state.todos.append(Todo("2", "fill"))
    forked.loops[0].messages.append(user("w"))

    assert (forked.session_id, forked.forked_from, forked.agent_id) == ("t", "s", "agent")
    assert (forked.created_at, forked.formation) == (7, "explicit")
    assert [m.text for m in forked.history()] == ["u", "", ABORTED, "v", "w"]
    assert forked.total_usage() == Usage()
    assert len(first.state.todos) == 1
    assert len(first.history()) == 3


def test_fork_may_begin_earlier() -> None:
    first = session(loop("one", user("u"), assistant("w")), loop("two", user("v"), parent="one", base=2))

    assert fork(first, "t", from_loop="one").history() == [user("u"), assistant("w")]
    assert fork(first, "t", length=1).history() == [user("u")]
    assert fork(session(), "t").history() == []
    with pytest.raises(KeyError):
        fork(first, "t", from_loop="nobody")


def test_rotation_is_due_when_a_session_is_idle_for_longer_than_the_threshold() -> None:
    idle = session(loop("one"))
    idle.last_active_at = 1000

    assert not is_idle(idle, 61_000, 60.0)
    assert is_idle(idle, 61_001, 60.0)
    idle.loops[0].status = "running"
    assert not is_idle(idle, 10**9, 60.0)
