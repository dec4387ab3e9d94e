import pytest

from agent_mux.api.event_lines import count, diff_size, duration, event_line, money, short_input
from agent_mux.events import CostRecord, RetryEvent


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"command": "ls -la\n  | wc", "description": "list"}, "ls -la | wc"),
        ({"cmd": ["bash", "-lc", "ls"]}, "bash -lc ls"),
        ({"file_path": "/a/b", "content": "x" * 1000}, "/a/b"),
        ({"command": "  ", "path": "p"}, "p"),
        ({"a": 1, "b": [True]}, '{"a":1,"b":[true]}'),
        ({}, ""),
        ("just text", "just text"),
        (None, "null"),
        ({"odd": "\ud800"}, '{"odd":"\ufffd"}'),
        ({"command": "\x1b[2Jls"}, "ls"),
        ({"command": "x" * 100}, "x" * 29 + "…"),
    ],
)
def test_short_input_shows_the_informative_field(given: object, shown: str) -> None:
    assert short_input(given, 30) == shown


def test_number_formats() -> None:
    assert [duration(ms) for ms in (0, 999, 1000, 59_949, 61_000)] == ["0 ms", "999 ms", "1.0 s", "59.9 s", "1 min 1 s"]
    assert [count(number, "turn") for number in (0, 1, 2, 1234)] == ["0 turns", "1 turn", "2 turns", "1,234 turns"]
    assert money(CostRecord(0.01234, 1, 1)) == "$0.0123"
    assert money(CostRecord(0, 1, 1, source="unknown")) == ""
    assert money(None) == ""
    assert diff_size("--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-a\n+b\n+c\n") == "+2 -1"


def test_line_of_a_fallback_names_the_next_agent() -> None:
    retry = RetryEvent("R", "claude", 1, 1, 0, "used up", 0, "codex", "gpt-5.5")
    line = event_line(retry)
    assert line is not None
    assert line.text == "claude was refused: used up; continues with codex (gpt-5.5)"
    again = event_line(RetryEvent("R", "claude", 1, 2, 3, "used up", 1000))
    assert again is not None
    assert again.text == "retry 2 of 3 in 1.0 s: used up"
