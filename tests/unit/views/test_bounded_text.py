"""Long text keeps its beginning and its end."""

import pytest

from agent_mux.views import BoundedText


def test_short_text_is_whole() -> None:
    text = BoundedText("ab", head=3, tail=3)
    text.append("cdef")
    assert (str(text), text.head, text.tail, text.omitted) == ("abcdef", "abc", "def", 0)
    assert text == "abcdef"


def test_empty_text_is_false() -> None:
    assert not BoundedText()
    assert str(BoundedText()) == ""


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_middle_of_long_text_is_counted(size: int) -> None:
    whole = "".join(f"{number}\n" for number in range(1000))
    text = BoundedText(head=5, tail=6)
    for start in range(0, len(whole), size):
        text.append(whole[start : start + size])
    assert (text.head, text.tail) == (whole[:5], whole[-6:])
    assert text.omitted == len(whole) - 11
    assert text.newlines == 1000
    assert text.omitted_newlines == 1000 - text.head.count("\n") - text.tail.count("\n")
    assert str(text) == f"{whole[:5]}\n... {len(whole) - 11:,} characters omitted ...\n{whole[-6:]}"


def test_text_without_end_keeps_its_beginning() -> None:
    text = BoundedText("abcdef", head=2, tail=0)
    assert (text.head, text.tail, text.omitted) == ("ab", "", 4)
