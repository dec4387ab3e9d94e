"""`amux run`, `amux sessions resume` and `amux sessions fork`: start runs and drive them to their end."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent_mux.cli import exit_codes
from agent_mux.cli.command_output import Invocation, ServiceEndpoint
from agent_mux.cli.options import agent_names
from agent_mux.cli.run_flags import RunFlags, with_run_flags
from agent_mux.cli.session_options import SessionId

if TYPE_CHECKING:
    from agent_mux.cli.run_driver import RunTask
    from agent_mux.run.result import RunResult
    from agent_mux.settings.resolver import ResolvedOptions


_LOCAL_FIELDS = ("journal", "no_journal", "config_dir", "project_dir")
"""Flags that refer to files of this machine."""

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[AGENT] [PROMPT]",
        help="Agent and prompt. Without a prompt, or with `-`, the prompt is read from standard input. AGENT can be "
        "omitted if a profile, the configuration or AGENT_MUX_DEFAULT_AGENT sets a default.",
        show_default=False,
        autocompletion=agent_names,
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
    from agent_mux.cli.remote import RemoteTask
    from agent_mux.cli.request import options_from

    resolve_format(context.obj, flags)
    service = service_from_flags(flags)
    if flags.detach:
        return run_detached(words or [], flags, context.obj, service)
    if service is not None:
        # A single word that names no agent is the prompt: the service may have a default agent.
        task = RemoteTask(service, options_from(words or [], flags, lambda: "default agent of the service"))
        return exit_code_for(drive(task, flags, context.obj))
    return exit_code_for(run_locally(resolve_options(words or [], flags), flags, context.obj))


def run_detached(words: list[str], flags: RunFlags, invocation: Invocation, service: ServiceEndpoint | None) -> int:
    """Start a run in the background and print its id."""
    from agent_mux.cli.command_output import print_json
    from agent_mux.cli.errors import usage_error
    from agent_mux.cli.supervisor import start_detached

    if service is not None:
        raise usage_error("--detach cannot be combined with --server: start the run with the client of the service")
    if flags.interactive:
        raise usage_error("--detach cannot be combined with --interactive; use `amux runs steer` and `queue`")
    report = start_detached(resolve_options(words, flags), flags.config_dir)
    if invocation.json:
        print_json(report)
    else:
        sys.stdout.write(f"{report['runId']}\n")
    return 0


def service_from_flags(flags: RunFlags) -> ServiceEndpoint | None:
    """Return the service that the flags or the environment name, else None.

    Raises VALIDATION_ERROR for flags that cannot be combined with a service.
    """
    from agent_mux.cli.remote import service_at

    url = flags.server if flags.server is not None else os.environ.get("AGENT_MUX_SERVER")
    local = ["--" + name.replace("_", "-") for name in _LOCAL_FIELDS if getattr(flags, name)]
    return service_at(url, flags.server_token_file, local)


def resolve_options(words: list[str], flags: RunFlags) -> "ResolvedOptions":
    """Resolve the run options from the command line, the profile and the configuration."""
    from agent_mux.cli.request import options_from
    from agent_mux.client import AgentMux

    mux = AgentMux(config_dir=flags.config_dir, project_config_dir=flags.project_dir)

    def default_agent() -> str:
        return mux.resolve_options(profile="" if flags.no_profile else flags.profile, cwd=flags.cwd).options.agent

    return mux.resolve_options(**options_from(words, flags, default_agent))


def resolve_format(invocation: Invocation, flags: RunFlags) -> None:
    """Decide between JSON lines and text. Errors from here on use the same format."""
    from agent_mux.cli.request import inspect_streams, wants_json

    invocation.json = wants_json(flags, inspect_streams())


def run_locally(resolved: "ResolvedOptions", flags: RunFlags, invocation: Invocation) -> "RunResult":
    """Run on this machine and show the run. Raise the error that prevented its start."""
    from agent_mux.cli.run_driver import LocalTask

    return drive(LocalTask(resolved, flags.config_dir), flags, invocation)


def drive(task: "RunTask", flags: RunFlags, invocation: Invocation) -> "RunResult":
    """Run a task and show the run. Raise the error that prevented its start."""
    import anyio

    from agent_mux.cli.request import handler_for, inspect_streams, view_for
    from agent_mux.cli.run_driver import RunDriver
    from agent_mux.cli.telemetry import logs_for
    from agent_mux.cli.terminal import palette_for

    streams = inspect_streams()
    conduct = RunDriver(
        view=view_for(
            flags, as_json=invocation.json, asks=streams.asks and not flags.non_interactive, root=task.directory
        ),
        palette=palette_for(sys.stderr, no_color=flags.no_color),
        handler_factory=handler_for(flags, streams, as_json=invocation.json),
        encoding="utf-8" if invocation.json else None,
    )
    with logs_for(debug=flags.debug):
        return anyio.run(conduct.run, task)


def exit_code_for(result: "RunResult") -> int:
    """Return the exit code for a result."""
    if result.failed_on:
        return exit_codes.CONDITION_MET
    return exit_codes.for_run(result.exit_reason, result.error.code if result.error is not None else None)


Prompt = Annotated[
    str | None,
    typer.Argument(
        metavar="[PROMPT]",
        help="Prompt. Without it, or with `-`, it is read from standard input.",
        show_default=False,
    ),
]


@with_run_flags
def resume(context: typer.Context, flags: RunFlags, origin: SessionId, text: Prompt = None) -> int:
    """Resume a session, in its directory unless --cwd is given."""
    return _continue_session(context, flags, origin, text, is_fork=False)


@with_run_flags
def fork(context: typer.Context, flags: RunFlags, origin: SessionId, text: Prompt = None) -> int:
    """Start a new session from the history of a stored one, which stays unchanged."""
    return _continue_session(context, flags, origin, text, is_fork=True)


def _continue_session(context: typer.Context, flags: RunFlags, origin: str, text: str | None, *, is_fork: bool) -> int:
    from agent_mux.cli.errors import usage_error
    from agent_mux.cli.remote import refuse_service
    from agent_mux.cli.session_options import open_sessions, session_filter

    resolve_format(context.obj, flags)
    refuse_service(flags.server, flags.server_token_file, "sessions")
    if any((flags.session is not None, flags.fork is not None, flags.session_name is not None, flags.no_session)):
        message = "--session, --fork, --session-name and --no-session cannot be used here: SESSION selects the session"
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
