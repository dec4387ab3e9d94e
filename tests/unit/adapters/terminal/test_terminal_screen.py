"""The emulated screen: contents for any chunking, and for any output of a program."""

import sys
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_mux.errors import AgentMuxError
from agent_mux.sdk.codec import TerminalSize

pytest.importorskip("pyte")

from agent_mux_adapters.terminal.screen import MAX_REPLIES, MAX_SCROLLBACK, Screen
from agent_mux_adapters.terminal.sequences import LONGEST_SEQUENCE

SMALL = TerminalSize(20, 5)
PIECES = (
    b"plain text", b" ", b"\r\n", b"\n", b"\t", b"\b", "naïve".encode(), "日本語".encode(),
    "⚠️ 👩‍💻 e\u0301".encode(), b"\xff\xfe",
    b"\x1b[H", b"\x1b[2J", b"\x1b[3J", b"\x1b[K", b"\x1b[3;7H", b"\x1b[1A", b"\x1b[2B", b"\x1b[5C", b"\x1b[2D",
    b"\x1b[31;1m", b"\x1b[0m", b"\x1b[38;5;12m", b"\x1b[4:3m", b"\x1b[2L", b"\x1b[M", b"\x1b[2P",
    b"\x1b[3@", b"\x1b[4X",
    b"\x1b[S", b"\x1b[2;4r", b"\x1b[r", b"\x1b7", b"\x1b8", b"\x1bM", b"\x1bD", b"\x1bE", b"\x1bc", b"\x1b(0lqk\x1b(B",
    b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?25l", b"\x1b[?2004h", b"\x1b[?7l", b"\x1b[?7h", b"\x1b[4h", b"\x1b[4l",
    b"\x1b]0;a title\x07", b"\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\",
    b"\x1bPq#1~~\x1b\\", b"\x1b_Gi=1\x1b\\",
    b"\x1b[6n", b"\x1b[5n", b"\x1b[c", b"\x1b[>c", b"\x1b[?u", b"\x1b[=1;1u", b"\x1b[>4;2m",
    b"\x1b[?2026$p", b"\x1b[2 q", b"a\x1b[5b", "\x9b2Jx".encode(), b"\x1b[3", b"\x1b[\x18", b"\x1b[1\r2C",
)  # fmt: skip
DRAWN = st.lists(st.sampled_from(PIECES), max_size=25).map(b"".join)


def shown(*chunks: bytes, size: TerminalSize = SMALL) -> Screen:
    screen = Screen(size)
    for chunk in chunks:
        screen.feed(chunk)
    return screen


def seen(data: bytes, cuts: list[int]) -> tuple[list[str], list[str], bool, bytes]:
    screen = Screen(SMALL)
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    answers = b"".join(screen.feed(data[start:end]) for start, end in pairwise(places))
    return screen.lines, screen.rows, screen.takes_pastes, answers


@pytest.mark.slow
@given(data=DRAWN, cuts=st.lists(st.integers(0, 10_000), max_size=12))
@settings(max_examples=300, deadline=None)
def test_chunk_boundaries_do_not_matter(data: bytes, cuts: list[int]) -> None:
    assert seen(data, cuts) == seen(data, [])


@given(data=DRAWN)
@settings(max_examples=60, deadline=None)
def test_single_bytes_give_the_same_screen(data: bytes) -> None:
    assert seen(data, list(range(len(data)))) == seen(data, [])


@pytest.mark.slow
@given(
    data=st.one_of(st.binary(max_size=300), DRAWN),
    sizes=st.lists(st.builds(TerminalSize, st.integers(1, 30), st.integers(1, 12)), max_size=3),
)
@settings(max_examples=300, deadline=None)
def test_any_output_raises_nothing(data: bytes, sizes: list[TerminalSize]) -> None:
    screen = Screen(SMALL)
    screen.feed(data)
    for size in sizes:
        screen.resize(size)
        screen.feed(data)
        assert len(screen.rows) == size.rows


@pytest.mark.parametrize(
    "hidden",
    [
        b"\x1b[1;31m", b"\x1b[38;2;1;2;3m", b"\x1b[4:3m", b"\x1b]0;title\x07", b"\x1b]52;c;c2VjcmV0\x1b\\",
        b"\x1bPdata\x1b\\",
        b"\x1b_Gi=31,s=1;AAAA\x1b\\", b"\x1b^private\x1b\\", b"\x1b[>4;2m", b"\x1b[=1;1u", b"\x1b[<u", b"\x1b[?2026$p",
        b"\x1b[2 q", b"\x1b[!p", b"\x1b#8", b"\x1b%G", b"\x1b F", b"\x1b[?2004h", b"\x1b[12;",
        b"\x1b[" + b"1" * 999 + b"m",
        "\x9d0;title\x9c".encode(), b"\x1b[3\x18", b"\x00\x07\x7f",
    ],
)  # fmt: skip
def test_escape_sequences_are_not_text(hidden: bytes) -> None:
    # An incomplete sequence consumes the next letter as its end.
    assert shown(b"be" + hidden + (b"m" if hidden.endswith(b";") else b"") + b"fore").rows[0] == "before"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("日本", "日本"),
        ("a⚠️ b", "a⚠️ b"),
        ("👩‍💻 works", "👩‍💻 works"),
        ("cafe\u0301", "cafe\u0301"),
        ("\x1b(0lqk\x1b(Bx", "┌─┐x"),
        ("-\x1b[9b", "-" * 10),
        ("abc\rX", "Xbc"),
        ("日本\r\x1b[2Cx", "日x"),
        ("one\x1b[2Dx", "oxe"),
        ("\u0301first", "first"),
    ],
)
def test_characters_are_drawn_in_their_cells(data: str, expected: str) -> None:
    assert shown(data.encode()).rows[0] == expected


def test_endless_title_is_dropped_at_the_next_sequence() -> None:
    screen = shown(b"\x1b]0;" + b"x" * 100_000)
    assert screen._parser._collected == ""
    screen.feed(b"\x1b[Hhere")
    assert screen.rows[0] == "here"
    screen.feed(b"\x1b[" + b"1;" * 100_000)
    assert len(screen._parser._collected) <= LONGEST_SEQUENCE


def test_scrollback_is_kept_and_bounded() -> None:
    screen = shown(b"".join(b"line %d\r\n" % number for number in range(MAX_SCROLLBACK + 50)))
    assert len(screen.lines) == MAX_SCROLLBACK + 5
    assert screen.lines[-2] == f"line {MAX_SCROLLBACK + 49}"
    screen.feed(b"\x1b[3J")
    assert len(screen.lines) == 5


def test_wrapped_lines_scroll_off() -> None:
    assert shown(b"first\r\n\n\n\n" + b"x" * 25).lines == ["first", "", "", "", "x" * 20, "xxxxx"]


def test_alternate_screen_is_discarded() -> None:
    screen = shown(b"before\r\n", b"\x1b[?1049h\x1b[2J\x1b[H" + b"full\r\n" * 9)
    assert screen.lines == ["full"] * 4 + [""]
    screen.feed(b"\x1b[?1049l")
    assert screen.lines == ["before", "", "", "", ""]


def test_lines_are_inserted_and_deleted_within_the_margins() -> None:
    screen = shown(b"a\r\nb\r\nc\r\nd\r\ne\x1b[2;4r\x1b[2;1H\x1b[L")
    assert screen.rows == ["a", "", "b", "c", "e"]
    screen.feed(b"\x1b[2M")
    assert screen.rows == ["a", "c", "", "", "e"]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (TerminalSize(20, 3), ["one", "two", "three"]),
        (TerminalSize(20, 2), ["two", "three"]),
        (TerminalSize(3, 5), ["one", "two", "thr", "", ""]),
        (TerminalSize(30, 7), ["one", "two", "three", "", "", "", ""]),
    ],
)
def test_resize_keeps_lines_near_the_cursor(size: TerminalSize, expected: list[str]) -> None:
    screen = shown(b"one\r\ntwo\r\nthree")
    screen.resize(size)
    assert screen.rows == expected
    assert "".join(screen.lines).startswith("one")


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (b"\x1b[c", b"\x1b[?6c"),
        (b"\x1b[5n", b"\x1b[0n"),
        (b"ab\x1b[6n", b"\x1b[1;3R"),
        (b"x" * 20 + b"\x1b[6n", b"\x1b[1;20R"),
    ],
)
def test_terminal_replies_to_queries(question: bytes, answer: bytes) -> None:
    assert Screen(SMALL).feed(question) == answer


@pytest.mark.parametrize(
    "question",
    [
        b"\x1b]0;rm -rf /\x07\x1b[21t", b"\x1b]2;evil\x07\x1b[20t", b"\x1bP$qm\x1b\\", b"\x1bP+q544e\x1b\\",
        b"\x1b]11;?\x07",
        b"\x1b]52;c;?\x07", b"\x1b]4;1;?\x1b\\", b"\x1b[>q", b"\x1b[?2026$p", b"\x1b[>c", b"\x1b[=c",
        b"\x1b[?6n", b"\x1b[1c",
        b"\x05", b"\x1bZ",
    ],
)  # fmt: skip
def test_replies_contain_no_program_text(question: bytes) -> None:
    assert Screen(SMALL).feed(question) == b""


def test_replies_per_chunk_are_bounded() -> None:
    assert Screen(SMALL).feed(b"\x1b[c" * 5000) == b"\x1b[?6c" * MAX_REPLIES


def test_missing_extra_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyte", None)
    with pytest.raises(AgentMuxError, match=r"need pyte: pip install 'agent-mux\[terminal\]'"):
        Screen(SMALL)
