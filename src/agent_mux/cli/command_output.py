"""Print what a command returns: tables and messages for people, JSON for programs."""

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from agent_mux._util.frozen_dataclasses import dataclass
from agent_mux.cli.terminal import sanitize, shorten_home, wants_color, width_of

if TYPE_CHECKING:
    from rich.console import Console

    from agent_mux.client.remote import RemoteMux

_READABLE = 7
"""Columns of the terminal that a wrapped column of a table needs besides its name, unless its texts are shorter."""


@dataclass(frozen=True, slots=True)
class ServiceEndpoint:
    """The address and token of a service."""

    url: str
    token: str | None = field(default=None, repr=False)

    def client(self) -> "RemoteMux":
        """Return a client of the service."""
        from agent_mux.client.remote import RemoteMux

        return RemoteMux(self.url, token=self.token)


class Dollars(float):
    """An amount of money in a table for people; JSON has plain numbers."""

    @classmethod
    def of(cls, amount: float | None) -> "Dollars | None":
        """Return the amount; None if it is not known."""
        return None if amount is None else cls(amount)


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
    return shown_json({"ok": True, "data": data, **more})


def shown_json(value: Any) -> str:
    """Encode plain values as the JSON text for standard output; on a terminal, without characters that control it."""
    from agent_mux._util.sanitize import to_json

    return for_terminal(to_json(value))


def for_terminal(text: str) -> str:
    """Return JSON text unchanged, or with invisible characters escaped if standard output is a terminal."""
    from agent_mux._util.sanitize import escape_invisible
    from agent_mux.cli.terminal import is_terminal

    return escape_invisible(text) if is_terminal(sys.stdout) else text


def print_json(data: Any) -> None:
    """Print the result of a command as JSON."""
    sys.stdout.write(json_envelope(data) + "\n")


def print_result(invocation: "Invocation", sentence: str, data: Any) -> int:
    """Report a completed change: a sentence on standard error, or `data` with `--json`. Return the exit code 0."""
    from agent_mux.cli.terminal import one_line

    if invocation.json:
        print_json(data)
    else:
        sys.stderr.write(f"{one_line(shorten_home(sentence), 1000)}\n")
    return 0


def print_note(sentence: str) -> None:
    """Print a message on standard error that is not part of the command's result."""
    sys.stderr.write(f"{shorten_home(sentence)}\n")


def print_rows(
    rows: Sequence[dict[str, Any]], columns: Sequence[str], invocation: Invocation, *, empty: str = "nothing"
) -> None:
    """Print rows as a table of the non-empty `columns`, or all fields as JSON.

    In a terminal that is too narrow for the table, each row is a list of its fields. `empty` is the message on standard
    error if there are no rows.
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
    colored = wants_color(sys.stdout, no_color=invocation.no_color)
    system: Literal["standard"] | None = "standard" if colored else None
    console = Console(force_terminal=colored, color_system=system, highlight=False, width=width)
    if is_narrow and not _is_readable(sizes, whole, width):
        for texts in zip(*cells.values(), strict=True):
            _print_record(console, dict(zip(shown, texts, strict=True)))
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0) if is_narrow else (0, 1))
    for name in shown:
        table.add_column(name, overflow="fold", justify="right" if name in numbers else "left", no_wrap=name in whole)
    for texts in zip(*cells.values(), strict=True):
        table.add_row(*map(Text, texts))
    console.print(table)


def _whole_columns(sizes: Mapping[str, int], numbers: Sequence[str], width: int) -> set[str]:
    """Return the columns that are not wrapped in a narrow terminal: the first one, then numbers, then as many as fit.

    The first column has an id or a name, which people copy.
    """
    first, *others = sizes
    room = width - 2 * len(sizes)
    whole: set[str] = set()
    for name in dict.fromkeys([first, *numbers, *others]):
        wrapped = sum(_least(other, sizes[other]) for other in sizes if other not in {*whole, name})
        if sizes[name] + wrapped <= room:
            whole.add(name)
            room -= sizes[name]
    return whole


def _is_readable(sizes: Mapping[str, int], whole: Collection[str], width: int) -> bool:
    """Return whether the first column is whole, and the columns that are wrapped have room for words."""
    needed = sum(size if name in whole else _least(name, size) for name, size in sizes.items())
    return next(iter(sizes)) in whole and needed + 2 * len(sizes) <= width


def _least(name: str, size: int) -> int:
    """Return the columns of the terminal that a column of a table needs when it is wrapped."""
    return min(size, max(_READABLE, len(name)))


def _print_record(console: "Console", record: Mapping[str, str]) -> None:
    """Print the first field as a title, and below it the others that have a value."""
    from rich.table import Table
    from rich.text import Text

    title, *rest = record.items()
    console.print(Text(title[1], style="bold", overflow="fold"))
    fields = Table.grid(padding=(0, 2))
    fields.add_column(no_wrap=True)
    fields.add_column(overflow="fold")
    for name, text in rest:
        if text:
            fields.add_row(Text(f"  {name}"), Text(text))
    console.print(fields)


def _cell_text(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(str, value))
        case Dollars():
            return f"${value:.4f}"
        case float():
            return f"{value:.4f}"
    return sanitize(shorten_home(str(value)))


def _has_value(value: Any) -> bool:
    return value is not None and value not in ("", [])
