"""The kept end of a command's output."""

from hypothesis import given
from hypothesis import strategies as st

from agent_loop.tools.builtin.output import OutputTail, last_bytes, with_truncation_note


@given(st.lists(st.text(max_size=9)), st.integers(min_value=0, max_value=20))
def test_the_end_is_kept_whole_characters_only_and_every_byte_is_counted(texts: list[str], limit: int) -> None:
    tail = OutputTail(limit)
    for text in texts:
        tail.add(text)
    whole = "".join(texts)
    kept = len(tail.text.encode())
    assert whole.endswith(tail.text)
    assert kept <= limit
    assert kept + tail.dropped == len(whole.encode())
    if tail.dropped:
        assert kept > limit - 4 or limit < 4
    assert bool(tail) == bool(whole)


def test_truncated_output_begins_with_the_number_of_dropped_bytes() -> None:
    assert last_bytes("abcä", 2) == ("ä", 3)
    assert last_bytes("abcä", 1) == ("", 5)
    assert with_truncation_note("ä", 3) == "...(3 bytes truncated from head)...\nä"
    assert with_truncation_note("ä", 0) == "ä"


def test_take_clears_the_tail() -> None:
    tail = OutputTail(2)
    tail.add("abc")
    assert tail.take() == "...(1 bytes truncated from head)...\nbc"
    assert not tail
    tail.add("d")
    assert tail.take() == "d"
