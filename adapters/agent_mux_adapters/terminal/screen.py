"""The emulated screen of a terminal, and the lines that have scrolled off its top.

`pyte` stores the cells; this module decides which operations reach it. Colours and other attributes are ignored. For
any output of a program: nothing raises, nothing grows without bound, and no text that the program chose is sent back.
The only replies are those to queries of the terminal's type, its status, and the position of its cursor.
"""

import codecs
from collections import deque
from collections.abc import Callable, Mapping
from copy import copy
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from agent_mux.sdk import AgentMuxError
from agent_mux.sdk.codec import TerminalSize
from agent_mux_adapters.terminal.sequences import EscapeParser

EXTRA_MODULES = ("pyte",)
MAX_SCROLLBACK = 10_000
"""Lines to keep after they have scrolled off the top."""
MAX_REPLIES = 16
"""Replies per chunk: a program that queries more often does not read them."""
_LONGEST_CELL = 16  # characters: a letter and its combining characters
_IDENTITY = b"\x1b[?6c"  # a VT102
_STATUS_OK = b"\x1b[0n"
_ALTERNATE = frozenset({47, 1047, 1049})
_PASTE = 2004
_CHARSETS = (("(", "0"), ("(", "B"), (")", "0"), (")", "B"))  # line drawing (0) and ASCII (B)


class Screen:
    """An emulated terminal. Chunks may end anywhere, even within an escape sequence or a character."""

    def __init__(self, size: TerminalSize) -> None:
        self._screen = _cells(size, self._keep_scrolled_line)
        from wcwidth import wcwidth  # noqa: PLC0415  # comes with pyte

        self._width = wcwidth
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._parser = EscapeParser(self)
        self._scrollback: deque[str] = deque(maxlen=MAX_SCROLLBACK)
        self._saved_main: tuple[Any, Any] | None = None
        """Cells and cursor of the main screen, while the alternate screen is shown."""
        self._replies: list[bytes] = []
        self._last = ""
        self.takes_pastes: bool
        """Whether the program enabled bracketed paste."""
        self._controls: Mapping[str, Callable[[], None]] = {
            "\b": self._screen.backspace,
            "\t": self._screen.tab,
            "\n": self._screen.linefeed,
            "\v": self._screen.linefeed,
            "\f": self._screen.linefeed,
            "\r": self._screen.carriage_return,
            "\x0e": self._screen.shift_out,
            "\x0f": self._screen.shift_in,
        }
        self._escapes: Mapping[str, Callable[[], None]] = {
            **{shift + charset: partial(self._screen.define_charset, charset, shift) for shift, charset in _CHARSETS},
            "7": self._save,
            "8": self._restore,
            "D": self._screen.index,
            "E": self._next_line,
            "M": self._screen.reverse_index,
            "c": self._reset,
        }
        self._cursor_actions = _cursor_actions(self._screen)
        self._reset()
        self._commands: Mapping[str, Callable[[tuple[int, ...]], None]] = {
            "J": self._erase_display,
            "K": self._erase_line,
            "S": lambda parameters: self._scroll(parameters[0] or 1),
            "b": lambda parameters: self.text(self._last * min(parameters[0] or 1, self._screen.columns)),
            "c": lambda parameters: self._reply(_IDENTITY) if parameters == (0,) else None,
            "h": lambda parameters: self._set_modes(parameters, on=True),
            "l": lambda parameters: self._set_modes(parameters, on=False),
            "n": self._report,
            "r": self._set_margins,
            "s": lambda _: self._save(),
            "u": lambda _: self._restore(),
        }

    # -- input and contents

    def feed(self, data: bytes) -> bytes:
        """Draw the output of a program; return the replies to its queries."""
        self._parser.feed(self._decoder.decode(data))
        reply = b"".join(self._replies)
        self._replies.clear()
        return reply

    def resize(self, size: TerminalSize) -> None:
        """Change the size; lines that no longer fit scroll off the top."""
        surplus = self._screen.cursor.y + 1 - size.rows
        if surplus > 0:
            self._screen.set_margins()
            self._scroll(surplus)
            self._screen.cursor.y -= surplus
        cells = self._screen.buffer
        for row in [row for row in cells if row >= size.rows]:
            del cells[row]
        self._screen.lines = size.rows  # pyte.resize would drop lines from the top even if the screen is not full
        self._screen.resize(columns=size.columns)
        self._screen.margins = None
        self._screen.cursor.x = min(self._screen.cursor.x, size.columns - 1)

    @property
    def rows(self) -> list[str]:
        """The rows of the screen, without trailing blanks."""
        return [self._row(number) for number in range(self._screen.lines)]

    @property
    def text_shown(self) -> str:
        """The screen as one text, without empty lines at its end."""
        return "\n".join(self.rows).rstrip("\n")

    @property
    def lines(self) -> list[str]:
        """All lines that were not overwritten: the scrolled-off ones, and the rows of the screen."""
        return [*self._scrollback, *self.rows] if self._saved_main is None else self.rows

    # -- calls of the parser

    def text(self, text: str) -> None:
        """Draw characters at the cursor."""
        if text.isascii():
            self._screen.draw(text)
        else:
            for character in text:
                self._draw(character)
        self._last = text[-1:]

    def control(self, character: str) -> None:
        """Execute a control character; unsupported ones are ignored."""
        action = self._controls.get(character)
        if action is not None:
            action()

    def escape(self, final: str) -> None:
        """Execute a short escape sequence; unsupported ones are ignored."""
        action = self._escapes.get(final)
        if action is not None:
            action()

    def sequence(self, prefix: str, parameters: tuple[int, ...], final: str) -> None:
        """Execute an escape sequence with parameters; unsupported ones are ignored."""
        if prefix == "?" and final in "hl":
            self._set_private_modes(parameters, on=final == "h")
        if prefix:
            return
        if final in self._cursor_actions:
            action, count = self._cursor_actions[final]
            action(*parameters[:count])
        elif final in "LM":
            self._shift_lines(parameters[0], down=final == "L")
        elif final in self._commands:
            self._commands[final](parameters)

    # -- operations

    def _row(self, number: int) -> str:
        cells = self._screen.buffer[number]
        return "".join(cells[column].data for column in range(self._screen.columns)).rstrip()

    def _draw(self, character: str) -> None:
        if self._width(character) > 0:
            self._screen.draw(character)
            return
        # Append to the character before the cursor. The cell behind a wide character is empty.
        cells, column = self._screen.buffer[self._screen.cursor.y], self._screen.cursor.x - 1
        while column > 0 and not cells[column].data:
            column -= 1
        if column >= 0 and len(cells[column].data) < _LONGEST_CELL:
            cells[column] = cells[column]._replace(data=cells[column].data + character)

    def _keep_scrolled_line(self) -> None:
        """Keep the first line before it scrolls off the screen."""
        if self._saved_main is None:
            self._scrollback.append(self._row(0))

    def _next_line(self) -> None:
        self._screen.carriage_return()
        self._screen.index()

    def _scroll(self, count: int) -> None:
        """Scroll lines off the top without moving the cursor."""
        row = self._screen.cursor.y
        self._screen.cursor.y = (self._screen.margins or (0, self._screen.lines - 1))[1]
        for _ in range(min(count, self._screen.lines)):
            self._screen.index()
        self._screen.cursor.y = row

    def _shift_lines(self, count: int, *, down: bool) -> None:
        for row in range(self._screen.lines):
            self._screen.buffer[row]  # creates the line: pyte does not shift lines onto missing ones
        (self._screen.insert_lines if down else self._screen.delete_lines)(count)

    def _erase_display(self, parameters: tuple[int, ...]) -> None:
        if parameters[0] <= 2:  # 0 below the cursor, 1 above it, 2 all
            self._screen.erase_in_display(parameters[0])
        elif parameters[0] == 3:  # the scrolled-off lines
            self._scrollback.clear()

    def _erase_line(self, parameters: tuple[int, ...]) -> None:
        if parameters[0] <= 2:  # 0 right of the cursor, 1 left of it, 2 all
            self._screen.erase_in_line(parameters[0])

    def _set_margins(self, parameters: tuple[int, ...]) -> None:
        top, bottom = (*parameters, 0)[:2]
        self._screen.set_margins(top, bottom or self._screen.lines)

    def _set_modes(self, parameters: tuple[int, ...], *, on: bool) -> None:
        known = [mode for mode in parameters if mode in {4, 20}]  # 4: insert; 20: a line feed also returns the carriage
        (self._screen.set_mode if on else self._screen.reset_mode)(*known)

    def _set_private_modes(self, parameters: tuple[int, ...], *, on: bool) -> None:
        if 7 in parameters:  # wrap lines at the right margin
            (self._screen.set_mode if on else self._screen.reset_mode)(7, private=True)
        if _PASTE in parameters:
            self.takes_pastes = on
        if _ALTERNATE & {*parameters}:
            self._show_alternate(alternate=on)

    def _show_alternate(self, *, alternate: bool) -> None:
        if alternate == (self._saved_main is not None):
            return
        screen = self._screen
        if self._saved_main is None:
            self._saved_main = screen.buffer, copy(screen.cursor)
            screen.buffer = copy(screen.buffer)  # a defaultdict that creates missing lines
            screen.buffer.clear()
        else:
            (screen.buffer, screen.cursor), self._saved_main = self._saved_main, None
            screen.cursor.y = min(screen.cursor.y, screen.lines - 1)
            screen.cursor.x = min(screen.cursor.x, screen.columns - 1)
        screen.margins = None

    def _save(self) -> None:
        self._screen.savepoints.clear()  # a terminal has one saved cursor only
        self._screen.save_cursor()

    def _restore(self) -> None:
        kept = [*self._screen.savepoints]
        self._screen.restore_cursor()
        self._screen.savepoints.extend(copy(point._replace(cursor=copy(point.cursor))) for point in kept)

    def _reset(self) -> None:
        self._saved_main = None
        self._scrollback.clear()
        self._screen.reset()
        self._screen.define_charset("B", ")")
        self.takes_pastes = False

    def _report(self, parameters: tuple[int, ...]) -> None:
        if parameters == (5,):
            self._reply(_STATUS_OK)
        elif parameters == (6,):
            cursor = self._screen.cursor
            self._reply(b"\x1b[%d;%dR" % (cursor.y + 1, min(cursor.x, self._screen.columns - 1) + 1))

    def _reply(self, reply: bytes) -> None:
        if len(self._replies) < MAX_REPLIES:
            self._replies.append(reply)


def _cells(size: TerminalSize, on_scroll: Callable[[], None]) -> "pyte.Screen":
    """Return a pyte screen that calls `on_scroll` before a line scrolls off. Raises PTY_NOT_AVAILABLE without pyte."""
    require_extra("pyte")
    # Imported here because pyte is an optional dependency.
    import pyte  # noqa: PLC0415

    class Cells(pyte.Screen):
        def index(self) -> None:
            top, bottom = self.margins or (0, self.lines - 1)
            if self.cursor.y == bottom and top == 0:
                on_scroll()
            super().index()

    return Cells(size.columns, size.rows)


def _cursor_actions(screen: "pyte.Screen") -> Mapping[str, tuple[Callable[..., None], int]]:
    """Return the operations that pyte does itself: final character -> method and number of its parameters."""
    return {
        "@": (screen.insert_characters, 1),
        "A": (screen.cursor_up, 1),
        "B": (screen.cursor_down, 1),
        "C": (screen.cursor_forward, 1),
        "D": (screen.cursor_back, 1),
        "E": (screen.cursor_down1, 1),
        "F": (screen.cursor_up1, 1),
        "G": (screen.cursor_to_column, 1),
        "H": (screen.cursor_position, 2),
        "P": (screen.delete_characters, 1),
        "X": (screen.erase_characters, 1),
        "`": (screen.cursor_to_column, 1),
        "a": (screen.cursor_forward, 1),
        "d": (screen.cursor_to_line, 1),
        "e": (screen.cursor_down, 1),
        "f": (screen.cursor_position, 2),
    }


def require_extra(*modules: str) -> None:
    """Check that the modules are installed, by default all of them. Raises PTY_NOT_AVAILABLE with the pip command."""
    missing = [module for module in modules or EXTRA_MODULES if find_spec(module) is None]
    if missing:
        needed = f"terminal programs need {' and '.join(missing)}"
        raise AgentMuxError("PTY_NOT_AVAILABLE", f"{needed}: pip install 'agent-mux[terminal]'")


if TYPE_CHECKING:
    import pyte
