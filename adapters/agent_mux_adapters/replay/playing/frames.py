"""Messages that say their length, for agents that speak so. A player treats each message as a line."""

LINES = "lines"
CONTENT_LENGTH = "content-length"
CHUNKS = "chunks"  # a terminal: nothing to tell messages apart, and its pauses mean something
_HEAD = b"content-length:"


def wrap(line: bytes) -> bytes:
    """A line as such a message."""
    body = line.rstrip(b"\n")
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


class Unwrapper:
    """Gets the lines out of a stream of such messages."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The messages that this chunk completes, each as a line."""
        self._rest += chunk
        found = []
        while (message := self._next()) is not None:
            found.append(message.replace(b"\n", b" ") + b"\n")
        return found

    def _next(self) -> bytes | None:
        head, separator, body = self._rest.partition(b"\r\n\r\n")
        length = next((int(line[len(_HEAD) :]) for line in head.splitlines() if line.lower().startswith(_HEAD)), None)
        if not separator or length is None or len(body) < length:
            return None
        self._rest = body[length:]
        return body[:length]
