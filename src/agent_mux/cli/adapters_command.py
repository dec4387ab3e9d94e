"""`amux adapters`: which agents there are, and which of them are installed here."""

from typing import Annotated

import typer

from agent_mux.cli.completion_command import agent_names
from agent_mux.cli.options import with_common_flags
from agent_mux.cli.tables import print_rows

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
    print_rows([*known, *broken], ("agent", "displayName", "protocols", "testedVersion", "problem"), context.obj)
    return 0


@adapters.command("detect")
@with_common_flags
def detect(
    context: typer.Context,
    agent: Annotated[
        str | None,
        typer.Argument(metavar="[AGENT]", help="Default: all.", show_default=False, autocompletion=agent_names),
    ] = None,
) -> int:
    """Look for the agents on this machine, and ask for their versions."""
    import anyio

    from agent_mux.cli.progress import progress
    from agent_mux.detection import Detector
    from agent_mux.registry import AdapterRegistry

    detector = Detector(AdapterRegistry())
    with progress("asking for versions"):
        found = anyio.run(detector.detect_all) if agent is None else [anyio.run(detector.detect, agent)]
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
    print_rows(said, ("agent", "installed", "version", "path", "problem"), context.obj)
    return 0
