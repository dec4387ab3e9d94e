"""`amux acp`: any agent for editors that know the Agent Client Protocol."""

from typing import TYPE_CHECKING, Any

import typer

from agent_mux.cli.run_flags import RunFlags, with_run_flags_but

if TYPE_CHECKING:
    from agent_mux.client import AgentMux

NOT_HERE = (
    # the editor says it
    "prompt", "attach", "interactive", "session", "fork", "no_session", "cwd", "output_schema",
    # of one run; a session of an editor may be several, and lasts as long as the person likes
    "timeout", "inactivity_timeout", "run_id", "journal", "retry", "retry_delay",
    # the agents of an editor work beside it
    "server", "server_token_file",
    # standard output is the protocol's
    "json", "output_format", "compact", "quiet", "no_color", "include_subagent_events", "non_interactive",
)  # fmt: skip
"""Flags of `amux run` that say nothing here."""


@with_run_flags_but(*NOT_HERE)
def acp(context: typer.Context, flags: RunFlags) -> int:  # noqa: ARG001  # every command has one
    """Be an agent of the Agent Client Protocol, for an editor: whatever agent is behind it.

    The editor starts this and talks to it on standard input and standard output. What the agent asks, the editor asks
    its person. It ends when the editor goes away, and every agent with it.
    """
    import anyio

    from agent_mux.cli.errors import bad_input
    from agent_mux.cli.logs import logs_for
    from agent_mux.client import AgentMux

    mux = AgentMux(config_dir=flags.config_dir, project_config_dir=flags.project_dir)
    fields = _fields(flags, mux)
    agent = mux.adapters.get(fields["agent"]).agent
    try:
        from agent_mux.acp_agent.serving import serve_standard_streams
    except ImportError as error:
        raise bad_input("`amux acp` needs the extra: pip install 'agent-mux[acp]'") from error
    with logs_for(debug=flags.debug):
        anyio.run(serve_standard_streams, mux, agent, {**fields, "agent": agent})
    return 0


def _fields(flags: RunFlags, mux: "AgentMux") -> dict[str, Any]:
    """What the command line says of all runs. Raises VALIDATION_ERROR, and what the files say."""
    from dataclasses import replace

    from agent_mux.cli.errors import bad_input
    from agent_mux.cli.request import said_with

    default = mux.settled(profile="" if flags.no_profile else flags.profile).options.agent
    if flags.agent is None and not default:
        raise bad_input("no agent; name one: amux acp --agent AGENT")
    said = said_with([], replace(flags, agent=flags.agent or default, interactive=True))
    return {name: value for name, value in said.items() if name not in {"prompt", "interactive"}}
