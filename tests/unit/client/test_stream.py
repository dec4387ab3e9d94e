"""Server-sent events are parsed wherever their bytes are split."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agent_mux.client.remote.stream import ServerSentEvent, ServerSentEventParser

STREAM = (
    b': ping\n\nevent: run\ndata: {}\n\nid: 0\ndata: {"a":1}\n\n\nid: 1\r\ndata:b\r\ndata: c\r\n\r\n'
    b"id: x\ndata: d\nretry: 5\n\nid: 7\n\n"
)
MESSAGES = [
    ServerSentEvent(None, "run", b"{}"),
    ServerSentEvent(0, "message", b'{"a":1}', "0"),
    ServerSentEvent(1, "message", b"b\nc", "1"),
    ServerSentEvent(None, "message", b"d", "x"),
]


@given(st.lists(st.integers(0, len(STREAM)), max_size=20))
def test_the_split_of_a_stream_does_not_change_its_messages(cuts: list[int]) -> None:
    parser = ServerSentEventParser()
    bounds = [0, *sorted(cuts), len(STREAM)]
    parsed = [message for start, end in pairwise(bounds) for message in parser.feed(STREAM[start:end])]
    assert parsed == MESSAGES


def test_an_incomplete_message_is_not_returned() -> None:
    parser = ServerSentEventParser()
    assert parser.feed(b"id: 0\ndata: whole\n\nid: 1\ndata: half\n") == [ServerSentEvent(0, "message", b"whole", "0")]
