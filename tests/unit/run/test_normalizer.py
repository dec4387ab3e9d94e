"""Records to events: reproducible, and conforming even if records are missing."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.process.scripted import ScriptedCodec
from tests.unit.run.scripted_run import DONE, STARTED_AT, control, feed, header, line, normalizer, printed, types

from agent_mux.contract import validate
from agent_mux.events import DebugEvent, encode_event
from agent_mux.journal.records import Control, Exited, Kind, Record, encode
from agent_mux.run.normalizer import MAX_RAW_SHOWN, STDERR_TAIL_BYTES, Normalizer
from agent_mux.sdk.codec import ApproveAction, CloseStdin, Interrupt, Refuse, Send, Steer, WriteStdin
from agent_mux.sdk.facts import LogLine

LINES = [
    line(session="S1"),
    line(text="a"),
    b'{"shell": "ls"}\n',
    line(ask="rm"),
    line(question="which?"),
    line(nothing=1),
    line(odd=1),
    line(done=True),
    line(failed="AUTH_ERROR"),
    line(stopped=True),
    b"noise\r\n",
    b"\n",
    b"\xff\xfe\n",
]
HAPPENED = st.lists(
    st.one_of(
        st.sampled_from(LINES).map(lambda data: Record(Kind.STDOUT, 0, data)),
        st.binary(max_size=12).map(lambda data: Record(Kind.STDOUT, 0, data)),
        st.binary(max_size=12).map(lambda data: Record(Kind.STDERR, 0, data)),
        st.sampled_from(["start", "pause", "resume", "note", "abort", "timeout", "interrupt", "close"]).map(control),
        st.sampled_from([Send("more"), ApproveAction("rm"), Interrupt()]).map(
            lambda a: Record(Kind.ACTION, 0, encode(a))
        ),
    ),
    max_size=25,
)


def without_double_pauses(records: list[Record]) -> list[Record]:
    """Drop repeated pauses: the state machine of a run prevents them, so the normalizer never gets them."""
    paused, kept = False, []
    for record in records:
        if record in {control("pause"), control("resume")}:
            if paused == (record == control("pause")):
                continue
            paused = not paused
        kept.append(record)
    return kept


@given(happened=HAPPENED, exited=st.booleans())
def test_any_records_give_a_conforming_and_reproducible_stream(happened: list[Record], exited: bool) -> None:
    records = without_double_pauses(happened)
    streams = []
    for _ in range(2):
        one = normalizer()
        events = feed(one, records)
        events += one.feed(DONE) if exited else one.cut_off(5_000_000)
        assert validate(events) == []
        assert one.verdict is not None
        streams.append([encode_event(event) for event in events])
    assert streams[0] == streams[1]


def test_times_are_those_of_the_records() -> None:
    events = feed(normalizer(), [*printed(line(session="S1"), line(text="a"), at=1_500_000), DONE])
    assert [event.timestamp - STARTED_AT for event in events] == [1500, 1501, 1501, 1501, 9000, 9000, 9000, 9000]


def test_time_never_goes_back() -> None:
    late, early = printed(line(text="a"), at=5_000_000), printed(line(text="b"), at=1_000_000)
    events = feed(normalizer(), [*late, *early, DONE])
    assert sorted(event.timestamp for event in events) == [event.timestamp for event in events]


def test_run_whose_writer_was_killed_is_lost() -> None:
    one = normalizer()
    feed(one, printed(line(text="a"), b'{"text":'))
    assert types(one.cut_off(1)) == ["log", "message_stop", "turn_end", "error", "session_end"]
    assert one.verdict is not None
    assert (one.verdict.exit_reason, one.verdict.failure and one.verdict.failure.code) == ("lost", "RUN_LOST")


def test_run_whose_writer_was_killed_after_the_closing_message_is_completed() -> None:
    one = normalizer()
    feed(one, [control("start"), *printed(line(text="a"), line(done=True))])
    one.cut_off(1)
    assert one.verdict is not None
    assert one.verdict.exit_reason == "completed"


def test_run_whose_writer_was_killed_with_an_unanswered_prompt_is_lost() -> None:
    one = normalizer()
    sent = Record(Kind.ACTION, 0, encode(Send("more")))
    feed(one, [control("start"), *printed(line(text="a"), line(done=True)), sent])
    one.cut_off(1)
    assert one.verdict is not None
    assert one.verdict.exit_reason == "lost"


def test_the_cause_comes_before_how_the_process_died() -> None:
    one = normalizer()
    feed(one, [*printed(line(text="a"), line(done=True)), control("abort"), DONE])
    assert one.verdict is not None
    assert one.verdict.exit_reason == "aborted"


def test_comparison_without_a_change_is_kept_when_the_worktree_follows() -> None:
    one = normalizer()
    feed(one, [Record(Kind.CONTROL, 0, encode(Control("workspace", changed_files=())))])
    feed(one, [Record(Kind.CONTROL, 0, encode(Control("workspace", worktree={"path": "/w"})))])
    assert (one.changed_files, one.worktree) == ((), {"path": "/w"})


def test_a_prompt_after_an_interruption_resets_the_cause() -> None:
    one = normalizer()
    sent = Record(Kind.ACTION, 0, encode(Send("go on")))
    feed(one, [control("interrupt"), *printed(line(stopped=True)), sent, *printed(line(text="b")), DONE])
    assert one.verdict is not None
    assert one.verdict.exit_reason == "truncated"


def test_effects_are_collected_and_taken_once() -> None:
    one = normalizer()
    feed(one, [control("start"), *printed(line(done=True))])
    assert one.take_effects() == [WriteStdin(b'{"prompt": true}\n'), CloseStdin()]
    assert one.take_effects() == []
    feed(one, [Record(Kind.ACTION, 0, b'{"type":"Cancel"}')])
    assert isinstance(one.take_effects()[0], Refuse)


def test_a_line_without_facts_is_unknown() -> None:
    class Silent(ScriptedCodec):
        def receive(self, *_: object) -> tuple[()]:
            return ()

    one = Normalizer(header(), Silent)
    (event,) = feed(one, printed(b"what?\n"))
    assert isinstance(event, DebugEvent)
    assert "what?" in event.message
    assert one.ledger.unknown.total() == 1


def test_an_unknown_line_is_shown_truncated() -> None:
    one = normalizer()
    (event,) = feed(one, printed(line(odd="x" * 10 * MAX_RAW_SHOWN)))
    assert isinstance(event, DebugEvent)
    assert MAX_RAW_SHOWN <= len(event.message) < 2 * MAX_RAW_SHOWN


def test_debug_shows_the_native_line_behind_each_event() -> None:
    one = normalizer(debug=True)
    session, *rest = feed(one, [*printed(line(session="S1")), DONE])
    assert session.raw == '{"session": "S1"}'
    assert {event.raw for event in rest} == {None}


def test_stdin_lines_reach_the_codec_only_when_observing() -> None:
    class Listening(ScriptedCodec):
        def receive(self, *_: object) -> tuple[LogLine]:
            return (LogLine("heard"),)

    sent = [Record(Kind.STDIN, 0, b"{}\n")]
    head = header()
    assert feed(Normalizer(head, Listening), sent) == []
    observing = type(head)(**{name: getattr(head, name) for name in head.__struct_fields__} | {"observing": True})
    assert types(feed(Normalizer(observing, Listening), sent)) == ["log"]


@pytest.mark.parametrize("sizes", [[10], [STDERR_TAIL_BYTES], [STDERR_TAIL_BYTES * 3], [1000] * 50, [1] * 20_000])
def test_the_end_of_standard_error_is_kept(sizes: list[int]) -> None:
    one = normalizer()
    whole = b""
    for number, size in enumerate(sizes):
        chunk = bytes([97 + number % 26]) * size
        whole += chunk
        one.feed(Record(Kind.STDERR, 0, chunk))
    assert one.stderr_tail == whole[-STDERR_TAIL_BYTES:].decode()


def test_the_crash_event_contains_standard_error() -> None:
    one = normalizer()
    events = feed(one, [Record(Kind.STDERR, 0, b"oh no"), Record(Kind.EXIT, 0, encode(Exited(code=3)))])
    assert types(events) == ["log", "session_start", "crash", "session_end"]
    assert events[2].stderr == "oh no"  # type: ignore[union-attr]


def test_the_agent_is_busy_from_prompt_to_closing_message() -> None:
    one = normalizer()
    feed(one, [control("start")])
    assert one.is_busy
    feed(one, printed(line(text="a")))
    assert one.is_busy
    feed(one, printed(line(done=True)))
    assert not one.is_busy
    feed(one, [Record(Kind.ACTION, 0, encode(Send("more")))])
    assert one.is_busy


@pytest.mark.parametrize(("prompt", "is_busy"), [("hi", True), ("", False), (" ", False)])
def test_an_agent_without_a_first_prompt_has_nothing_to_do(prompt: str, is_busy: bool) -> None:
    one = normalizer(prompt=prompt, interactive=True)
    feed(one, [control("start")])
    assert one.is_busy is is_busy
    feed(one, [control("close"), DONE])
    assert one.verdict is not None
    assert one.verdict.exit_reason == ("truncated" if is_busy else "completed")


@pytest.mark.parametrize("action", [Send("never mind"), Steer("never mind")])
def test_a_message_that_is_refused_is_nothing_to_do(action: Send | Steer) -> None:
    one = normalizer(prompt="", interactive=True)
    feed(one, [control("start"), Record(Kind.ACTION, 0, encode(action))])
    assert isinstance(one.take_effects()[-1], Refuse)
    assert not one.is_busy


# -- previews of edits

EDIT = {"path": "a.txt", "old_string": "old", "new_string": "new"}
OWN_DIFF = "--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-old\n+new\n"


def test_approval_of_an_edit_and_the_output_after_it_wait_for_the_next_record() -> None:
    one = normalizer(debug=True)
    chunk = line(edit=EDIT) + line(text="after")
    assert "approval_request" not in types(feed(one, printed(chunk)))
    assert [edit.path for edit in one.held_edits] == ["a.txt"]
    events = feed(one, [control("preview", "the diff", at=5000)])
    asked = next(event for event in events if event.type == "approval_request")
    assert (asked.diff, asked.raw) == ("the diff", line(edit=EDIT).decode().strip())
    assert "text_delta" in types(events)
    assert one.held_edits == ()
    assert [request.request_id for request in one.pending] == ["edit"]


@pytest.mark.parametrize("last", [DONE, printed(b"\n")[0], control("pause")], ids=["exit", "output", "control"])
def test_recording_without_a_preview_shows_the_texts_of_the_edit(last: Record) -> None:
    one = normalizer()
    events = feed(one, [*printed(line(edit=EDIT) + line(text="after")), last])
    (asked,) = [event for event in events if event.type == "approval_request"]
    assert (asked.diff, asked.timestamp) == (OWN_DIFF, STARTED_AT)


def test_killed_recording_shows_an_approval_that_was_held() -> None:
    one = normalizer()
    events = [*feed(one, printed(line(edit=EDIT))), *one.cut_off(0)]
    assert [event.diff for event in events if event.type == "approval_request"] == [OWN_DIFF]


def test_each_of_several_approvals_in_one_record_has_its_preview() -> None:
    class Renamed(ScriptedCodec):
        def _steps(self, key: str, value: Any, line: bytes) -> Any:
            steps = super()._steps(key, value, line)
            return tuple(
                msgspec.structs.replace(step, request_id=value["path"]) if key == "edit" else step for step in steps
            )

    one = Normalizer(header(), Renamed)
    feed(one, printed(line(edit=EDIT) + line(edit={**EDIT, "path": "b.txt"}) + line(text="after")))
    events = feed(one, [control("preview", "first"), control("preview", "second"), control("preview", "stray")])
    assert [event.diff for event in events if event.type == "approval_request"] == ["first", "second"]
    assert types(events)[-1] == "text_delta"
