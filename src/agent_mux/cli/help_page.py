"""Help pages: a command of the catalog as text for a terminal of any width.

Names of options and commands are never shortened: where they leave no space, their description starts on a new line.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any, TextIO

WIDEST, NARROWEST = 100, 40
_LONGEST_NAMES = {True: 30, False: 20}  # columns for names in a wide and in a narrow terminal
_WIDE = 72
_INDENT = 2


def help_width() -> int:
    """Return the width of help pages: that of the terminal, within limits."""
    return max(NARROWEST, min(WIDEST, shutil.get_terminal_size().columns))


def is_styled(stream: TextIO) -> bool:
    """Return whether headings and names are highlighted on a stream."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in {"", "0"}:
        return True
    return os.environ.get("TERM", "dumb") != "dumb" and stream.isatty()


def print_help(catalog: Mapping[str, Any], words: Sequence[str], stream: TextIO, *, no_color: bool = False) -> None:
    """Print the help page of a command."""
    styled = is_styled(stream) and not no_color
    stream.write(render_help(catalog[" ".join(words)], words, help_width(), styled=styled) + "\n")


def render_help(entry: Mapping[str, Any], words: Sequence[str], width: int, *, styled: bool = False) -> str:
    """Return the help page of one command."""
    return "\n".join(_HelpPage(width, styled=styled).lines(entry, words))


class _HelpPage:
    def __init__(self, width: int, *, styled: bool) -> None:
        self._width = width
        self._styled = styled

    def lines(self, entry: Mapping[str, Any], words: Sequence[str]) -> Iterator[str]:
        yield from self._usage(entry, words)
        for paragraph in filter(None, entry["help"].split("\n\n")):
            yield ""
            yield from wrap(paragraph, self._width, break_long_words=False, break_on_hyphens=False)
        yield from self._section("Arguments", [(one["name"], one["help"]) for one in entry["arguments"]])
        yield from self._panels(entry["commands"], lambda one: one["name"])
        yield from self._panels(entry["options"], _shown_names)
        if entry["examples"]:
            yield from self._examples(entry["examples"])
        if entry["note"]:
            yield ""
            yield from wrap(entry["note"], self._width)

    def _usage(self, entry: Mapping[str, Any], words: Sequence[str]) -> Iterator[str]:
        parts = ["[OPTIONS]", *(one["usage"] for one in entry["arguments"])]
        parts += ["COMMAND ..."] if entry["commands"] else []
        start = " ".join(("Usage: amux", *words))
        text = f"{start} {' '.join(parts)}"
        yield from wrap(text, self._width, subsequent_indent=" " * 7, break_long_words=False, break_on_hyphens=False)

    def _panels(self, rows: Sequence[Mapping[str, Any]], named: Any) -> Iterator[str]:
        """Yield a section for each panel, in the order of appearance; common options and other commands last."""
        panels: dict[str, list[tuple[str, str]]] = {}
        for row in rows:
            panels.setdefault(row["panel"], []).append((named(row), row["help"]))
        for title in sorted(panels, key=lambda panel: panel.startswith(("Common", "Other"))):
            yield from self._section(title, panels[title])

    def _section(self, title: str, rows: Sequence[tuple[str, str]]) -> Iterator[str]:
        if not rows:
            return
        yield ""
        yield self._style(f"{title}:", "1")
        longest = _LONGEST_NAMES[self._width >= _WIDE]
        fitting = [len(name) for name, _ in rows if len(name) <= longest]
        column = _INDENT + max(fitting, default=longest) + 2
        for name, text in rows:
            yield from self._row(name, text, column)

    def _row(self, name: str, text: str, column: int) -> Iterator[str]:
        described = wrap(text, self._width - column, break_long_words=False, break_on_hyphens=False)
        fits = _INDENT + len(name) + 2 <= column
        padding = " " * (column - _INDENT - len(name)) if fits and described else ""
        yield f"{' ' * _INDENT}{self._style(name, '36')}{padding}{described[0] if fits and described else ''}"
        yield from (f"{' ' * column}{line}" for line in described[fits:])

    def _examples(self, examples: Sequence[str]) -> Iterator[str]:
        yield ""
        yield self._style("Examples:", "1")
        for example in examples:
            yield f"{' ' * _INDENT}{example}"

    def _style(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._styled else text


def _shown_names(option: Mapping[str, Any]) -> str:
    """Return the names of an option as they are typed; long names without a short one are aligned with the others."""
    names = option["names"]
    indent = "" if len(names[0]) == 2 else "    "
    value = f" {option['value']}" if option["value"] else ""
    return f"{indent}{', '.join(names)}{value}"
