"""Encoded events, so that several readers of a run encode each event once."""

from collections import OrderedDict

from agent_mux.events import AgentEvent, encode_event

MAX_CACHE_BYTES = 32 << 20
"""Total size of cached encoded events."""


class EncodedEventCache:
    """A cache of encoded events by run and number. The oldest entries are evicted first."""

    def __init__(self, most: int = MAX_CACHE_BYTES) -> None:
        self._most = most
        self._size = 0
        self._lines: OrderedDict[tuple[str, int, bool], bytes] = OrderedDict()

    def line(self, run_id: str, number: int, event: AgentEvent, *, accumulated: bool) -> bytes:
        """Return the event as a JSON line without the newline, as `amux run --json` or `--compact` prints it."""
        key = (run_id, number, accumulated)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = encode_event(event, accumulated=accumulated)
            self._size += len(line)
            while self._size > self._most:
                self._size -= len(self._lines.popitem(last=False)[1])
        return line
