"""Pieces of large messages. A reader that stalls inside a message costs one piece, not a copy of the message."""

from collections.abc import Iterator

PIECE = 1 << 16  # bytes; the size at which the server waits for the reader
PARTS = "agent_mux.parts"
"""Key of a `websocket.send` message with the parts of a text in UTF-8, instead of `text`: our own extension of ASGI."""


def pieces_of(*parts: bytes) -> Iterator[bytes]:
    """Yield the parts in order, each in pieces."""
    for part in parts:
        if len(part) <= PIECE:
            yield part
            continue
        view = memoryview(part)
        for start in range(0, len(part), PIECE):
            yield bytes(view[start : start + PIECE])
