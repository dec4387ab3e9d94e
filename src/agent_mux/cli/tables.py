"""Rows for a person, or for a program."""

import sys
from collections.abc import Sequence
from typing import Any

from agent_mux.cli.json_output import Invocation
from agent_mux.cli.terminal import homely, sanitize, width_of


def print_rows(
    rows: Sequence[dict[str, Any]], columns: Sequence[str], invocation: Invocation, *, empty: str = "nothing"
) -> None:
    """As a table of these columns, those left out that are empty; or all of it as JSON.

    `empty`: what is said to a person where there are no rows.
    """
    if invocation.json:
        from agent_mux.cli.json_output import envelope

        sys.stdout.write(envelope(rows) + "\n")
        return
    if not rows:
        sys.stderr.write(f"{empty}\n")
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = [name for name in columns if any(_is_said(row.get(name)) for row in rows)]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in shown:
        is_number = all(isinstance(row.get(name), int | float | None) for row in rows)
        table.add_column(name, overflow="fold", justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*(Text(_cell(row.get(name))) for name in shown))
    width = width_of(sys.stdout)  # a pipe has no width: there, lines may be longer
    Console(no_color=invocation.no_color or None, highlight=False, width=width).print(table)


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(str, value))
        case float():
            return f"{value:.4f}"
    return sanitize(homely(str(value)))


def _is_said(value: Any) -> bool:
    return value is not None and value not in ("", [])
