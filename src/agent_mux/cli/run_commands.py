"""`amux run`, `amux sessions resume` and `amux sessions fork`, as typer parses them."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from agent_mux.cli.decorators import reject_server
from agent_mux.cli.run_execution import exit_code_for, resolve_format, resolve_options, run_locally, start_run
from agent_mux.cli.run_flags import SERVICE_FLAGS, RunFlags, with_run_flags, with_run_flags_but
from agent_mux.cli.session_options import SessionId

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[AGENT] [PROMPT]",
        help="Agent and prompt. Without a prompt, or with `-`, the prompt is read from standard input. AGENT can be "
        "omitted if a profile, the configuration or AGENT_MUX_DEFAULT_AGENT sets a default.",
        show_default=False,
    ),
]


@with_run_flags
def run(context: typer.Context, flags: RunFlags, words: Words = None) -> int:
    """Run an agent with a prompt.

    The answer goes to standard output, everything else to standard error. Approvals are requested on the terminal;
    without a terminal they are denied, with a warning. Ctrl-C aborts the run; a second Ctrl-C kills it. Ctrl-Z pauses
    the agent and suspends the command; `fg` resumes both.

    With --server, the run works on a service (`amux serve`), and paths refer to its machine.

    With --interactive, each line is a prompt, Ctrl-C interrupts the current turn, and /help lists the commands. With
    --json, prompts and commands are JSON lines on standard input.
    """
    return start_run(context.obj, words or [], flags)


Prompt = Annotated[
    str | None,
    typer.Argument(
        metavar="[PROMPT]",
        help="Prompt. Without it, or with `-`, it is read from standard input.",
        show_default=False,
    ),
]


@with_run_flags_but(*SERVICE_FLAGS)
def resume(context: typer.Context, flags: RunFlags, origin: SessionId, text: Prompt = None) -> int:
    """Resume a session, in its directory unless --cwd is given."""
    return _continue_session(context, flags, origin, text, is_fork=False)


@with_run_flags_but(*SERVICE_FLAGS)
def fork(context: typer.Context, flags: RunFlags, origin: SessionId, text: Prompt = None) -> int:
    """Start a new session from the history of a stored one, which stays unchanged."""
    return _continue_session(context, flags, origin, text, is_fork=True)


def _continue_session(context: typer.Context, flags: RunFlags, origin: str, text: str | None, *, is_fork: bool) -> int:
    from agent_mux.cli.errors import usage_error
    from agent_mux.cli.session_options import open_sessions, session_filter

    resolve_format(context.obj, flags)
    reject_server(context)
    chosen = (flags.session, flags.fork, flags.session_name)
    if any(each is not None for each in chosen) or flags.no_session or flags.continue_last or flags.pick_session:
        message = (
            "--session, --fork, --session-name, --continue, --pick and --no-session cannot be used here: "
            "SESSION selects the session"
        )
        raise usage_error(message)
    with open_sessions(flags.config_dir, flags.project_dir) as library:
        known = library.find(origin, session_filter(agent=flags.agent))
    summary = known.summary
    cwd = flags.cwd
    if cwd is None and summary.cwd is not None:
        cwd = Path(summary.cwd)
        if not cwd.is_dir():
            raise usage_error(f"{cwd}, the directory of {summary.id}, no longer exists; choose another with --cwd")
    flags = replace(flags, agent=known.adapter.agent, cwd=cwd)
    flags = replace(flags, fork=summary.native_id) if is_fork else replace(flags, session=summary.native_id)
    return exit_code_for(run_locally(resolve_options([] if text is None else [text], flags), flags, context.obj))
