"""Terminals: sanitized text, width, colours and the progress line."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, TextIO

import msgspec

from agent_mux._util.sanitize import one_line, sanitize

__all__ = [
    "WIDTH_WITHOUT_TERMINAL",
    "Palette",
    "TerminalSize",
    "has_cursor",
    "is_capable",
    "is_terminal",
    "local_minute",
    "one_line",
    "palette_for",
    "sanitize",
    "shorten_home",
    "size_of",
    "wants_color",
    "width_of",
]

WIDTH_WITHOUT_TERMINAL = 160


def shorten_home(text: str) -> str:
    """Return the text with the home directory abbreviated to `~`."""
    home = os.environ.get("HOME", "").rstrip("/")
    return text.replace(f"{home}/", "~/") if len(home) > 1 else text


def local_minute(milliseconds: int) -> str:
    """Format a time, given in milliseconds since the epoch, as the minute of the local time zone."""
    from datetime import datetime

    return datetime.fromtimestamp(milliseconds / 1000).astimezone().strftime("%Y-%m-%d %H:%M")


def width_of(stream: TextIO) -> int:
    """Return the number of columns of a terminal, or a fixed width for other streams."""
    if not is_terminal(stream):
        return WIDTH_WITHOUT_TERMINAL
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or WIDTH_WITHOUT_TERMINAL
    except OSError:
        return WIDTH_WITHOUT_TERMINAL


class TerminalSize(NamedTuple):
    """The size of a terminal in characters."""

    columns: int = 80
    rows: int = 24


def size_of(stream: TextIO) -> TerminalSize:
    """Return the size of a terminal; of a usual one for other streams and if it is unknown."""
    try:
        found = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):  # not a terminal, or closed
        return TerminalSize()
    usual = TerminalSize()
    return TerminalSize(found.columns or usual.columns, found.lines or usual.rows)


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether the stream is an open terminal."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def has_cursor(stream: TextIO | None) -> bool:
    """Return whether the stream is a terminal that can move its cursor."""
    return is_terminal(stream) and is_capable()


def is_capable() -> bool:
    """Return whether the terminal, if there is one, interprets escape sequences."""
    return os.environ.get("TERM", "dumb") != "dumb"


def wants_color(stream: TextIO, *, no_color: bool) -> bool:
    """Return whether to use colours: on a capable terminal, unless disabled (https://no-color.org).

    FORCE_COLOR enables them for any stream (https://force-color.org), unless `--no-color` or NO_COLOR disable them.
    """
    if no_color or os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "") not in {"", "0", "false"}:
        return True
    return has_cursor(stream)


class Palette(msgspec.Struct, frozen=True):
    """Text styles by meaning. Text stays unchanged if disabled."""

    enabled: bool

    def dim(self, text: str) -> str:
        """Style text of secondary importance."""
        return self._paint(text, "2")

    def bold(self, text: str) -> str:
        """Style a heading or a prompt."""
        return self._paint(text, "1")

    def good(self, text: str) -> str:
        """Style a message about a success."""
        return self._paint(text, "32")

    def warning(self, text: str) -> str:
        """Style a warning or a prompt for a decision."""
        return self._paint(text, "33")

    def bad(self, text: str) -> str:
        """Style a message about a failure."""
        return self._paint(text, "31")

    def accent(self, text: str) -> str:
        """Style the name of a tool or agent."""
        return self._paint(text, "36")

    def _paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.enabled and text else text


def palette_for(stream: TextIO, *, no_color: bool) -> Palette:
    """Return the styles for a stream."""
    return Palette(wants_color(stream, no_color=no_color))


PROGRESS_DELAY = 1.0  # seconds before anything is shown
PROGRESS_INTERVAL = 0.2  # seconds between updates
_ERASE_LINE = "\r\x1b[K"


class Progress:
    """The state of a progress line: what is being done, how many items are done, how many seconds have passed."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._began = time.monotonic()
        self.count = 0
        """The number of finished items; the worker increments it."""

    def sentence(self) -> str:
        """Format the line for the current moment."""
        seconds = int(time.monotonic() - self._began)
        return f"{self._what}... {f'{self.count:,}, ' if self.count else ''}{seconds} s"

    def tick(self) -> None:
        """Count one more finished item."""
        self.count += 1


@contextmanager
def progress(what: str) -> Iterator[Progress]:
    """Show a progress line on standard error while the block runs.

    The line appears after a second and disappears at the end. It is never written to a pipe or to a terminal without
    cursor movement.
    """
    shown = Progress(what)
    if not has_cursor(sys.stderr):
        yield shown
        return
    over = threading.Event()
    teller = threading.Thread(target=_show_progress, args=(shown, over), name="progress", daemon=True)
    teller.start()
    try:
        yield shown
    finally:
        over.set()
        teller.join()


def _show_progress(shown: Progress, over: threading.Event) -> None:
    if over.wait(PROGRESS_DELAY):
        return
    while True:
        sys.stderr.write(_ERASE_LINE + shown.sentence()[: width_of(sys.stderr) - 1])
        sys.stderr.flush()
        if over.wait(PROGRESS_INTERVAL):
            break
    sys.stderr.write(_ERASE_LINE)
    sys.stderr.flush()
