"""Every rule of the contract accepts conforming streams and reports its violations, in every form of input."""

import json
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from tests.unit.contract.contract_cases import BROKEN, CONFORMING
from tests.unit.contract.contract_streams import (
    CRASH,
    LOG,
    RUN_ID,
    TOKENS,
    Event,
    ask,
    call_input,
    call_ready,
    call_result,
    call_start,
    end,
    ev,
    message,
    run,
    start,
    step_start,
    thought,
    turn_start,
)

from agent_mux.contract import RULES, Breach, ContractChecker, validate
from agent_mux.events import (
    Accumulated,
    CostEvent,
    CostRecord,
    GrowingText,
    Rebuilder,
    TextDeltaEvent,
    TokenUsageEvent,
    UnknownEvent,
    event_from_dict,
)
from agent_mux.events.wire import ACCUMULATED_FIELDS

WHO = (RUN_ID, "claude", 1)


def named(cases: Iterable[tuple[str, str, list[Event]]]) -> list[Any]:
    return [pytest.param(rule, stream, id=f"{rule} {name}") for rule, name, stream in cases]


def rules(breaches: list[Breach]) -> list[str]:
    return [breach.rule for breach in breaches]


def compact(stream: list[Event]) -> list[Event]:
    return [
        {name: value for name, value in event.items() if name != ACCUMULATED_FIELDS.get(event.get("type", ""))}
        for event in stream
    ]


def is_readable(stream: list[Event]) -> bool:
    try:
        [event_from_dict(event) for event in stream]
    except msgspec.ValidationError:
        return False
    return True


def test_every_rule_has_a_conforming_and_a_broken_stream() -> None:
    assert {rule for rule, _, _ in CONFORMING} - {"1.2"} == set(RULES)
    assert {rule for rule, _, _ in BROKEN} == set(RULES)


@pytest.mark.parametrize(("rule", "stream"), named(CONFORMING))
def test_a_conforming_stream_passes_in_every_form(rule: str, stream: list[Event]) -> None:
    assert validate(stream) == []
    assert validate(compact(stream)) == []
    assert validate([event_from_dict(event) for event in stream]) == []
    rebuilder = Rebuilder()
    assert validate([rebuilder.decode(json.dumps(event)) for event in compact(stream)]) == []


@pytest.mark.parametrize(("rule", "stream"), named(CONFORMING))
def test_an_incomplete_conforming_stream_passes(rule: str, stream: list[Event]) -> None:
    for length in range(len(stream)):
        assert validate(stream[:length], complete=False) == []


@pytest.mark.parametrize(("rule", "stream"), named(BROKEN))
def test_a_violation_is_reported_first_and_once(rule: str, stream: list[Event]) -> None:
    found = rules(validate(stream))
    assert found[:1] == [rule]
    # A violation may cause a few more reports.
    assert len(found) <= 3
    if is_readable(stream):
        assert rules(validate([event_from_dict(event) for event in stream])) == found


@pytest.mark.parametrize(("rule", "stream"), named(BROKEN))
def test_feeding_event_by_event_reports_the_same(rule: str, stream: list[Event]) -> None:
    checker = ContractChecker()
    pieces = [checker.feed(event) for event in stream]
    last = checker.finish()
    assert [breach for piece in [*pieces, last] for breach in piece] == validate(stream)
    assert all(breach.index == index for index, piece in enumerate(pieces) for breach in piece)
    assert all((breach.index, breach.event_type) == (len(stream), None) for breach in last)
    assert validate(stream, complete=False) == validate(stream)[: len(validate(stream)) - len(last)]


@pytest.mark.parametrize(("rule", "stream"), named(BROKEN))
def test_every_violation_has_rule_message_and_position(rule: str, stream: list[Event]) -> None:
    for breach in validate(stream):
        assert breach.rule in RULES
        assert breach.message
        assert f"section {breach.rule}" in str(breach)
        if breach.event_type is not None:
            assert breach.event_type == stream[breach.index].get("type", "")


# -- the end


def test_an_empty_stream_lacks_session_start_and_session_end() -> None:
    assert rules(validate([])) == ["25.1.1", "25.1.2"]
    assert rules(validate([LOG])) == ["25.1.1", "25.1.2"]
    assert validate([], complete=False) == []


def test_open_items_at_the_end_are_reported_with_their_rules() -> None:
    stream = [start(), turn_start(), step_start(), *message("a")[:-1], call_start(), call_ready(), ask()]
    assert rules(validate(stream)) == ["25.1.2", "7.4", "9.7", "18.2", "6.5", "25.2.1"]
    assert validate(stream, complete=False) == []


def test_open_items_at_a_terminal_event_are_reported_once() -> None:
    stream = [start(), turn_start(), *thought("a")[:-1], call_start(), CRASH, end(0)]
    assert rules(validate(stream)) == ["8.4", "9.7", "25.2.1"]
    assert {breach.index for breach in validate(stream)} == {5}


def test_a_violation_is_formatted_with_position_and_section() -> None:
    (breach,) = validate([start(), end(0, sessionId="x")])
    assert str(breach) == "event 1 (session_end): session 'x' in a run of session 's' [section 23]"
    (missing,) = validate([start()])
    assert str(missing) == "end of stream: there is no session_end [section 25.1.2]"


# -- objects


def test_event_objects_with_invalid_fields_are_reported() -> None:
    bad_cost = CostRecord(total_usd=float("nan"), input_tokens=0, output_tokens=0)
    for event, what in (
        (TokenUsageEvent(*WHO, -1, 0), "inputTokens is -1"),
        (TokenUsageEvent(*WHO, True, 0), "inputTokens is True"),
        (TokenUsageEvent(*WHO, 1, 0, None, 1.5), "cachedTokens is 1.5"),  # type: ignore[arg-type]
        (CostEvent(*WHO, bad_cost), "cost is CostRecord(total_usd=nan"),
        (TextDeltaEvent(*WHO, None, Accumulated.of("")), "delta is None"),  # type: ignore[arg-type]
        (TextDeltaEvent(*WHO, "x", "x"), "accumulated is 'x'"),  # type: ignore[arg-type]
        (TextDeltaEvent(*WHO[:2], 0, "x", Accumulated.of("x")), "timestamp is 0"),
    ):
        (breach,) = [breach for breach in validate([event], complete=False) if breach.rule == "2.1"]
        assert breach.message.startswith(what)


def test_a_long_invalid_value_is_shortened_in_the_message() -> None:
    (breach,) = validate([TokenUsageEvent(*WHO, "x" * 999, 0)], complete=False)  # type: ignore[arg-type]
    assert len(breach.message) < 120


def test_unknown_events_are_accepted_anywhere() -> None:
    unknown = UnknownEvent("", "", 0, fields={"type": "x"})
    assert validate([unknown, event_from_dict(start()), unknown, event_from_dict(end(0)), unknown]) == []


# -- accumulated text


def test_views_on_the_same_text_are_compared_by_delta() -> None:
    growing = GrowingText()
    views = [growing.append(delta) for delta in "abc"]
    deltas = [TextDeltaEvent(*WHO, delta, view) for delta, view in zip("abc", views, strict=True)]
    first, *_, last = [event_from_dict(event) for event in message("abc")]
    frame = [event_from_dict(event) for event in run()]
    assert validate([*frame[:2], first, *deltas, last, *frame[2:]]) == []
    skipped = [*frame[:2], first, deltas[0], deltas[2], last, *frame[2:]]
    assert rules(validate(skipped)) == ["7.2", "7.4"]


def test_after_a_wrong_accumulated_text_the_deltas_count() -> None:
    deltas = [
        ev("text_delta", delta=delta, accumulated=text) for delta, text in (("a", "x"), ("b", "ab"), ("c", "xbc"))
    ]
    stream = run(ev("message_start"), *deltas, ev("message_stop", text="abc"))
    assert [(breach.rule, breach.index) for breach in validate(stream)] == [("7.2", 3), ("7.2", 5)]


def test_compact_and_full_deltas_can_be_mixed() -> None:
    stream = message("a", "b", "c", "d")
    for index in (2, 3):
        del stream[index]["accumulated"]
    inputs = [call_start(), call_input("1", "1"), call_input("2", "12"), call_ready(), call_result()]
    del inputs[1]["inputAccumulated"]
    assert validate(run(*stream, *inputs)) == []


def test_a_wrong_compact_text_is_reported_at_its_end() -> None:
    stream = run(*compact(message("a", "b")[:-1]), ev("message_stop", text="a"))
    assert [(breach.rule, breach.event_type) for breach in validate(stream)] == [("7.4", "message_stop")]


# -- memory


def test_closed_items_are_forgotten() -> None:
    checker = ContractChecker()
    for event in [
        start(),
        turn_start(),
        *message("a" * 9),
        *thought("b"),
        TOKENS,
        call_start(),
        call_ready(),
        call_result(),
    ]:
        assert checker.feed(event) == []
    assert list(checker._open_items()) == [("25.2.1", "turn 0")]
    assert checker._content._tool_calls._native == {}
    assert checker._content.messages._message._text is None
    assert checker._call_ids == {"c"}
