"""What a person would see: the screen of a terminal, and what has scrolled off its top."""

from collections.abc import Mapping
from typing import Any

from agent_mux.adapter import TerminalSize

SCROLLED_OFF = 10_000  # lines that are kept
RATIO = 1.0  # of the history that a page is; nobody pages here


class Screen:
    """A terminal that nobody looks at. Survives any chunking: escape sequences and characters may be cut anywhere."""

    def __init__(self, size: TerminalSize) -> None:
        # Imported here: an extra, and whoever does not use terminals need not have it.
        import pyte  # noqa: PLC0415

        replies: list[bytes] = []

        class Answering(pyte.HistoryScreen):
            def write_process_input(self, data: str) -> None:
                replies.append(data.encode())

        self._replies = replies
        self._screen = Answering(size.columns, size.rows, history=SCROLLED_OFF, ratio=RATIO)
        self._stream = pyte.ByteStream(self._screen)

    def feed(self, data: bytes) -> bytes:
        """Show this. Returns what the terminal itself answers: programs ask it what it is, and where its cursor is."""
        self._stream.feed(data)
        reply = b"".join(self._replies)
        self._replies.clear()
        return reply

    def resize(self, size: TerminalSize) -> None:
        """Another size; programs draw again when they are told."""
        self._screen.resize(size.rows, size.columns)

    @property
    def rows(self) -> list[str]:
        """What is on the screen, without blanks at the ends of lines."""
        return [row.rstrip() for row in self._screen.display]

    @property
    def text(self) -> str:
        """The screen as one text, without empty lines at its end."""
        return "\n".join(self.rows).rstrip("\n")

    @property
    def lines(self) -> list[str]:
        """Everything that was shown and not overwritten: what has scrolled off, and the screen."""
        columns = self._screen.columns
        return [*(_row(line, columns) for line in self._screen.history.top), *self.rows]


def _row(line: Mapping[int, Any], columns: int) -> str:
    return "".join(line[column].data for column in range(columns)).rstrip()
