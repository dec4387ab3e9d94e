"""Draw what a terminal received as an SVG, and read the text of such a picture."""
# ruff: noqa: INP001  # beside scripts, not in a package

import html
import re
from collections.abc import Mapping
from io import StringIO
from itertools import groupby
from typing import Any

import pyte
from rich.console import Console
from rich.style import Style
from rich.text import Text

TITLE = "agent-mux"
MAX_ROWS = 400
DIM_COLOR, DIM_HEX = "38;5;244", "808080"

_STYLE = re.compile(r"\x1b\[([\d;]*)m")
_COLORS = {
    "brown": "yellow", "brightblack": "bright_black", "brightred": "bright_red", "brightgreen": "bright_green",
    "brightbrown": "bright_yellow", "brightblue": "bright_blue", "brightmagenta": "bright_magenta",
    "bfightmagenta": "bright_magenta", "brightcyan": "bright_cyan", "brightwhite": "bright_white",
}  # fmt: skip
"""Names of pyte that differ from those of rich; one is misspelt there."""
_DURATION = re.compile(r"\b\d+(?:\.\d+)? (?:ms|s)\b")
_SPINNER = re.compile("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]")
_SVG_TEXT = re.compile(r'<text class="[^"]*" x="([^"]*)" y="([^"]*)"[^>]*>(.*?)</text>')

# rich's template without its web font: pictures on GitHub and PyPI may not load anything.
TEMPLATE = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<title>ALT</title>
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: arial, sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def draw(received: str, columns: int, alternative: str) -> str:
    """Return the terminal's content as an SVG: the last state of each line. `alternative` describes the picture."""
    console = Console(width=columns, record=True, force_terminal=True, color_system="standard", file=StringIO())
    console.print(screen_text(received, columns), highlight=False, no_wrap=True)
    template = TEMPLATE.replace("ALT", html.escape(alternative))
    return console.export_svg(title=TITLE, code_format=template, unique_id="amux")


def screen_text(received: str, columns: int) -> Text:
    """Return what a terminal that never scrolls shows after this output, with its styles."""
    screen = pyte.Screen(columns, MAX_ROWS)
    pyte.Stream(screen).feed(_STYLE.sub(_with_dim_as_color, received))
    rows = [_row_text(screen.buffer[row], columns) for row in range(MAX_ROWS)]
    while rows and not rows[-1].plain:
        rows.pop()
    if len(rows) >= MAX_ROWS - 1:  # it may have scrolled
        raise ValueError(f"the output has more than {MAX_ROWS} lines")
    return Text("\n").join(rows)


def _with_dim_as_color(style: re.Match[str]) -> str:
    """Return a style with a colour in place of `dim`, which pyte ignores."""
    return f"\x1b[{';'.join(DIM_COLOR if code == '2' else code for code in style[1].split(';'))}m"


def _row_text(cells: Mapping[int, Any], columns: int) -> Text:
    row = Text()
    for style, run in groupby((cells[column] for column in range(columns)), key=_style_of):
        row.append("".join(cell.data for cell in run), style)
    row.rstrip()
    return row


def _style_of(cell: Any) -> Style:
    is_dim = cell.fg == DIM_HEX
    color = "default" if is_dim else _COLORS.get(cell.fg, cell.fg)
    return Style(color=color, bold=cell.bold, italic=cell.italics, underline=cell.underscore, dim=is_dim)


def shown_text(picture: str) -> str:
    """Return the text of a picture, line by line, with placeholders for what differs between two runs."""
    rows: dict[float, list[tuple[float, str]]] = {}
    for x, y, text in _SVG_TEXT.findall(picture):
        rows.setdefault(float(y), []).append((float(x), html.unescape(text).replace("\xa0", " ")))
    lines = ("".join(text for _, text in sorted(rows[y])) for y in sorted(rows))
    return _SPINNER.sub("SPINNER", _DURATION.sub("DURATION", "\n".join(lines)))
