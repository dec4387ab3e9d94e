"""ULIDs have the text form of the package `python-ulid`."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ulid import ULID

from agent_mux._util.ulids import is_ulid, new_ulid, ulid_from_bytes


@given(st.binary(min_size=16, max_size=16))
def test_ulid_of_a_value_is_that_of_the_package(value: bytes) -> None:
    text = ulid_from_bytes(value)
    assert text == str(ULID.from_bytes(value))
    assert is_ulid(text)


def test_new_ulids_differ_and_have_the_present_time() -> None:
    before = int(time.time() * 1000)
    first, second = ULID.from_str(new_ulid()), ULID.from_str(new_ulid())
    assert first != second
    assert before <= first.milliseconds <= int(time.time() * 1000)


@pytest.mark.parametrize(
    "text", ["", "01M8E0532JVRYA8ENM6DJD9E1", "81M8E0532JVRYA8ENM6DJD9E1K", "01M8E0532JVRYA8ENM6DJD9E1U", "\u0660" * 26]
)
def test_other_texts_are_no_ulids(text: str) -> None:
    assert not is_ulid(text)
