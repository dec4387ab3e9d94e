"""Events as bytes, encoded once for all who watch, and the ways in which they travel.

What programs send, made into what everything behind can take: numbers of one kind, texts without NUL.


HEAD: what GET answers, without the body, which the server leaves out. Source: RFC 9110, section 9.3.2; ASGI.

Not for streams: whether there is something to read, only reading tells.
"""

from collections import OrderedDict
from collections.abc import Callable

from agent_mux.events import AgentEvent, encode_event

MOST_BYTES = 32 << 20
"""Of encoded events that are kept for the next reader."""


class EncodedEvents:
    """JSON lines of events, by run and number. Bounded: what was made first is forgotten first."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._size = 0
        self._lines: OrderedDict[tuple[str, int, bool], bytes] = OrderedDict()

    def line(self, run_id: str, number: int, event: AgentEvent, *, accumulated: bool) -> bytes:
        """The event as `amux run --json` prints it, or with `--compact`; without the newline."""
        key = (run_id, number, accumulated)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = encode_event(event, accumulated=accumulated)
            self._size += len(line)
            while self._size > self._most:
                self._size -= len(self._lines.popitem(last=False)[1])
        return line


Frame = Callable[[int, bytes], bytes]
"""Makes of the number and the JSON of an event what is sent."""


def as_sse(number: int, line: bytes) -> bytes:
    """A Server-Sent Event. JSON has no line breaks, so one `data` field holds it. Source: HTML, section 9.2."""
    return b"id: %d\ndata: %b\n\n" % (number, line)


def as_json_line(_: int, line: bytes) -> bytes:
    """A line, as `amux run --json` prints it."""
    return line + b"\n"


def as_view(line: bytes) -> bytes:
    """A Server-Sent Event of another name: no event of the run, and no number to go on behind."""
    return b"event: run\ndata: %b\n\n" % line
