"""What may reach a terminal. All text of an agent is hostile: it can come from any web page or file the agent read.

Escape sequences can retitle the window, write to the clipboard, answer for the user, or hide a command that is about
to be approved; so can carriage returns, backspaces and bidirectional overrides.
"""

import os
import re
from dataclasses import dataclass
from typing import TextIO

# ECMA-48: CSI, and the strings OSC, DCS, SOS, PM, APC with their end. An unfinished one loses its introducer only:
# the rest is harmless text, and may be text indeed.
_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    # Stops at the next introducer: many of them must not cost quadratic time.
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9b-\x9f]*(?:\x07|\x1b\\|\x9c)"
)
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")
_BLANKS = re.compile(r"\s+")
WIDTH_WITHOUT_TERMINAL = 160


def sanitize(text: str) -> str:
    r"""Keep text, tabs and newlines; drop escape sequences, C0 and C1 controls, and bidirectional overrides."""
    if text.isascii() and text.isprintable():
        return text
    return _CONTROLS.sub("", _SEQUENCES.sub("", text.replace("\r\n", "\n")))


def one_line(text: str, width: int) -> str:
    """The text on one line, cut to `width` characters with an ellipsis."""
    flat = _BLANKS.sub(" ", sanitize(text[: width * 8])).strip()
    return flat if len(flat) <= width else flat[: max(width - 1, 0)] + "…"


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
