"""`amux adapters`: which agents there are, and which of them are installed here."""

import sys
from collections.abc import Sequence
from typing import Any

import typer

from agent_mux.cli.options import Invocation, with_common_flags
from agent_mux.cli.terminal import width_of

adapters = typer.Typer(help="The agents that amux can drive.", no_args_is_help=True)


@adapters.command("list")
@with_common_flags
def list_adapters(context: typer.Context) -> int:
    """Show every adapter, and what it is tested with."""
    from agent_mux.registry import AdapterRegistry

    registry = AdapterRegistry()
    known = [
        {
            "agent": adapter.agent,
            "displayName": adapter.display_name,
            "aliases": list(adapter.aliases),
            "protocols": sorted(adapter.protocols),
            "minVersion": adapter.min_version,
            "testedVersion": adapter.tested_version,
        }
        for adapter in registry
    ]
    broken = [{"agent": name, "problem": problem} for name, problem in registry.problems.items()]
    _print([*known, *broken], ("agent", "displayName", "protocols", "testedVersion", "problem"), context.obj)
    return 0


@adapters.command("detect")
@with_common_flags
def detect(context: typer.Context) -> int:
    """Look for the agents on this machine, and ask for their versions."""
    import anyio

    from agent_mux.detection import Detector
    from agent_mux.registry import AdapterRegistry

    found = anyio.run(Detector(AdapterRegistry()).detect_all)
    rows = [
        {
            "agent": one.agent,
            "displayName": one.display_name,
            "installed": one.installed,
            "supported": one.supported,
            "version": one.version,
            "minVersion": one.min_version,
            "path": one.path,
            "problem": one.problem,
        }
        for one in found
    ]
    said = [{name: value for name, value in row.items() if value is not None} for row in rows]
    _print(said, ("agent", "installed", "version", "path", "problem"), context.obj)
    return 0


def _print(rows: Sequence[dict[str, Any]], columns: Sequence[str], invocation: Invocation) -> None:
    if invocation.json:
        from agent_mux.cli.json_output import envelope

        sys.stdout.write(envelope(rows) + "\n")
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = [name for name in columns if any(row.get(name) for row in rows)]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in shown:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(row.get(name))) for name in shown))
    width = width_of(sys.stdout)  # a pipe has no width: there, lines may be longer
    Console(no_color=invocation.no_color or None, highlight=False, width=width).print(table)


def _cell(value: Any) -> str:
    from agent_mux.cli.terminal import sanitize

    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(map(str, value))
    return sanitize(str(value))
