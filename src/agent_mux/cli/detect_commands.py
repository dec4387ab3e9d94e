"""`amux detect-host` and `amux capabilities`: who runs us, and what agents can do."""

from dataclasses import asdict

import typer

from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.home_options import AgentName
from agent_mux.cli.json_output import print_json
from agent_mux.cli.tables import print_rows


@with_common_flags
def detect_host(context: typer.Context) -> int:
    """Say whether an agent, or a CI system, runs this process: their variables are in its environment."""
    import os

    from agent_mux.hosts import detect_hosts
    from agent_mux.registry import AdapterRegistry

    rows = [asdict(host) for host in detect_hosts(AdapterRegistry(), os.environ)]
    print_rows(rows, ("kind", "name", "variable"), context.obj, empty="neither an agent nor a CI system runs this")
    return 0


@with_common_flags
def capabilities(context: typer.Context, agent: AgentName) -> int:
    """Show what an agent can do, as recordings and live tests have proven."""
    from agent_mux.registry import AdapterRegistry
    from agent_mux.shapes.agents import capabilities_json, capabilities_of

    adapter = AdapterRegistry().get(agent)
    if context.obj.json:
        print_json(capabilities_json(adapter))
        return 0
    known = capabilities_of(adapter)
    events = known.pop("emits")
    known["emits"] = f"{len(events)} types of events"
    rows = [{"capability": name.replace("_", " "), "value": value} for name, value in known.items() if value != []]
    print_rows(rows, ("capability", "value"), context.obj)
    return 0
