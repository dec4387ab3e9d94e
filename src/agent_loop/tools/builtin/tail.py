"""The end of an output, however long it gets. Source: zidane, `shell`: tail-priority truncation."""

from collections import deque

_CONTINUATION = range(0x80, 0xC0)
"""Bytes in the middle of a UTF-8 character."""


class Tail:
    """The last `limit` bytes of what was added, and how many were dropped before them. No character is split."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: deque[bytes] = deque()
        self._kept = 0
        self.dropped = 0
        """Bytes."""

    def __bool__(self) -> bool:
        return bool(self._kept or self.dropped)

    def add(self, text: str) -> None:
        """More of it."""
        piece = text.encode(errors="replace")
        self._pieces.append(piece)
        self._kept += len(piece)
        while self._kept > self._limit:
            self._drop(self._kept - self._limit)

    def _drop(self, count: int) -> None:
        first = self._pieces.popleft()
        rest = _from_character(first, count)
        if rest:
            self._pieces.appendleft(rest)
        self._kept -= len(first) - len(rest)
        self.dropped += len(first) - len(rest)

    @property
    def text(self) -> str:
        """What is kept, without a marker."""
        return b"".join(self._pieces).decode()

    def taken(self) -> str:
        """What is kept, with a marker; from here on it is empty."""
        text = marked(self.text, self.dropped)
        self._pieces.clear()
        self._kept = self.dropped = 0
        return text


def last_bytes(text: str, limit: int) -> tuple[str, int]:
    """The end of a text, at most `limit` bytes of UTF-8, and how many bytes were dropped before it."""
    tail = Tail(limit)
    tail.add(text)
    return tail.text, tail.dropped


def marked(text: str, dropped: int) -> str:
    """The text under a line that says how much was dropped before it."""
    return f"...({dropped} bytes truncated from head)...\n{text}" if dropped else text


def _from_character(data: bytes, start: int) -> bytes:
    """From the first character on that begins at `start` or behind it."""
    while start < len(data) and data[start] in _CONTINUATION:
        start += 1
    return data[start:]
