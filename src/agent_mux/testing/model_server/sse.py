"""What both wire formats share: events of a stream, ids, and texts in pieces."""

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

CONTENT_TYPE = "text/event-stream"


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One server-sent event."""

    name: str
    """Empty in APIs whose events have no names."""
    data: Any
    """A text is sent as it is."""

    def encode(self) -> bytes:
        """As it goes over the wire."""
        name = f"event: {self.name}\n" if self.name else ""
        data = self.data if isinstance(self.data, str) else json.dumps(self.data)
        return f"{name}data: {data}\n\n".encode()


@dataclass(slots=True)
class Ids:
    """Ids that are the same in every run: `msg_0001`, `toolu_0002`, ..."""

    first: int = 1
    _numbers: Iterator[int] = field(init=False)

    def __post_init__(self) -> None:
        self._numbers = itertools.count(self.first)

    def new(self, prefix: str) -> str:
        """The next id."""
        return f"{prefix}_{next(self._numbers):04d}"


def in_pieces(text: str, count: int) -> list[str]:
    """The text, cut into at most `count` parts; an empty text is one empty part."""
    size = max(1, -(-len(text) // count))
    return [text[start : start + size] for start in range(0, len(text), size)] or [""]
