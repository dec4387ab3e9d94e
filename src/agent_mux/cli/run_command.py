"""`amux run`: one prompt, one agent."""

from typing import TYPE_CHECKING, Annotated

import typer

from agent_mux.cli import exit_codes
from agent_mux.cli.json_output import Invocation
from agent_mux.cli.options import agent_names
from agent_mux.cli.run_flags import RunFlags, with_run_flags

if TYPE_CHECKING:
    from agent_mux.cli.conduct import Task
    from agent_mux.preferences.settling import Settled
    from agent_mux.run.result import RunResult

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="AGENT [PROMPT]",
        help="The agent, and what it is to do. Without a prompt, or with `-`, it is read from standard input. The agent"
        " can be left out where a profile or a configuration names a default.",
        show_default=False,
        autocompletion=agent_names,
    ),
]


@with_run_flags
def run(context: typer.Context, flags: RunFlags, words: Words = None) -> int:
    """Give an agent a task.

    The answer goes to standard output, everything else to standard error. Approvals are asked on the terminal; where
    nobody can be asked they are denied, with a warning. Ctrl-C aborts the run, a second one kills it.

    With --server, it works at a service (`amux serve`), and paths are those of its machine.

    With --interactive it is a conversation: each line is a prompt, Ctrl-C stops the turn that runs, /help shows the
    commands. With --json, prompts and commands are lines of standard input.
    """
    from agent_mux.cli.request import said_with
    from agent_mux.cli.server import There, service_of

    settle_format(context.obj, flags)
    service = service_of(flags)
    if service is not None:
        # A single word that names no agent is the prompt: the service may know a default agent.
        task = There(service, said_with(words or [], flags, lambda: "that of the service"))
        return exit_code_of(conducted(task, flags, context.obj))
    return exit_code_of(carry_out(settled_with(words or [], flags), flags, context.obj))


def settled_with(words: list[str], flags: RunFlags) -> "Settled":
    """What the run is to do: by the command line, a profile and the configuration."""
    from agent_mux.cli.request import said_with
    from agent_mux.client import AgentMux

    mux = AgentMux(config_dir=flags.config_dir, project_config_dir=flags.project_dir)

    def default_agent() -> str:
        return mux.settled(profile="" if flags.no_profile else flags.profile, cwd=flags.cwd).options.agent

    return mux.settled(**said_with(words, flags, default_agent))


def settle_format(invocation: Invocation, flags: RunFlags) -> None:
    """JSONL or not: from here on, errors follow it."""
    from agent_mux.cli.request import look_around, wants_json

    invocation.json = wants_json(flags, look_around())


def carry_out(settled: "Settled", flags: RunFlags, invocation: Invocation) -> "RunResult":
    """Run it here and show it. Raises what kept it from starting."""
    from agent_mux.cli.conduct import Here

    return conducted(Here(settled, flags.config_dir), flags, invocation)


def conducted(task: "Task", flags: RunFlags, invocation: Invocation) -> "RunResult":
    """Run it and show it. Raises what kept it from starting."""
    import sys

    import anyio

    from agent_mux.cli.conduct import Conduct
    from agent_mux.cli.logs import logs_for
    from agent_mux.cli.request import company_for, look_around, view_for
    from agent_mux.cli.terminal import palette_for

    around = look_around()
    conduct = Conduct(
        view=view_for(flags, as_json=invocation.json, asks=around.asks and not flags.non_interactive),
        palette=palette_for(sys.stderr, no_color=flags.no_color),
        company=company_for(flags, around, as_json=invocation.json),
        encoding="utf-8" if invocation.json else None,
    )
    with logs_for(debug=flags.debug):
        return anyio.run(conduct.run, task)


def exit_code_of(result: "RunResult") -> int:
    """What the run came to, as a number."""
    return exit_codes.of_run(result.exit_reason, result.error.code if result.error is not None else None)
