"""Print what a command returns: tables and messages for people, JSON for programs."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import msgspec

from agent_mux._util.frozen_dataclasses import dataclass
from agent_mux.cli.terminal import sanitize, shorten_home, wants_color, width_of

if TYPE_CHECKING:
    from agent_mux.client.remote import RemoteMux

_NARROWEST = 4
"""Columns of the terminal that are left for each wrapped column of a table."""


@dataclass(frozen=True, slots=True)
class ServiceEndpoint:
    """The address and token of a service."""

    url: str
    token: str | None = field(default=None, repr=False)

    def client(self) -> "RemoteMux":
        """Return a client of the service."""
        from agent_mux.client.remote import RemoteMux

        return RemoteMux(self.url, token=self.token)


class Invocation(msgspec.Struct):
    """Settings of the whole command line; the `obj` of typer's context."""

    json: bool = False
    """Whether output and errors are printed as JSON."""
    debug: bool = False
    no_color: bool = False
    service: ServiceEndpoint | None = None
    """The service that answers instead of this machine, if any."""
    has_gate: bool = False
    """Whether exit code 1 states that the gate of a comparison failed; then errors without a code exit with 2."""


def json_envelope(data: Any, **more: Any) -> str:
    """Encode the result of a command as the JSON text that `--json` prints; `more` are fields beside `data`."""
    from agent_mux._util.sanitize import to_json

    return to_json({"ok": True, "data": data, **more})


def print_json(data: Any) -> None:
    """Print the result of a command as JSON."""
    sys.stdout.write(json_envelope(data) + "\n")


def print_result(invocation: "Invocation", sentence: str, data: Any) -> int:
    """Report a completed change: a sentence on standard error, or `data` with `--json`. Return the exit code 0."""
    from agent_mux.cli.terminal import one_line

    if invocation.json:
        print_json(data)
    else:
        sys.stderr.write(f"{one_line(sentence, 1000)}\n")
    return 0


def print_note(sentence: str) -> None:
    """Print a message on standard error that is not part of the command's result."""
    sys.stderr.write(f"{shorten_home(sentence)}\n")


def print_rows(
    rows: Sequence[dict[str, Any]], columns: Sequence[str], invocation: Invocation, *, empty: str = "nothing"
) -> None:
    """Print rows as a table of the non-empty `columns`, or all fields as JSON.

    `empty` is the message on standard error if there are no rows.
    """
    if invocation.json:
        sys.stdout.write(json_envelope(rows) + "\n")
        return
    if not rows:
        sys.stderr.write(f"{empty}\n")
        return
    from rich import box
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    width = width_of(sys.stdout)  # a pipe has no width, so lines may be longer there
    shown = [name for name in columns if any(_has_value(row.get(name)) for row in rows)]
    cells = {name: [_cell_text(row.get(name)) for row in rows] for name in shown}
    numbers = [name for name in shown if all(isinstance(row.get(name), int | float | None) for row in rows)]
    sizes = {name: max(cell_len(line) for text in (name, *cells[name]) for line in text.split("\n")) for name in shown}
    is_narrow = sum(sizes.values()) + 3 * len(shown) > width
    whole = _whole_columns(sizes, numbers, width) if is_narrow else set(shown)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0) if is_narrow else (0, 1))
    for name in shown:
        table.add_column(name, overflow="fold", justify="right" if name in numbers else "left", no_wrap=name in whole)
    for texts in zip(*cells.values(), strict=True):
        table.add_row(*map(Text, texts))
    colored = wants_color(sys.stdout, no_color=invocation.no_color)
    Console(force_terminal=colored, color_system="standard" if colored else None, highlight=False, width=width).print(
        table
    )


def _whole_columns(sizes: Mapping[str, int], numbers: Sequence[str], width: int) -> set[str]:
    """Return the columns that are not wrapped in a narrow terminal: the first one, then numbers, then as many as fit.

    The first column has an id or a name, which people copy.
    """
    first, *others = sizes
    room = width - 2 * len(sizes)
    whole: set[str] = set()
    for name in dict.fromkeys([first, *numbers, *others]):
        wrapped = len(sizes) - len(whole) - 1
        if sizes[name] + _NARROWEST * wrapped <= room:
            whole.add(name)
            room -= sizes[name]
    return whole


def _cell_text(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(str, value))
        case float():
            return f"{value:.4f}"
    return sanitize(shorten_home(str(value)))


def _has_value(value: Any) -> bool:
    return value is not None and value not in ("", [])
