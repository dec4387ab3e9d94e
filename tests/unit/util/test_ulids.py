"""ULIDs have the text form of the package `python-ulid`."""

import time

from hypothesis import given
from hypothesis import strategies as st
from ulid import ULID

from agent_mux._util.ulids import new_ulid, ulid_from_bytes


@given(st.binary(min_size=16, max_size=16))
def test_ulid_of_a_value_is_that_of_the_package(value: bytes) -> None:
    assert ulid_from_bytes(value) == str(ULID.from_bytes(value))


def test_new_ulids_differ_and_have_the_present_time() -> None:
    before = int(time.time() * 1000)
    first, second = ULID.from_str(new_ulid()), ULID.from_str(new_ulid())
    assert first != second
    assert before <= first.milliseconds <= int(time.time() * 1000)
