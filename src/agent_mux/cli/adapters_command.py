"""`amux adapters`: which agents there are, and which of them are installed here."""

from typing import TYPE_CHECKING, Annotated, cast

import typer

from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.elsewhere import can_ask_a_service
from agent_mux.cli.options import agent_names
from agent_mux.cli.tables import print_rows

if TYPE_CHECKING:
    from agent_mux.cli.server import Service

adapters = typer.Typer(help="The agents that amux can drive.", no_args_is_help=True)


@adapters.command("list")
@with_common_flags
@can_ask_a_service
def list_adapters(context: typer.Context) -> int:
    """Show every adapter, and what it is tested with."""
    import msgspec

    from agent_mux.registry import AdapterRegistry
    from agent_mux.shapes.agents import known_agents

    service: Service | None = context.obj.service
    known = AdapterRegistry() if service is None else cast("AdapterRegistry", service.client().adapters)
    rows = [msgspec.to_builtins(view) for view in known_agents(known)]
    print_rows(rows, ("agent", "displayName", "protocols", "testedVersion", "problem"), context.obj)
    return 0


@adapters.command("detect")
@with_common_flags
@can_ask_a_service
def detect(
    context: typer.Context,
    agent: Annotated[
        str | None,
        typer.Argument(metavar="[AGENT]", help="Default: all.", show_default=False, autocompletion=agent_names),
    ] = None,
) -> int:
    """Look for the agents on this machine, and ask for their versions."""
    import anyio
    import msgspec

    from agent_mux.cli.progress import progress
    from agent_mux.detection import Detector
    from agent_mux.registry import AdapterRegistry
    from agent_mux.shapes.agents import detected_view

    service: Service | None = context.obj.service
    detector = Detector(AdapterRegistry()) if service is None else service.client().detector
    with progress("asking for versions"):
        found = anyio.run(detector.detect_all) if agent is None else [anyio.run(detector.detect, agent)]
    rows = [msgspec.to_builtins(detected_view(one)) for one in found]
    print_rows(rows, ("agent", "installed", "version", "path", "problem"), context.obj)
    return 0
