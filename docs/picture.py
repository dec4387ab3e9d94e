"""Draw the README's picture from a recorded session: `python docs/picture.py [--check]`.

A shell at a pseudo-terminal runs `amux run claude ...`, and the picture shows what the terminal received. In place of
the model and the CLI, the player plays a recording of the real CLI; its approval requests are answered here. Nothing
is edited: only durations differ between two runs, so a picture that differs in nothing else is not written again.
"""
# ruff: noqa: INP001  # a script, not a package

import argparse
import html
import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from io import StringIO
from itertools import groupby
from pathlib import Path
from typing import Any

import pexpect
import pyte
from rich.console import Console
from rich.style import Style
from rich.text import Text

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "terminal.svg"
RECORDING = ROOT / "fixtures" / "claude" / "2.1.330" / "fix_failing_test"
COMMAND = 'amux run claude "Fix the failing test"'
ANSWERS = ("a", "y")  # as recorded: always allow the tests, allow one edit
SIZE = (40, 84)  # lines, columns
TIMEOUT = 60.0  # seconds for each step of the conversation
PATIENCE = 60  # seconds that the player waits for an answer
SHELL_PROMPT = "$ "
QUESTION = "lways? "
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
_SVG_TEXT = re.compile(r'<text class="[^"]*" x="([^"]*)" y="([^"]*)"[^>]*>(.*?)</text>')

# rich's template without its web font: pictures on GitHub and PyPI may not load anything.
TEMPLATE = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<title>amux run claude: a test run, approvals, an edit, and the result</title>
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the picture, or check it with `--check`. Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the picture is stale")
    options = parser.parse_args(arguments)
    drawn = draw(record_session(speed=0 if options.check else 1))
    if PICTURE.is_file() and shown_text(PICTURE.read_text("utf-8")) == shown_text(drawn):
        return 0
    if options.check:
        sys.stderr.write(f"{PICTURE} is stale; run: make picture\n")
        return 1
    PICTURE.write_text(drawn, encoding="utf-8")
    return 0


def record_session(*, speed: float) -> str:
    """Return what a terminal receives while the command runs; `speed` 1 is as recorded, 0 is without pauses."""
    with tempfile.TemporaryDirectory() as home:
        shell = pexpect.spawn(
            "/bin/sh", env=_environment(Path(home), speed), cwd=home, dimensions=SIZE, encoding="utf-8", timeout=TIMEOUT
        )
        received = StringIO()
        try:
            shell.logfile_read = received
            shell.expect_exact(SHELL_PROMPT)
            shell.sendline(COMMAND)
            for answer in ANSWERS:
                shell.expect_exact(QUESTION)
                shell.sendline(answer)
            shell.expect_exact(f"\n{SHELL_PROMPT}")
        finally:
            shell.close(force=True)
        return received.getvalue().removesuffix(SHELL_PROMPT)


def draw(received: str) -> str:
    """Return the terminal's content as an SVG: the last state of each line."""
    console = Console(width=SIZE[1], record=True, force_terminal=True, color_system="standard", file=StringIO())
    console.print(screen_text(received, SIZE[1]), highlight=False, no_wrap=True)
    return console.export_svg(title=TITLE, code_format=TEMPLATE, unique_id="amux")


def screen_text(received: str, columns: int) -> Text:
    """Return what a terminal that never scrolls shows after this output, with its styles."""
    screen = pyte.Screen(columns, MAX_ROWS)
    pyte.Stream(screen).feed(_STYLE.sub(_with_dim_as_color, received))
    rows = [_row_text(screen.buffer[row], columns) for row in range(MAX_ROWS)]
    while rows and not rows[-1].plain:
        rows.pop()
    if len(rows) == MAX_ROWS:
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
    """Return the text of a picture, line by line, with a placeholder for each duration."""
    rows: dict[float, list[tuple[float, str]]] = {}
    for x, y, text in _SVG_TEXT.findall(picture):
        rows.setdefault(float(y), []).append((float(x), html.unescape(text).replace("\xa0", " ")))
    return _DURATION.sub("DURATION", "\n".join("".join(text for _, text in sorted(rows[y])) for y in sorted(rows)))


def _environment(home: Path, speed: float) -> dict[str, str]:
    """Return the environment of the shell: a home without a journal, and the player as the agent's program."""
    settings = home / ".agent-mux"
    settings.mkdir()
    (settings / "config.json").write_text(json.dumps({"journal": False}), "utf-8")
    return {
        "AMUX_CLAUDE_EXECUTABLE": str(_player(home, speed)),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "PATH": f"{Path(sys.executable).parent}:{os.defpath}",
        "PS1": SHELL_PROMPT,
        "TERM": "xterm-256color",
    }


def _player(home: Path, speed: float) -> Path:
    """Write a program that answers `--version` as recorded, and otherwise plays the recording."""
    package = find_spec("agent_mux_adapters.replay")
    if package is None or package.origin is None:
        raise ImportError("agent_mux_adapters.replay is not installed")
    play = (sys.executable, "-I", "-S", Path(package.origin).with_name("player.py"), RECORDING, speed, PATIENCE)
    version = RECORDING.parent.name
    program = home / "claude"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && exec echo {version}\nexec {shlex.join(map(str, play))}\n', "utf-8"
    )
    program.chmod(0o755)
    return program


if __name__ == "__main__":
    sys.exit(main())
