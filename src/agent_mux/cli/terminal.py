"""A terminal: what may reach it (`sanitize`, `one_line`), how wide it is, its colours."""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

from agent_mux.telling.inert import one_line, sanitize

__all__ = [
    "WIDTH_WITHOUT_TERMINAL",
    "Palette",
    "is_terminal",
    "one_line",
    "palette_for",
    "sanitize",
    "shorten_home",
    "wants_color",
    "width_of",
]

WIDTH_WITHOUT_TERMINAL = 160


def shorten_home(text: str) -> str:
    """The text with paths in the home directory as `~/...`, for people."""
    home = os.environ.get("HOME", "").rstrip("/")
    return text.replace(f"{home}/", "~/") if len(home) > 1 else text


def width_of(stream: TextIO) -> int:
    """Columns of the terminal, or a width for logs."""
    if not is_terminal(stream):
        return WIDTH_WITHOUT_TERMINAL
    told = os.environ.get("COLUMNS", "")
    if told.isdigit() and int(told):
        return int(told)
    try:
        return os.get_terminal_size(stream.fileno()).columns or WIDTH_WITHOUT_TERMINAL
    except OSError:
        return WIDTH_WITHOUT_TERMINAL


def is_terminal(stream: TextIO | None) -> bool:
    """The stream is an open terminal."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def wants_color(stream: TextIO, *, no_color: bool) -> bool:
    """Colours only on a terminal that has them, unless the user does not want any (https://no-color.org)."""
    unwanted = no_color or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return is_terminal(stream) and not unwanted


@dataclass(frozen=True, slots=True)
class Palette:
    """Styles by meaning. Without colours, text stays as it is."""

    enabled: bool

    def dim(self, text: str) -> str:
        """Less important than the answer."""
        return self._paint(text, "2")

    def bold(self, text: str) -> str:
        """What to look at."""
        return self._paint(text, "1")

    def good(self, text: str) -> str:
        """It went well."""
        return self._paint(text, "32")

    def warning(self, text: str) -> str:
        """It may go on well."""
        return self._paint(text, "33")

    def bad(self, text: str) -> str:
        """It failed."""
        return self._paint(text, "31")

    def accent(self, text: str) -> str:
        """Names of tools and agents."""
        return self._paint(text, "36")

    def _paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.enabled and text else text


def palette_for(stream: TextIO, *, no_color: bool) -> Palette:
    """The styles for a stream."""
    return Palette(wants_color(stream, no_color=no_color))


PROGRESS_DELAY = 1.0  # seconds before anything is shown
PROGRESS_INTERVAL = 0.2  # seconds between two signs
_ERASE_LINE = "\r\x1b[K"


class Progress:
    """What is being done, how long for, and how far it is."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._began = time.monotonic()
        self.count = 0
        """How many things are done; whoever does them adds to it."""

    def sentence(self) -> str:
        """As it is now."""
        seconds = int(time.monotonic() - self._began)
        return f"{self._what}... {f'{self.count:,}, ' if self.count else ''}{seconds} s"

    def tick(self) -> None:
        """One more is done."""
        self.count += 1


@contextmanager
def progress(what: str) -> Iterator[Progress]:
    """Say on standard error that this goes on, from the second second; gone when it is over, and never in a pipe."""
    shown = Progress(what)
    if not is_terminal(sys.stderr):
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
