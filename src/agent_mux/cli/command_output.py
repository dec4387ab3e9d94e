"""Print the results of commands."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_mux.cli.terminal import sanitize, shorten_home, width_of

if TYPE_CHECKING:
    from agent_mux.cli.remote import ServiceEndpoint


@dataclass(slots=True)
class Invocation:
    """What holds for the whole command line. It is the `obj` of typer's context."""

    json: bool = False
    """Print JSON, for programs; errors, too."""
    debug: bool = False
    no_color: bool = False
    service: "ServiceEndpoint | None" = None
    """Who is asked instead of this machine."""


def json_envelope(data: Any) -> str:
    """The answer of a command with `--json`."""
    from agent_mux.plain_json import to_json

    return to_json({"ok": True, "data": data})


def print_json(data: Any) -> None:
    """The answer of a command, for programs."""
    sys.stdout.write(json_envelope(data) + "\n")


def print_result(invocation: "Invocation", sentence: str, data: Any) -> int:
    """What was done: a sentence for people, data for programs."""
    from agent_mux.cli.terminal import one_line

    if invocation.json:
        print_json(data)
    else:
        sys.stderr.write(f"{one_line(sentence, 1000)}\n")
    return 0


def print_note(sentence: str) -> None:
    """Something for people that is not the answer itself."""
    sys.stderr.write(f"{shorten_home(sentence)}\n")


def print_rows(
    rows: Sequence[dict[str, Any]], columns: Sequence[str], invocation: Invocation, *, empty: str = "nothing"
) -> None:
    """As a table of these columns, those left out that are empty; or all of it as JSON.

    `empty`: what is said to a person where there are no rows.
    """
    if invocation.json:
        sys.stdout.write(json_envelope(rows) + "\n")
        return
    if not rows:
        sys.stderr.write(f"{empty}\n")
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = [name for name in columns if any(_has_value(row.get(name)) for row in rows)]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in shown:
        is_number = all(isinstance(row.get(name), int | float | None) for row in rows)
        table.add_column(name, overflow="fold", justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*(Text(_cell_text(row.get(name))) for name in shown))
    width = width_of(sys.stdout)  # a pipe has no width: there, lines may be longer
    Console(no_color=invocation.no_color or None, highlight=False, width=width).print(table)


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
