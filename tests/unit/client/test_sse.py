"""Server-Sent Events, cut anywhere."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agent_mux.client.remote.stream import Message, MessageParser

STREAM = (
    b': ping\n\nevent: run\ndata: {}\n\nid: 0\ndata: {"a":1}\n\n\nid: 1\r\ndata:b\r\ndata: c\r\n\r\n'
    b"id: x\ndata: d\nretry: 5\n\nid: 7\n\n"
)
MESSAGES = [
    Message(None, "run", b"{}"),
    Message(0, "message", b'{"a":1}'),
    Message(1, "message", b"b\nc"),
    Message(None, "message", b"d"),
]


@given(st.lists(st.integers(0, len(STREAM)), max_size=20))
def test_where_a_stream_is_cut_changes_nothing(cuts: list[int]) -> None:
    parser = MessageParser()
    places = [0, *sorted(cuts), len(STREAM)]
    told = [message for start, end in pairwise(places) for message in parser.feed(STREAM[start:end])]
    assert told == MESSAGES


def test_what_is_not_complete_is_not_there() -> None:
    parser = MessageParser()
    assert parser.feed(b"id: 0\ndata: whole\n\nid: 1\ndata: half\n") == [Message(0, "message", b"whole")]
