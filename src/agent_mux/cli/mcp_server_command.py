"""`amux mcp-server`: other agents as tools, for an agent."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.options import ConfigDir

if TYPE_CHECKING:
    from agent_mux.cli.protocol_pipe import ProtocolPipe
    from agent_mux.mcp_server.serving import Serving


class Approvals(StrEnum):
    """The most that a run may be allowed."""

    deny = "deny"
    prompt = "prompt"
    yolo = "yolo"


@with_common_flags
def mcp_server(
    context: typer.Context,
    only: Annotated[
        list[str] | None,
        typer.Option("--agent", metavar="NAME", help="Only this agent; repeat for more.", show_default=False),
    ] = None,
    root: Annotated[
        list[Path] | None,
        typer.Option(
            "--root",
            metavar="DIR",
            help="Runs work only in here; repeat for more. Default: the current directory.",
            show_default=False,
        ),
    ] = None,
    approvals: Annotated[
        Approvals,
        typer.Option(
            help="The most that runs may do: nothing that needs permission, what the agent that delegates approves, "
            "or everything."
        ),
    ] = Approvals.deny,
    max_depth: Annotated[int, typer.Option(help="How deep delegated agents may delegate again.")] = 2,
    max_cost: Annotated[
        float | None, typer.Option(metavar="USD", help="Of all runs together.", show_default=False)
    ] = None,
    max_runs: Annotated[int, typer.Option(help="At a time.")] = 4,
    max_runs_total: Annotated[int, typer.Option(help="In all.")] = 50,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="Of each run.")] = 1800.0,
    config_dir: ConfigDir = None,
) -> int:
    """Serve MCP on standard input and output: tools to start, watch and answer runs of other agents.

    An agent starts it: `amux mcp add claude mux -- amux mcp-server`. When it goes away, all its runs end.
    """
    import os

    from agent_mux.cli.errors import bad_input
    from agent_mux.roots import Roots

    try:
        from agent_mux.mcp_server.serving import Serving
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in {"mcp", "mcp_types"}:
            raise
        raise bad_input("amux mcp-server needs the extra: pip install 'agent-mux[mcp]'") from error
    from agent_mux.mcp_server.inheritance import inherited
    from agent_mux.mcp_server.limits import Limits
    from agent_mux.registry import AdapterRegistry

    adapters = AdapterRegistry()
    limits = Limits(
        roots=Roots(root or [_current_directory()]),
        agents=tuple(adapters.get(name).agent for name in only or ()),
        approvals=approvals.value,
        max_depth=max_depth,
        max_cost_usd=max_cost,
        max_runs=max_runs,
        max_runs_total=max_runs_total,
        timeout=timeout,
    ).under(inherited(os.environ))
    _serve(Serving(limits, config_dir=config_dir, adapters=adapters), debug=context.obj.debug)
    return 0


def _current_directory() -> Path:
    """Raises VALIDATION_ERROR where that is everything: some clients start their servers there."""
    from agent_mux.cli.errors import bad_input

    current = Path.cwd()
    if current == current.parent:
        raise bad_input(f"runs could work anywhere: the current directory is {current}; say where with --root DIR")
    return current


def _serve(serving: "Serving", *, debug: bool) -> None:
    import anyio

    from agent_mux.cli.logs import logs_for
    from agent_mux.cli.protocol_pipe import protocol_pipe
    from agent_mux.cli.terminal import is_terminal

    if is_terminal(sys.stdin):
        sys.stderr.write("This speaks MCP, with an agent: `amux mcp add claude mux -- amux mcp-server`. Ctrl-C ends.\n")
    with logs_for(debug=debug), protocol_pipe() as pipe:
        anyio.run(_until_over, serving, pipe)


async def _until_over(serving: "Serving", pipe: "ProtocolPipe") -> None:
    import anyio

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_stop_when_told, serving)
        tasks.start_soon(_stop_without_reader, serving, pipe)
        await serving.serve(pipe.lines(), pipe.write)
        tasks.cancel_scope.cancel()


async def _stop_when_told(serving: "Serving") -> None:
    import anyio

    from agent_mux.cli.conduct import heeded

    with anyio.open_signal_receiver(*heeded()) as signals:
        async for _ in signals:
            serving.stop()


async def _stop_without_reader(serving: "Serving", pipe: "ProtocolPipe") -> None:
    await pipe.until_gone()
    serving.hang_up()
