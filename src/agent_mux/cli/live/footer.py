"""The footer below the output of a run: erased before other output, and drawn again below it."""

from collections.abc import Iterable, Sequence

from agent_mux.cli.layout import cell_width
from agent_mux.cli.output import Chunk
from agent_mux.cli.terminal import TerminalSize

_SPARE_ROWS = 2  # of the terminal, which the footer leaves for output


class Footer:
    """The lines below the output, and whether the terminal shows them.

    It is shown only while the output is at the start of a line, so that it never follows a prompt.
    """

    def __init__(self) -> None:
        self._wanted: list[str] = []
        self._drawn: list[str] = []
        self._at_line_start = True

    def set_lines(self, lines: Sequence[str]) -> bool:
        """Set the lines. Return whether the terminal shows other ones."""
        self._wanted = list(lines)
        return self._wanted != self._drawn and (self._at_line_start or bool(self._drawn))

    def line_begun(self) -> None:
        """Note that the terminal is inside of a line, behind a prompt that was written before."""
        self._at_line_start = False

    def line_ended(self) -> None:
        """Note that the terminal is at the start of a line, because a person pressed Enter."""
        self._at_line_start = True

    def around(self, chunks: Iterable[Chunk], size: TerminalSize) -> list[Chunk]:
        """Return the chunks with what erases the footer before them and draws it below them."""
        written = list(chunks)
        if not written and self._wanted == self._drawn:
            return []
        result = [Chunk("err", self._erase(size.columns))] if self._drawn else []
        self._drawn = []
        result += written
        if written:
            self._at_line_start = written[-1].text.endswith("\n")
        if self._wanted and self._at_line_start:
            self._drawn = self._wanted[-max(size.rows - _SPARE_ROWS, 1) :]
            result.append(Chunk("err", "\n".join(self._drawn)))
        return result

    def _erase(self, columns: int) -> str:
        """Return the sequence that erases the footer. A terminal that became narrower has wrapped its lines."""
        rows = sum(max(1, -(-cell_width(line) // max(columns, 1))) for line in self._drawn)
        up = f"\x1b[{rows - 1}A" if rows > 1 else ""
        return f"\r{up}\x1b[J"
