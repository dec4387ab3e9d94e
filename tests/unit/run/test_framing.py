"""Line framing: only a newline ends a line, and chunk boundaries have no effect."""

import itertools
import tracemalloc

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_mux.sdk.framing import LineFramer, from_recorded_line, split_lines, to_recorded_line

LETTERS = st.sampled_from([b"\n", b"\r", b"\r\n", b"a", b"\0", b"\xff", "\u2028".encode(), b"\x85", b"\x0b", b"\x1c"])


def expected(data: bytes) -> list[bytes]:
    """Return the definition: split at newlines, the last one optional, without one carriage return before it."""
    parts = data.split(b"\n")
    whole = parts[:-1] + ([parts[-1]] if parts[-1] else [])
    return [part[:-1] if part.endswith(b"\r") else part for part in whole]


@given(data=st.lists(LETTERS, max_size=30).map(b"".join), cuts=st.lists(st.integers(0, 60), max_size=10))
@example(data=b"a\r\nb", cuts=[2])
@example(data=b"\r\n\r\n", cuts=[1, 2, 3])
@example(data=b"a\r", cuts=[1])
def test_lines_do_not_depend_on_chunk_boundaries(data: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    chunks = [data[start:end] for start, end in itertools.pairwise(places)]
    assert split_lines(chunks) == split_lines([data]) == expected(data)


@pytest.mark.parametrize(
    "inside", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\0", "\r"], ids=lambda text: f"{ord(text):x}"
)
def test_only_a_newline_ends_a_line(inside: str) -> None:
    data = f'{{"text":"a{inside}b"}}\n'.encode()
    assert split_lines([data]) == [data[:-1]]


def test_bytes_that_are_not_utf8_are_passed_on_unchanged() -> None:
    assert split_lines([b"\xff\xfe\n", b"\xc3"]) == [b"\xff\xfe", b"\xc3"]


def test_a_line_is_returned_as_soon_as_it_is_complete() -> None:
    framer = LineFramer()
    assert framer.feed(b"one\ntw") == [b"one"]
    assert framer.feed(b"o") == []
    assert framer.feed(b"\n") == [b"two"]
    assert framer.feed(b"") == []
    assert framer.finish() == []


def test_the_last_line_needs_no_newline() -> None:
    framer = LineFramer()
    framer.feed(b"one\ntwo\r")
    assert framer.finish() == [b"two"]
    assert framer.finish() == []


def test_a_long_line_is_joined_once_instead_of_for_each_chunk() -> None:
    chunk = b"x" * (1 << 16)
    framer = LineFramer()
    tracemalloc.start()
    try:
        for _ in range(1 << 10):
            assert framer.feed(chunk) == []
        kept, most = tracemalloc.get_traced_memory()
        (line,) = framer.feed(b"\n")
    finally:
        tracemalloc.stop()
    assert len(line) == 1 << 26
    assert max(kept, most) < 1 << 20  # chunks are kept as received; copying them all would need 64 times as much


@given(chunk=st.binary())
def test_a_chunk_survives_as_a_line_of_a_recording(chunk: bytes) -> None:
    line = to_recorded_line("chunks", chunk)
    assert b"\n" not in line
    assert from_recorded_line("chunks", line) == chunk


@pytest.mark.parametrize("line", [b"", b"null", b"{", b"[" * 5000, b'"\\ud800"', b"\xff"])
def test_a_line_that_is_not_a_chunk_is_passed_on_unchanged(line: bytes) -> None:
    assert from_recorded_line("chunks", line) == line
