"""The JSON form of events: lossless, without nulls, tolerant of newer versions, restorable from a compact stream."""

import copy
import json
from typing import Any

import jsonschema
import msgspec
import pytest
from event_strategies import EVENTS, JSON
from hypothesis import given
from hypothesis import strategies as st

from agent_mux.events import (
    ALL_EVENTS,
    Accumulated,
    GrowingText,
    LogEvent,
    MessageStartEvent,
    MessageStopEvent,
    Rebuilder,
    TextDeltaEvent,
    ThinkingDeltaEvent,
    ThinkingStartEvent,
    ToolCallReadyEvent,
    ToolCallStartEvent,
    ToolInputDeltaEvent,
    UnknownEvent,
    decode_event,
    encode_event,
    event_from_dict,
    event_to_dict,
    json_schema,
)
from agent_mux.events.wire import ACCUMULATED_FIELDS

WHO = ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "claude", 1712345678901)
FULL = jsonschema.Draft202012Validator(json_schema())
COMPACT = jsonschema.Draft202012Validator(json_schema(accumulated=False))
DELTAS = (TextDeltaEvent, ThinkingDeltaEvent, ToolInputDeltaEvent)


def plain_event(kind: str, /, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "runId": WHO[0], "agent": WHO[1], "timestamp": WHO[2], **fields}


@given(EVENTS)
def test_an_event_is_the_same_after_encoding_and_decoding(event: Any) -> None:
    line = encode_event(event)
    assert b"\n" not in line
    assert decode_event(line) == event
    assert encode_event(decode_event(line)) == line
    assert event_from_dict(json.loads(line)) == event
    assert event_to_dict(event) == json.loads(line)


@given(EVENTS)
def test_absent_fields_are_left_out_and_never_null(event: Any) -> None:
    shown = json.loads(encode_event(event))
    required_nothing = {"input", "output"}
    assert not [name for name, value in shown.items() if value is None and name not in required_nothing]
    assert ("raw" in shown) == (event.raw is not None)
    assert ("subagentId" in shown) == (event.subagent_id is not None)
    assert list(shown)[:4] == ["type", "runId", "agent", "timestamp"]


@pytest.mark.slow
@given(EVENTS)
def test_the_schema_accepts_every_event_and_the_compact_one_every_compact_event(event: Any) -> None:
    FULL.validate(json.loads(encode_event(event)))
    compact = json.loads(encode_event(event, accumulated=False))
    COMPACT.validate(compact)
    assert FULL.is_valid(compact) == (event.type not in ACCUMULATED_FIELDS)


@pytest.mark.slow
def test_the_schema_is_valid_and_rejects_other_objects() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())
    assert FULL.is_valid(plain_event("message_start"))
    assert not FULL.is_valid(plain_event("message_stop"))
    assert not FULL.is_valid(plain_event("message_start", raw=None))
    assert not FULL.is_valid(plain_event("message_begin"))
    assert not FULL.is_valid(plain_event("message_start") | {"timestamp": 0})


@given(EVENTS)
def test_the_compact_form_lacks_only_the_accumulated_text(event: Any) -> None:
    full, compact = json.loads(encode_event(event)), json.loads(encode_event(event, accumulated=False))
    lacking = {ACCUMULATED_FIELDS[event.type]} if isinstance(event, DELTAS) else set()
    assert set(full) - set(compact) == lacking
    assert compact == {name: value for name, value in full.items() if name not in lacking}
    assert event_to_dict(event, accumulated=False) == compact
    assert type(decode_event(encode_event(event, accumulated=False))) is type(event)


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=4))
def test_an_unknown_type_is_decoded_without_loss(fields: dict[str, Any]) -> None:
    plain = {**fields, **plain_event("not_yet_invented")}
    line = json.dumps(plain).encode()
    event = decode_event(line)
    assert isinstance(event, UnknownEvent)
    assert (event.native_type, event.run_id, event.agent, event.timestamp) == ("not_yet_invented", *WHO)
    assert json.loads(encode_event(event)) == json.loads(encode_event(event, accumulated=False)) == json.loads(line)
    assert event_to_dict(event) == json.loads(line)


def test_an_unknown_type_needs_no_event_fields() -> None:
    event = decode_event(b'{"type":"x","timestamp":"yesterday","runId":5}')
    assert isinstance(event, UnknownEvent)
    assert encode_event(event) == b'{"type":"x","timestamp":"yesterday","runId":5}'


def test_unknown_fields_are_ignored() -> None:
    assert decode_event(json.dumps(plain_event("message_start", mood="good"))) == MessageStartEvent(*WHO)


@pytest.mark.parametrize(
    "line",
    [b"{}", b"[]", b"3", b'{"type":5}', b'{"type":"message_start"}', json.dumps(plain_event("text_delta")).encode()],
)
def test_an_invalid_event_is_rejected(line: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_event(line)


@pytest.mark.parametrize("line", [b"", b"{", b"hello", b'{"type":"message_start"'])
def test_invalid_json_is_rejected(line: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_event(line)


def test_negative_counts_and_unknown_literals_are_rejected() -> None:
    for plain in (
        plain_event("token_usage", inputTokens=-1, outputTokens=0),
        plain_event("turn_start", turnIndex=-1),
        plain_event("timeout", kind="boredom"),
        plain_event("message_start") | {"timestamp": 0},
    ):
        with pytest.raises(msgspec.ValidationError):
            event_from_dict(plain)


@pytest.mark.parametrize("so_far", [0, 1.5, None, True, [], {}])
@pytest.mark.parametrize(("kind", "field"), [("text_delta", "accumulated"), ("tool_input_delta", "inputAccumulated")])
def test_an_invalid_accumulated_text_is_rejected(kind: str, field: str, so_far: Any) -> None:
    plain = plain_event(kind, delta="x", toolCallId="t1", toolName="n") | {field: so_far}
    with pytest.raises(msgspec.ValidationError, match="Expected `str`"):
        event_from_dict(plain)
    with pytest.raises(msgspec.ValidationError, match="Expected `str`"):
        decode_event(json.dumps(plain))


# -- what JSON cannot hold


def test_unpaired_surrogates_become_replacement_characters() -> None:
    line = encode_event(LogEvent(*WHO, "stdout", "half \ud83d an emoji \udcff"))
    assert decode_event(line).line == "half \ufffd an emoji \ufffd"  # type: ignore[union-attr]
    delta = TextDeltaEvent(*WHO, "\ud83d", GrowingText().append("\ud83d"))
    assert decode_event(encode_event(delta)) == TextDeltaEvent(*WHO, "\ufffd", Accumulated.of("\ufffd"))
    assert encode_event(UnknownEvent(*WHO, fields={"type": "x", "y": "\ud83d"})) == b'{"type":"x","y":"\xef\xbf\xbd"}'


def test_too_deeply_nested_values_are_cut_off() -> None:
    value: Any = "the bottom"
    for _ in range(5000):
        value = [value]
    event = ToolCallReadyEvent(*WHO, "call-1", "tool", {"x": value})
    read = decode_event(encode_event(event))
    assert isinstance(read, ToolCallReadyEvent)
    assert read.tool_call_id == "call-1"
    assert event_to_dict(read) == event_to_dict(decode_event(encode_event(read)))


# -- text that grows


@given(st.lists(st.text(max_size=10)))
def test_each_view_shows_the_text_up_to_its_delta(deltas: list[str]) -> None:
    growing = GrowingText()
    views = [growing.append(delta) for delta in deltas]
    assert [str(view) for view in views] == ["".join(deltas[: index + 1]) for index in range(len(deltas))]
    assert str(growing) == "".join(deltas)
    assert [len(view) for view in views][-1:] == [len(growing)][: len(views)]


def test_views_share_one_buffer_so_that_a_stream_is_linear_in_memory() -> None:
    growing = GrowingText()
    views = [growing.append("x") for _ in range(3)]
    assert len({id(view._utf8) for view in views} | {id(growing._utf8)}) == 1


def test_a_view_is_equal_to_its_text() -> None:
    growing = GrowingText()
    first, second = growing.append("a"), growing.append("b")
    assert (first, second) == ("a", "ab") == (Accumulated.of("a"), Accumulated.of("ab"))
    assert first != second
    assert first != 1
    assert hash(first) == hash("a")
    assert (repr(second), len(second)) == ("'ab'", 2)
    assert copy.copy(second) is copy.deepcopy(second) is second


def test_the_accumulated_text_is_a_string() -> None:
    view = Accumulated.of("so far")
    assert TextDeltaEvent(*WHO, "", view).accumulated == "so far"
    assert ThinkingDeltaEvent(*WHO, "", view).accumulated == "so far"
    assert ToolInputDeltaEvent(*WHO, "c", "", view).input_accumulated == "so far"


@given(st.lists(st.text(max_size=5), min_size=1), st.text(max_size=5))
def test_extends_compares_a_view_with_its_predecessor(deltas: list[str], other: str) -> None:
    growing = GrowingText()
    before = growing.append("")
    for delta in deltas:
        view = growing.append(delta)
        elsewhere = Accumulated.of(str(view))
        assert view.extends(before, delta)
        assert elsewhere.extends(before, delta)
        assert view.extends(before, other) == elsewhere.extends(before, other) == (other == delta)
        before = view


# -- rebuilding


@st.composite
def delta_streams(draw: st.DrawFn) -> list[Any]:
    """Draw interleaved deltas of messages, thinking and tool inputs of the main agent and a sub-agent."""
    texts: dict[tuple[str, str | None], GrowingText] = {}
    stream: list[Any] = []

    def start(flow: tuple[str, str | None], event: Any, first: str = "") -> None:
        texts[flow] = GrowingText()
        texts[flow].append(first)
        stream.append(event)

    subagents = st.sampled_from([None, "sub-1"])
    for kind in draw(st.lists(st.sampled_from(["text", "thinking", "tool", "stop"]), max_size=25)):
        subagent, delta = draw(subagents), draw(st.text(max_size=4))
        flow = (draw(st.sampled_from(["call-1", "call-2"])), None) if kind == "tool" else (kind, subagent)
        if kind == "stop":
            texts.pop(("text", subagent), None)
            stream.append(MessageStopEvent(*WHO, delta, subagent_id=subagent))
        elif flow not in texts or draw(st.integers(0, 3)) == 0:
            started = {
                "text": MessageStartEvent(*WHO, subagent_id=subagent),
                "thinking": ThinkingStartEvent(*WHO, subagent_id=subagent),
                "tool": ToolCallStartEvent(*WHO, flow[0], "tool", delta),
            }[kind]
            start(flow, started, delta if kind == "tool" else "")
        elif kind == "tool":
            stream.append(ToolInputDeltaEvent(*WHO, flow[0], delta, texts[flow].append(delta)))
        else:
            event = TextDeltaEvent if kind == "text" else ThinkingDeltaEvent
            stream.append(event(*WHO, delta, texts[flow].append(delta), subagent_id=subagent))
    return stream


@given(delta_streams(), st.data())
def test_a_compact_stream_mixed_with_full_lines_is_restored(stream: list[Any], data: st.DataObject) -> None:
    rebuilder = Rebuilder()
    for event in stream:
        line = encode_event(event, accumulated=data.draw(st.booleans()))
        assert rebuilder.decode(line) == event


def test_a_stream_that_begins_inside_a_text_uses_the_first_full_line() -> None:
    growing = GrowingText()
    growing.append("missed ")
    rebuilder = Rebuilder()
    first = TextDeltaEvent(*WHO, "seen", growing.append("seen"))
    second = TextDeltaEvent(*WHO, "!", growing.append("!"))
    assert rebuilder.decode(encode_event(first)) == first
    assert rebuilder.decode(encode_event(second, accumulated=False)) == second


def test_restored_deltas_share_one_buffer() -> None:
    rebuilder = Rebuilder()
    rebuilder.decode(encode_event(MessageStartEvent(*WHO)))
    line = json.dumps(plain_event("text_delta", delta="x"))
    views = [rebuilder.decode(line).accumulated_view for _ in range(3)]  # type: ignore[union-attr]
    assert [str(view) for view in views] == ["x", "xx", "xxx"]
    assert len({id(view._utf8) for view in views}) == 1


def test_a_rebuilder_forgets_closed_texts() -> None:
    rebuilder = Rebuilder()
    for kind, end in (("message_start", "message_stop"), ("thinking_start", "thinking_stop")):
        rebuilder.decode(json.dumps(plain_event(kind)))
        rebuilder.decode(json.dumps(plain_event(end, text="", thinking="")))
    for end in ("tool_call_ready", "tool_result", "tool_error"):
        call = {"toolCallId": end, "toolName": "t", "input": 1, "output": 1, "error": "", "durationMs": 0}
        rebuilder.decode(json.dumps(plain_event("tool_call_start", inputAccumulated="", **call)))
        rebuilder.decode(json.dumps(plain_event(end, **call)))
    assert not rebuilder._texts


def test_every_event_type_is_in_the_schema() -> None:
    assert len(json_schema()["anyOf"]) == len(ALL_EVENTS)
