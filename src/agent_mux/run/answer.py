"""The text of the last turn of a run, within the limit of the run. See docs/spec/run-api.md, rule 3.4.3."""

from collections.abc import Sequence

from agent_mux.assembler import cut_text, size_of

SEPARATOR = "\n\n"


class AnswerText:
    """The messages of one turn, joined with blank lines. It keeps the beginning, and the size of what it left out."""

    def __init__(self, limit: int) -> None:
        """`limit`: bytes of UTF-8."""
        self._limit = limit
        self._messages: list[str] = []
        self._size = 0
        self._left_out = 0

    def add(self, message: str, left_out: int) -> None:
        """Add a message, of which `left_out` bytes were cut already."""
        separator = len(SEPARATOR) if self._messages else 0
        if self._left_out:
            self._left_out += separator + size_of(message) + left_out
            return
        kept, cut = cut_text(message, max(self._limit - self._size - separator, 0))
        self._left_out = cut + left_out
        if kept or not cut:
            self._size += separator + size_of(kept)
            self._messages.append(kept)
        else:
            self._left_out += separator

    def __str__(self) -> str:
        return SEPARATOR.join(self._messages)

    @property
    def left_out(self) -> int | None:
        """Bytes of UTF-8 that follow this text; None when it is whole."""
        return self._left_out or None


def joined(messages: Sequence[str]) -> str:
    """Return the text of a turn."""
    return SEPARATOR.join(messages)
