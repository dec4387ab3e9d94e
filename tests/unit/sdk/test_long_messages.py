"""A line or a message that is far too long: its beginning, whatever the chunks in which it arrives."""

import pytest

from agent_mux.sdk import framing
from agent_mux.sdk.framing import Framer, Framing, new_framer

LINES = b"a\n" + b"x" * 500 + b"\r\n" + b"b\r\n" + b"y" * 100 + b"\n" + b"z" * 101


def message(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


MESSAGES = message(b"a") + message(b"x" * 500) + message(b"y" * 100) + message(b"b")


@pytest.mark.parametrize("size", [1, 7, 60, 99, 100, 101, 450, 10_000])
@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        ("lines", LINES, [b"a", b"x" * 30, b"b", b"y" * 100, b"z" * 30]),
        ("content-length", MESSAGES, [b"a", b"x" * 30, b"y" * 100, b"b"]),
    ],
)
def test_only_the_beginning_of_a_message_beyond_the_limit_is_returned(
    monkeypatch: pytest.MonkeyPatch, kind: Framing, data: bytes, expected: list[bytes], size: int
) -> None:
    monkeypatch.setattr(framing, "MAX_MESSAGE_BYTES", 100)
    monkeypatch.setattr(framing, "KEPT_OF_TOO_LONG", 30)
    framer: Framer = new_framer(kind)
    found = [one for at in range(0, len(data), size) for one in framer.feed(data[at : at + size])]
    assert found + framer.finish() == expected


def test_a_line_without_an_end_takes_no_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "MAX_MESSAGE_BYTES", 1000)
    monkeypatch.setattr(framing, "KEPT_OF_TOO_LONG", 30)
    framer = framing.LineFramer()
    for _ in range(1000):
        assert framer.feed(b"x" * 100) == []
    assert framer.finish() == [b"x" * 30]
