"""`amux acp` and `amux mcp-server`: agents behind a protocol on standard input and output."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.options import ConfigDir, limit_in_seconds
from agent_mux.cli.run_flags import RunFlags, with_run_flags_but

if TYPE_CHECKING:
    from agent_mux.cli.streams import ProtocolPipe
    from agent_mux.client import AgentMux
    from agent_mux.mcp_server.server import DelegationServer


EXCLUDED_FLAGS = (
    # set by the editor
    "prompt", "attach", "interactive", "session", "session_name", "continue_last", "pick_session", "fork", "no_session",
    "cwd", "output_schema",
    # options of a single run; an editor's session may consist of several and has no time limit
    "timeout", "inactivity_timeout", "run_id", "journal", "retry", "retry_delay", "wait_for_quota", "fallback",
    # the editor owns the process
    "detach",
    # editors run agents locally
    "server", "server_token_file",
    # standard output carries the protocol
    "json", "output_format", "compact", "quiet", "no_color", "include_subagent_events", "non_interactive",
)  # fmt: skip
"""Flags of `amux run` that do not apply to `amux acp`."""


@with_run_flags_but(*EXCLUDED_FLAGS)
def acp(context: typer.Context, flags: RunFlags) -> int:  # noqa: ARG001  # every command has one
    """Run as an ACP agent for editors.

    Any agent can serve an editor that supports the Agent Client Protocol. The editor starts this command and talks to
    it on standard input and output. Approvals and questions of the agent are shown in the editor. When the editor
    disconnects, all its runs end.
    """
    import anyio

    from agent_mux.cli.telemetry import logs_for
    from agent_mux.client import AgentMux
    from agent_mux.errors import MissingExtraError

    mux = AgentMux(config_dir=flags.config_dir, project_config_dir=flags.project_dir)
    fields = _run_fields(flags, mux)
    agent = mux.adapters.get(fields["agent"]).agent
    try:
        from agent_mux.acp_server.serving import serve_standard_streams
    except ImportError as error:
        raise MissingExtraError("`amux acp`", "acp") from error
    with logs_for(debug=flags.debug):
        anyio.run(serve_standard_streams, mux, agent, {**fields, "agent": agent})
    return 0


def _run_fields(flags: RunFlags, mux: "AgentMux") -> dict[str, Any]:
    """Return the run options shared by all sessions. Raise VALIDATION_ERROR, and errors of configuration files."""
    from dataclasses import replace

    from agent_mux.cli.errors import usage_error
    from agent_mux.cli.request import options_from

    default = mux.resolve_options(profile="" if flags.no_profile else flags.profile).options.agent
    if flags.agent is None and not default:
        raise usage_error("no agent given; use amux acp --agent AGENT")
    options = options_from([], replace(flags, agent=flags.agent or default, interactive=True))
    return {name: value for name, value in options.items() if name not in {"prompt", "interactive"}}


class Approvals(StrEnum):
    """The highest approval mode that runs may use."""

    deny = "deny"
    prompt = "prompt"
    yolo = "yolo"


@with_common_flags
def mcp_server(
    context: typer.Context,
    only: Annotated[
        list[str] | None,
        typer.Option("--agent", metavar="NAME", help="Allowed agent (repeatable; default: all).", show_default=False),
    ] = None,
    root: Annotated[
        list[Path] | None,
        typer.Option(
            "--root",
            metavar="DIR",
            help="Allowed directory (repeatable; default: current directory).",
            show_default=False,
        ),
    ] = None,
    approvals: Annotated[
        Approvals,
        typer.Option(help="Highest approval mode of runs: deny; prompt (the delegating agent approves); yolo."),
    ] = Approvals.deny,
    max_depth: Annotated[int, typer.Option(help="Maximum depth of nested delegation.")] = 2,
    max_cost: Annotated[
        float | None, typer.Option(metavar="USD", help="Total cost limit of all runs.", show_default=False)
    ] = None,
    max_runs: Annotated[int, typer.Option(help="Maximum number of concurrent runs.")] = 4,
    max_runs_total: Annotated[int, typer.Option(help="Maximum number of runs in total.")] = 50,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", parser=limit_in_seconds, help="Time limit of each run.")
    ] = 1800.0,
    config_dir: ConfigDir = None,
) -> int:
    """Serve MCP tools that start and watch runs of other agents.

    The protocol uses standard input and output. Agents start it after `amux mcp add claude mux -- amux mcp-server`.
    When the agent disconnects, all its runs end.
    """
    import os

    from agent_mux.errors import MissingExtraError
    from agent_mux.settings.allowed_directories import AllowedDirectories

    try:
        from agent_mux.mcp_server.server import DelegationServer
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in {"mcp", "mcp_types"}:
            raise
        raise MissingExtraError("`amux mcp-server`", "mcp") from error
    from agent_mux.mcp_server.inheritance import read_inherited_limits
    from agent_mux.mcp_server.limits import DelegationLimits
    from agent_mux.sdk.registry import AdapterRegistry

    adapters = AdapterRegistry()
    limits = DelegationLimits(
        roots=AllowedDirectories(root or [_current_directory()]),
        agents=tuple(adapters.get(name).agent for name in only or ()),
        approvals=approvals.value,
        max_depth=max_depth,
        max_cost_usd=max_cost,
        max_runs=max_runs,
        max_runs_total=max_runs_total,
        timeout=timeout,
    ).restricted_by(read_inherited_limits(os.environ))
    _serve_mcp(DelegationServer(limits, config_dir=config_dir, adapters=adapters), debug=context.obj.debug)
    return 0


def _current_directory() -> Path:
    """Return the current directory. Raise VALIDATION_ERROR if it is the root: some clients start servers there."""
    from agent_mux.cli.errors import usage_error

    current = Path.cwd()
    if current == current.parent:
        raise usage_error(
            f"the current directory is {current}, which would allow runs everywhere; restrict them with --root DIR"
        )
    return current


def _serve_mcp(serving: "DelegationServer", *, debug: bool) -> None:
    import anyio

    from agent_mux.cli.streams import protocol_pipe
    from agent_mux.cli.telemetry import logs_for
    from agent_mux.cli.terminal import is_terminal

    if is_terminal(sys.stdin):
        sys.stderr.write(
            "Waiting for MCP messages from an agent (`amux mcp add claude mux -- amux mcp-server`). Stop with Ctrl-C.\n"
        )
    with logs_for(debug=debug), protocol_pipe() as pipe:
        anyio.run(_serve_until_closed, serving, pipe)


async def _serve_until_closed(serving: "DelegationServer", pipe: "ProtocolPipe") -> None:
    import anyio

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_stop_on_signal, serving)
        tasks.start_soon(_stop_without_reader, serving, pipe)
        await serving.serve(pipe.lines(), pipe.write)
        tasks.cancel_scope.cancel()


async def _stop_on_signal(serving: "DelegationServer") -> None:
    import anyio

    from agent_mux.cli.run_driver import ending_signals

    with anyio.open_signal_receiver(*ending_signals()) as signals:
        async for _ in signals:
            serving.stop()


async def _stop_without_reader(serving: "DelegationServer", pipe: "ProtocolPipe") -> None:
    await pipe.until_gone()
    serving.disconnect()
