"""Encoded events, so that several readers of a run encode each event once.

Small events stay in memory up to a total size. A large event is shared by the readers that hold it, and its memory is
returned when the last one has sent it or has left.
"""

from collections import OrderedDict
from weakref import WeakValueDictionary

from agent_mux.events import AgentEvent, encode_event

MAX_CACHE_BYTES = 32 << 20
"""Total size of cached encoded events."""
LARGE_EVENT = 1 << 18
"""Bytes from which on an encoded event is kept only while a reader holds it."""


class EncodedEvent:
    """An event as a JSON line without the newline. A reader keeps this object while it sends the line."""

    __slots__ = ("__weakref__", "line")

    def __init__(self, line: bytes) -> None:
        self.line = line


class EncodedEventCache:
    """A cache of encoded events by run and number. The oldest entries are evicted first."""

    def __init__(self, most: int = MAX_CACHE_BYTES) -> None:
        self._most = most
        self._size = 0
        self._small: OrderedDict[tuple[str, int, bool], EncodedEvent] = OrderedDict()
        self._large: WeakValueDictionary[tuple[str, int, bool], EncodedEvent] = WeakValueDictionary()

    def encoded(self, run_id: str, number: int, event: AgentEvent, *, accumulated: bool) -> EncodedEvent:
        """Return the encoded event, as `amux run --json` or `--compact` prints it."""
        key = (run_id, number, accumulated)
        known = self._small.get(key) or self._large.get(key)
        if known is not None:
            return known
        encoded = EncodedEvent(encode_event(event, accumulated=accumulated))
        if len(encoded.line) >= LARGE_EVENT:
            self._large[key] = encoded
            return encoded
        self._small[key] = encoded
        self._size += len(encoded.line)
        while self._size > self._most:
            self._size -= len(self._small.popitem(last=False)[1].line)
        return encoded

    def line(self, run_id: str, number: int, event: AgentEvent, *, accumulated: bool) -> bytes:
        """Return the line of an event that is sent at once."""
        return self.encoded(run_id, number, event, accumulated=accumulated).line
