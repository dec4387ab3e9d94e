"""A terminal: what may reach it (`sanitize`, `one_line`), how wide it is, its colours."""

import os
from dataclasses import dataclass
from typing import TextIO

from agent_mux.telling.inert import one_line, sanitize

__all__ = [
    "WIDTH_WITHOUT_TERMINAL",
    "Palette",
    "homely",
    "is_terminal",
    "one_line",
    "palette_for",
    "sanitize",
    "wants_color",
    "width_of",
]

WIDTH_WITHOUT_TERMINAL = 160


def homely(text: str) -> str:
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
