"""Recording sessions from events."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.errors import SessionError
from agent_loop.events import (
    InputRejected,
    LoopEnd,
    LoopEvent,
    LoopStart,
    MessageAbandoned,
    MessageInjected,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    ToolProgress,
    ToolUpdate,
    TurnEnd,
    TurnStart,
)
from agent_loop.messages import Message, ToolCall, assistant, tool_message, user
from agent_loop.sessions import Inactivity, LoopConfig, LoopRecord, Session, SessionRecorder
from agent_loop.usage import Usage

SPENT = Usage(input_tokens=10, output_tokens=2)
CALL = ToolCall("call_1", "look")


def start(loop: str, session: str = "s", *, agent: str = "a", **known: Any) -> LoopStart:
    return LoopStart(loop_id=loop, session_id=session, agent_id=agent, **known)


def end(loop: str, *messages: Message, **known: Any) -> LoopEnd:
    return LoopEnd(loop_id=loop, **{"status": "completed", "messages": messages, **known})


def a_loop(loop: str, session: str = "s", **known: Any) -> list[LoopEvent]:
    """Return the events of one loop with a prompt, a tool call and an answer."""
    expected_messages: list[Message] = [
        user(loop),
        assistant("", CALL),
        tool_message("call_1", "look", "seen"),
        assistant("done"),
    ]
    return [
        start(loop, session, timestamp=1000, **known),
        MessageInjected(loop_id=loop, message=expected_messages[0]),
        TurnStart(loop_id=loop, turn=0, trigger="user"),
        TextDelta(loop_id=loop, text="do"),
        TurnEnd(
            loop_id=loop, turn=0, messages=(expected_messages[1],), tool_results=(expected_messages[2],), usage=SPENT
        ),
        TurnStart(loop_id=loop, turn=1, trigger="continuation"),
        TurnEnd(loop_id=loop, turn=1, messages=(expected_messages[3],), usage=SPENT),
        end(loop, *expected_messages, usage=SPENT + SPENT, turns=2, timestamp=2000),
    ]


def recorded(*events: LoopEvent, **known: Any) -> SessionRecorder:
    recorder = SessionRecorder(**known)
    for event in events:
        recorder.on_event(event)
    return recorder


def only_loop(recorder: SessionRecorder) -> LoopRecord:
    (session,) = recorder.sessions()
    (loop,) = session.loops
    return loop


def test_a_loop_becomes_a_record_with_status_usage_and_messages() -> None:
    recorder = recorded(*a_loop("l", metadata={"why": "test"}))
    loop = only_loop(recorder)

    assert (loop.status, loop.turns, loop.usage) == ("completed", 2, SPENT + SPENT)
    assert (loop.started_at, loop.ended_at) == (1000, 2000)
    assert [message.text for message in loop.messages] == ["l", "", "seen", "done"]
    assert loop.metadata == {"why": "test"}
    assert recorder.sessions()[0].last_active_at == 2000
    assert recorder.current_loop("l") is None


def test_messages_and_usage_are_there_while_the_loop_runs() -> None:
    events = a_loop("l")
    recorder = recorded(*events[:5])
    loop = recorder.current_loop("l")

    assert loop is not None
    assert loop is only_loop(recorder)
    assert [message.text for message in loop.messages] == ["l", "", "seen"]
    assert (loop.status, loop.turns, loop.usage, loop.ended_at) == ("running", 1, SPENT, None)


def test_loop_end_is_authoritative_for_messages_usage_and_turns() -> None:
    events = a_loop("l")
    recorder = recorded(*events[:-1], end("l", user("compacted"), usage=Usage(), turns=9, status="limited"))
    loop = only_loop(recorder)

    assert loop.messages == [user("compacted")]
    assert (loop.usage, loop.turns, loop.status) == (Usage(), 9, "limited")


@pytest.mark.parametrize("status", ["completed", "rejected", "aborted", "failed", "limited"])
def test_every_end_of_a_loop_is_a_status(status: str) -> None:
    ended = end("l", status=status, rejection="no" if status == "rejected" else None, error="why")
    loop = only_loop(recorded(start("l"), InputRejected(loop_id="l", reason="no"), ended))

    assert loop.status == status
    assert loop.error == "why"
    assert loop.rejection == ("no" if status == "rejected" else None)
    assert loop.messages == []


def test_events_are_kept_without_fragments_and_without_the_history_once_more() -> None:
    fragments: list[LoopEvent] = [
        TextDelta(loop_id="l", text="t"),
        ThinkingDelta(loop_id="l", text="t"),
        ToolInputDelta(loop_id="l", call_id="c", name="look", delta="{"),
        ToolUpdate(loop_id="l", call_id="c", name="look", text="part"),
    ]
    abandoned = MessageAbandoned(loop_id="l")
    loop = only_loop(recorded(start("l"), *fragments, abandoned, *a_loop("l")[1:]))

    assert [type(event).__name__ for event in loop.events] == [
        "LoopStart", "MessageAbandoned", "MessageInjected", "TurnStart", "TurnEnd", "TurnStart", "TurnEnd", "LoopEnd",
    ]  # fmt: skip
    assert all(not event.messages for event in loop.events if isinstance(event, TurnEnd | LoopEnd))


def test_include_streaming_events_keeps_the_fragments() -> None:
    loop = only_loop(recorded(*a_loop("l"), include_streaming_events=True))

    assert TextDelta(loop_id="l", text="do") in loop.events


def test_sessions_and_loops_may_be_interleaved_in_any_way() -> None:
    one, other, third = a_loop("one"), a_loop("other"), a_loop("third", "t", agent="b")
    mixed = [event for together in zip(one, other, third, strict=True) for event in together]
    recorder = recorded(*mixed)

    assert [session.session_id for session in recorder.sessions()] == ["s", "t"]
    for loop in [loop for session in recorder.sessions() for loop in session.loops]:
        assert loop.messages[0].text == loop.loop_id
        assert loop.status == "completed"
    found = recorder.get_session("s")
    assert found is not None
    assert [loop.loop_id for loop in found.loops] == ["one", "other"]
    assert recorder.get_session("nobody") is None
    assert [recorder.current_loop(name) for name in ("one", "other", "third")] == [None] * 3


def test_current_loop_is_the_one_that_runs() -> None:
    recorder = recorded(*a_loop("one"), *a_loop("other", "t", agent="b")[:-1])
    running = recorder.current_loop("other")
    assert running is not None
    assert (running.loop_id, running.status) == ("other", "running")
    assert recorder.current_loop("one") is None


@given(order=st.permutations([0] * 8 + [1] * 8 + [2] * 8))
def test_interleaving_never_changes_the_record(order: list[int]) -> None:
    queues = [a_loop("one", "s"), a_loop("two", "t"), a_loop("three", "u", agent="b")]
    alone = {session.session_id: session.loops for each in queues for session in recorded(*each).sessions()}
    left = [list(each) for each in queues]
    recorder = recorded(*(left[which].pop(0) for which in order))

    assert {session.session_id: session.loops for session in recorder.sessions()} == alone


def test_continuation_links_its_parent_and_keeps_its_whole_history() -> None:
    follow = [
        start("two", parent_loop_id="one", continuation_kind="default"),
        end("two", user("again"), assistant("yes")),
    ]
    (session,) = recorded(*a_loop("one"), *follow).sessions()

    assert session.loops[1].base == 4
    assert [message.text for message in session.history()] == ["one", "", "seen", "done", "again", "yes"]
    assert session.children_of("one") == [session.loops[1]]
    assert session.root_loops() == [session.loops[0]]
    assert session.total_usage() == SPENT + SPENT


def test_branch_keeps_the_requested_number_of_messages() -> None:
    branch = [
        start("two", parent_loop_id="one", continuation_kind="branch", base=1),
        end("two", assistant("otherwise")),
    ]
    (session,) = recorded(*a_loop("one"), *branch).sessions()

    assert session.loops[1].continuation_kind == "branch"
    assert [message.text for message in session.history("two")] == ["one", "otherwise"]
    assert [message.text for message in session.history("one")] == ["one", "", "seen", "done"]


def test_a_sub_agent_keeps_the_link_to_a_loop_of_another_session() -> None:
    recorder = recorded(*a_loop("one"), start("child", "t", agent="b", parent_loop_id="one"))
    child = recorder.current_loop("child")

    assert child is not None
    assert (child.parent_loop_id, child.base) == ("one", 0)


def test_config_snapshot_is_set_before_or_while_the_loop_runs() -> None:
    recorder = SessionRecorder()
    recorder.set_config("one", LoopConfig(provider="p", model="m"))
    recorder.on_event(start("one"))
    recorder.on_event(start("two"))
    recorder.set_config("two", LoopConfig(config_id="c"))

    assert [loop.config for loop in recorder.sessions()[0].loops] == [
        LoopConfig(provider="p", model="m"),
        LoopConfig(config_id="c"),
    ]


def test_flush_aborts_open_loops() -> None:
    recorder = recorded(*a_loop("l")[:5])
    recorder.flush(now_ms=5000)
    loop = only_loop(recorder)

    assert (loop.status, loop.ended_at) == ("aborted", 5000)
    assert recorder.current_loop("l") is None
    assert recorder.sessions()[0].last_active_at == 5000


def test_drain_completed_takes_out_what_nothing_more_comes_to() -> None:
    recorder = recorded(*a_loop("one"), *a_loop("two", "t"), start("three", "u", agent="b"))

    assert [session.session_id for session in recorder.drain_completed()] == ["s"]
    assert recorder.drain_completed() == []
    recorder.flush()
    assert [session.session_id for session in recorder.drain_completed()] == ["t", "u"]
    assert recorder.sessions() == ()


def test_a_session_with_a_running_loop_is_not_complete() -> None:
    recorder = recorded(start("one"), *a_loop("two", "t"))

    assert recorder.drain_completed() == []


def test_stored_session_is_continued() -> None:
    (stored,) = recorded(*a_loop("one")).sessions()
    recorder = recorded(*a_loop("two", parent_loop_id="one"), sessions=[stored])

    assert recorder.sessions() == (stored,)
    assert [message.text for message in stored.history()][::4] == ["one", "two"]


def test_formation_records_why_a_session_was_created() -> None:
    recorder = recorded(*a_loop("one"), *a_loop("two", "t"))

    assert [session.formation for session in recorder.sessions()] == ["first_loop", "explicit"]


def test_formation_by_inactivity_begins_a_session_after_the_gap() -> None:
    recorder = SessionRecorder(formation_policy=Inactivity(60.0))
    for loop, began in (("one", 0), ("two", 60_000), ("three", 121_001), ("four", 130_000)):
        recorder.on_event(start(loop, timestamp=began))
        recorder.on_event(end(loop, timestamp=began + 1000))

    assert [(session.session_id, session.formation, [loop.loop_id for loop in session.loops]) for session in
            recorder.sessions()] == [
        ("s", "first_loop", ["one", "two"]),
        ("s-2", "inactivity", ["three", "four"]),
    ]  # fmt: skip


def test_by_inactivity_a_continuation_stays_and_a_running_loop_is_no_idleness() -> None:
    recorder = SessionRecorder(formation_policy=Inactivity(60.0))
    recorder.on_event(start("one", timestamp=0))
    recorder.on_event(start("two", timestamp=900_000))
    recorder.on_event(end("one", timestamp=900_001))
    recorder.on_event(end("two", timestamp=900_001))
    late = start("three", timestamp=9_000_000, parent_loop_id="one", continuation_kind="rerun")
    recorder.on_event(late)

    (session,) = recorder.sessions()
    assert [loop.loop_id for loop in session.loops] == ["one", "two", "three"]


def test_a_second_loop_of_one_id_is_refused_and_harms_nothing() -> None:
    recorder = recorded(*a_loop("l"))
    with pytest.raises(SessionError, match="loop 'l' is recorded already"):
        recorder.on_event(start("l"))

    assert only_loop(recorder).status == "completed"


def test_events_of_a_loop_without_start_are_counted() -> None:
    recorder = recorded(*a_loop("l")[1:])

    assert recorder.sessions() == ()
    assert recorder.ignored == 7


@given(cut=st.integers(0, 8))
def test_broken_off_anywhere_a_session_is_whole(cut: int) -> None:
    recorder = recorded(*a_loop("l")[:cut])
    recorder.flush()

    for session in recorder.sessions():
        assert isinstance(session, Session)
        assert session.history() == session.loops[0].messages
        assert session.loops[0].status == ("completed" if cut == 8 else "aborted")


def test_progress_of_tools_is_of_the_moment_and_makes_no_session_grow() -> None:
    recorder = SessionRecorder()
    recorder.on_event(start("l"))
    for number in range(1000):
        recorder.on_event(ToolProgress(loop_id="l", call_id="1", name="look", text=f"{number} of 1000"))
    (loop,) = recorder.sessions()[0].loops
    assert len(loop.events) == 1
