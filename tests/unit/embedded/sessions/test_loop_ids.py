"""Ids of sessions and loops."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_loop.sessions import LoopName, config_segment, loop_id, new_id, next_number, parse_loop_id
from agent_loop.sessions.ids import MAX_SEGMENT
from agent_loop.sessions.store import check_session_id


def test_new_ids_are_made_of_the_time_and_of_chance_that_are_handed_in() -> None:
    def zeros(count: int) -> bytes:
        return b"\0" * count

    early, late = new_id(clock=lambda: 1.0, entropy=zeros), new_id(clock=lambda: 2.0, entropy=zeros)

    assert early == "00000000Z8" + "0" * 16
    assert early < late
    assert new_id() != new_id()
    assert check_session_id(new_id())


def test_loop_id_is_session_config_and_number() -> None:
    assert loop_id("s", "anthropic-big", 3) == "s.anthropic-big.3"


@pytest.mark.parametrize(
    ("known", "segment"),
    [
        (("anthropic", "big-4.1", "high"), "anthropic-big-4_1-high"),
        (("anthropic", "big", None), "anthropic-big"),
        (("anthropic", "big", "off"), "anthropic-big"),
        (("anthropic", "big", "high", "mine"), "mine"),
        (("x", "vendor/model:free", None), "x-vendor_model_free"),
        (("", "", None), "default"),
    ],
)
def test_config_segment_is_derived_of_provider_model_and_thinking(known: tuple[str, ...], segment: str) -> None:
    assert config_segment(*known) == segment


def test_long_segments_end_in_a_hash_and_stay_different() -> None:
    one, other = (config_segment("p", "m" * 200 + end) for end in "ab")

    assert len(one) == MAX_SEGMENT
    assert one != other


@given(
    session=st.text(min_size=1),
    provider=st.text(),
    model=st.text(),
    own=st.none() | st.text(),
    number=st.integers(1, 99),
)
def test_loop_ids_can_be_taken_apart_again(
    session: str, provider: str, model: str, own: str | None, number: int
) -> None:
    segment = config_segment(provider, model, None, own)

    assert re.fullmatch(r"[A-Za-z0-9_-]+", segment)
    assert parse_loop_id(loop_id(session, segment, number)) == LoopName(session, segment, number)


@pytest.mark.parametrize("text", ["", "s", "s.c", "s.c.x", ".c.1", "s..1", "s.c.1\n", "s.c.-1"])
def test_other_text_is_not_parsed_as_a_loop_id(text: str) -> None:
    assert parse_loop_id(text) is None


def test_loop_numbers_continue_those_of_the_stored_session() -> None:
    there = ["s.c.1", "s.c.7", "s.other.9", "t.c.8", "no loop id"]

    assert next_number(there, "s", "c") == 8
    assert next_number(there, "s", "new") == 1
