"""Content-Length framing, with arbitrary chunks and with noise between messages."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_mux.sdk.framing import ContentLengthFramer, frame_message, new_framer

ONE, TWO = b'{"id":1}', '{"text":"a\u2028b"}'.encode()


def feed(*chunks: bytes) -> list[bytes]:
    framer = ContentLengthFramer()
    return [message for chunk in chunks for message in framer.feed(chunk)] + framer.finish()


def test_framed_messages_are_returned_unchanged() -> None:
    sent = frame_message("content-length", ONE) + frame_message("content-length", TWO)
    assert feed(sent) == [ONE, TWO]


@given(
    messages=st.lists(st.binary(min_size=1, max_size=40), max_size=5),
    cuts=st.lists(st.integers(0, 400), max_size=12),
)
def test_messages_do_not_depend_on_chunk_boundaries(messages: list[bytes], cuts: list[int]) -> None:
    sent = b"".join(frame_message("content-length", message) for message in messages)
    places = sorted({0, len(sent), *(cut for cut in cuts if cut < len(sent))})
    chunks = [sent[start:end] for start, end in pairwise(places)]
    assert feed(*chunks) == messages
    assert feed(*(bytes([byte]) for byte in sent)) == messages


def test_a_message_may_contain_line_breaks() -> None:
    assert feed(frame_message("content-length", b"{\n}\n")) == [b"{\n}\n"]


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 8\r\nContent-Type: application/json\r\n\r\n",
        b"content-length:8\n\n",
        b"Content-Type: application/json\r\nCONTENT-LENGTH : 8\r\n\r\n",
    ],
)
def test_heads(head: bytes) -> None:
    assert feed(head + ONE) == [ONE]


def test_noise_between_messages_is_not_lost() -> None:
    sent = b"starting...\nwarning: old\n" + frame_message("content-length", ONE) + b"bye"
    assert feed(sent) == [b"starting...", b"warning: old", ONE, b"bye"]


@pytest.mark.parametrize("length", [b"-1", b"x", b"99999999999999", b""])
def test_an_invalid_length_is_treated_as_noise(length: bytes) -> None:
    line = b"Content-Length: " + length
    assert feed(line + b"\r\n\r\n" + frame_message("content-length", ONE)) == [line, ONE]


def test_an_empty_message_is_skipped() -> None:
    assert feed(frame_message("content-length", b"") + frame_message("content-length", ONE)) == [ONE]


def test_a_truncated_message_is_returned_at_the_end() -> None:
    sent = frame_message("content-length", ONE)
    assert feed(sent[:-2]) == [ONE[:-2]]


def test_every_framing_has_a_framer() -> None:
    for framing in ("lines", "content-length"):
        assert new_framer(framing).feed(frame_message(framing, ONE)) == [ONE]
