"""Server-Sent Events, cut anywhere: what is not complete is not there. Source: HTML, section 9.2."""

from typing import NamedTuple

_END = b"\n\n"


class Message(NamedTuple):
    """One of them."""

    number: int | None
    """Its id."""
    name: str
    """`message`, where nothing else is said."""
    data: bytes


class MessageParser:
    """Takes bytes of one connection, and gives the messages that they complete."""

    def __init__(self) -> None:
        self._begun = bytearray()
        self._searched = 0

    def feed(self, data: bytes) -> list[Message]:
        """The messages that are complete now; comments are none."""
        self._begun += data.replace(b"\r", b"")  # JSON has no line breaks of any kind
        messages = []
        start = 0
        while (end := self._begun.find(_END, max(start, self._searched))) >= 0:
            message = _message(bytes(self._begun[start:end]))
            if message is not None:
                messages.append(message)
            start = end + len(_END)
        del self._begun[:start]
        self._searched = max(len(self._begun) - 1, 0)
        return messages


def _message(block: bytes) -> Message | None:
    number, name, data = None, "message", []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match field:
            case b"data":
                data.append(value)
            case b"event":
                name = value.decode("utf-8", "replace")
            case b"id" if value.isdigit():
                number = int(value)
    return Message(number, name, b"\n".join(data)) if data else None
