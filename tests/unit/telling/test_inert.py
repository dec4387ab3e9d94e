"""Text of an agent can do no harm, wherever it is shown."""

import json

import pytest

from agent_mux._util.sanitize import escape_invisible, one_line, sanitize


@pytest.mark.parametrize(
    ("hostile", "harmless"),
    [
        ("plain text", "plain text"),
        ("tabs\tand\nnewlines stay", "tabs\tand\nnewlines stay"),
        ("windows\r\nlines", "windows\nlines"),
        ("safe\rrm -rf /", "saferm -rf /"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[H", ""),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]52;c;cm0gLXJm\x1b\\after", "after"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1$r0m\x1b\\after", "after"),
        ("\x9b31mred \x9d0;title\x9cafter", "red after"),
        ("cut off \x1b[3", "cut off [3"),
        ("cut off \x1b]0;no end of it", "cut off ]0;no end of it"),
        ("\x1bc reset, \x1b(0 charset", "c reset, (0 charset"),
        ("a\x00b\x07c\x08d\x7fe\x85f", "abcdef"),
        ("rtl \u202e drow \u2066 isolate \u2069", "rtl  drow  isolate "),
        ("שלום and 你好 and 🏳\u200d🌈", "שלום and 你好 and 🏳\u200d🌈"),
        ("\u2028line\u2029", "line"),
        ("pay\u200bpal\u200d.com\u200c \u200e\u200f\u061cx\u2060y\xadz\ufeff", "paypal.com xyz"),
        ("tags \U000e0061\U000e007f, marks a\ufe0f\ufe00\u180e, fillers \u3164\u115f", "tags , marks a, fillers "),
        ("\u2764\ufe0f\u200d\U0001f525 1\ufe0f\u20e3", "\u2764\ufe0f\u200d\U0001f525 1\ufe0f\u20e3"),
        ("\u0645\u06cc\u200c\u062e\u0648", "\u0645\u06cc\u200c\u062e\u0648"),
        ("\u4f60\u200d\u200d\ufeff\u200d \u200d", "\u4f60 "),
    ],
)  # fmt: skip
def test_only_text_reaches_a_terminal(hostile: str, harmless: str) -> None:
    assert sanitize(hostile) == harmless
    assert sanitize(sanitize(hostile)) == harmless


def test_json_for_a_terminal_has_no_invisible_characters_and_the_same_meaning() -> None:
    text = 'a\x7f\x85\x9b31m\u2028\u2029\u202e\u200b\U000e0061 \u4f60 "q" \\\\ \n'
    encoded = json.dumps({"k": text}, ensure_ascii=False)
    escaped = escape_invisible(encoded)
    assert json.loads(escaped) == {"k": text}
    assert escaped.isprintable()
    assert "\u4f60" in escaped


@pytest.mark.parametrize("length", [1, 2, 3, 5, 10])
def test_a_sequence_in_pieces_is_as_harmless_as_a_whole_one(length: int) -> None:
    hostile = "\x1b]52;c;cm0gLXJm\x07\x1b[2Jx\x9b3mtext\x1b[0m"
    pieces = [hostile[start : start + length] for start in range(0, len(hostile), length)]
    assert not set("\x1b\x07\x9b") & set("".join(map(sanitize, pieces)))


@pytest.mark.parametrize("introducer", ["\x1b]", "\x1b[", "\x1b[0", "\x90", "\x9d", "\x9b", "\x9b0", "\x1bP\x90"])
def test_many_unfinished_sequences_do_not_cost_quadratic_time(introducer: str) -> None:
    assert sanitize(introducer * 200_000).isprintable()  # minutes, if it did


def test_one_line_is_one_line_of_at_most_so_many_characters() -> None:
    assert one_line("  a\n\tb \r\n c\x1b[1m ", 80) == "a b c"
    assert one_line("x" * 100, 10) == "x" * 9 + "…"
    assert one_line("x" * 10, 10) == "x" * 10
    assert one_line("\x1b[31m" * 1000 + "never shown in full", 10).isprintable()
