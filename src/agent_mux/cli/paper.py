"""Two streams that may be one terminal: what is written where, and which lines are still open."""

from typing import Literal, NamedTuple

from agent_mux.cli.terminal import Palette, sanitize


class Piece(NamedTuple):
    """A text and where it goes."""

    stream: Literal["out", "err"]
    text: str


class Screen(NamedTuple):
    """What is known about where the pieces go."""

    palette: Palette = Palette(enabled=False)
    """For standard error."""
    width: int = 100
    out_is_terminal: bool = False
    """Then standard output is sanitized; otherwise it is verbatim."""
    shared: bool = False
    """Both streams go to one terminal: a line of one must not begin in the middle of a line of the other."""
    verbose: bool = False
    """Show the mux's own notes, too."""
    asks: bool = False
    """A person is asked: what is asked is shown there, whole."""


class Paper:
    """Collects pieces. Text of the answer goes to `out`, lines of everything else to `line`."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self._pieces: list[Piece] = []
        self._out_open = False
        """Standard output is in the middle of a line."""
        self._err_open = False

    def out(self, text: str) -> None:
        """A fragment of the answer."""
        if self.screen.out_is_terminal:
            text = sanitize(text)
        if not text:
            return
        if self.screen.shared:
            self.close_err()
        self._pieces.append(Piece("out", text))
        self._out_open = not text.endswith("\n")

    def err(self, text: str) -> None:
        """A fragment of a line on standard error. The caller has sanitized it."""
        if not text:
            return
        if self._out_open and self.screen.shared:
            self._pieces.append(Piece("err", "\n"))
            self._out_open = False
        self._pieces.append(Piece("err", text))
        self._err_open = not text.endswith("\n")

    def line(self, text: str) -> None:
        """A whole line on standard error. The caller has sanitized it."""
        self.close_err()
        self.err(text + "\n")

    def close_out(self) -> None:
        """End the line of the answer."""
        if self._out_open:
            self._pieces.append(Piece("out", "\n"))
            self._out_open = False

    def close_err(self) -> None:
        """End the line on standard error."""
        if self._err_open:
            self._pieces.append(Piece("err", "\n"))
            self._err_open = False

    def take(self) -> list[Piece]:
        """What there is to write since the last call."""
        pieces, self._pieces = self._pieces, []
        return pieces
