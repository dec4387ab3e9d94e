"""Start a run from words and flags, and drive it to its end. Imports typer nowhere: `amux run` starts without it."""

import os
from typing import TYPE_CHECKING

from agent_mux.cli import exit_codes

if TYPE_CHECKING:
    from agent_mux.cli.command_output import Invocation, ServiceEndpoint
    from agent_mux.cli.run_driver import RunTask
    from agent_mux.cli.run_flags import RunFlags
    from agent_mux.run.result import RunResult
    from agent_mux.settings.resolver import ResolvedOptions


_SERVER = "AGENT_MUX_SERVER"
_LOCAL_FIELDS = ("journal", "no_journal", "config_dir", "project_dir")
"""Flags that refer to files of this machine."""


def start_run(invocation: "Invocation", words: list[str], flags: "RunFlags") -> int:
    """Run an agent here or on a service, as `amux run` does. Return the exit code."""
    if flags.detach or _names_service(flags):
        return _start_run(invocation, words, flags)
    from agent_mux.process.reaper import reaper_started_ahead

    with reaper_started_ahead():  # it starts while this process imports what a run needs
        return _start_run(invocation, words, flags)


def _start_run(invocation: "Invocation", words: list[str], flags: "RunFlags") -> int:
    resolve_format(invocation, flags)
    invocation.service = service = service_from_flags(flags)
    if flags.detach:
        return run_detached(words, flags, invocation, is_remote=service is not None)
    if service is not None:
        from agent_mux.cli.remote import RemoteTask, with_absolute_paths
        from agent_mux.cli.request import options_from

        if flags.continue_last or flags.pick_session:
            from agent_mux.cli.errors import usage_error

            raise usage_error("--continue and --pick read the sessions of this machine; use --session with --server")
        # A single word that names no agent is the prompt: the service may have a default agent.
        fields = options_from(words, flags, lambda: "default agent of the service")
        task = RemoteTask(service, with_absolute_paths(fields))
        return exit_code_for(drive(task, flags, invocation))
    return exit_code_for(run_locally(resolve_options(words, flags), flags, invocation))


def run_detached(words: list[str], flags: "RunFlags", invocation: "Invocation", *, is_remote: bool) -> int:
    """Start a run in the background and print its id. Return the exit code."""
    import sys

    from agent_mux.cli.command_output import print_json
    from agent_mux.cli.errors import usage_error
    from agent_mux.cli.supervisor import start_detached

    if is_remote:
        raise usage_error("--detach cannot be combined with --server: start the run with the client of the service")
    if flags.interactive:
        raise usage_error("--detach cannot be combined with --interactive; use `amux runs steer` and `queue`")
    report = start_detached(resolve_options(words, flags), flags.config_dir)
    if invocation.json:
        print_json(report)
    else:
        sys.stdout.write(f"{report['runId']}\n")
    return 0


def service_from_flags(flags: "RunFlags") -> "ServiceEndpoint | None":
    """Return the service that the flags or the environment name, else None.

    Raises VALIDATION_ERROR for flags that cannot be combined with a service.
    """
    if not _names_service(flags):
        return None
    from agent_mux.cli.remote import service_at

    url = flags.server if flags.server is not None else os.environ.get(_SERVER) or None
    local = ["--" + name.replace("_", "-") for name in _LOCAL_FIELDS if getattr(flags, name)]
    return service_at(url, flags.server_token_file, local)


def _names_service(flags: "RunFlags") -> bool:
    return flags.server is not None or flags.server_token_file is not None or _SERVER in os.environ


def resolve_options(words: list[str], flags: "RunFlags") -> "ResolvedOptions":
    """Resolve the run options from the command line, the profile and the configuration."""
    from agent_mux.cli.request import options_from
    from agent_mux.client import AgentMux

    mux = AgentMux(config_dir=flags.config_dir, project_config_dir=flags.project_dir)

    def default_agent() -> str:
        return mux.resolve_options(profile="" if flags.no_profile else flags.profile, cwd=flags.cwd).options.agent

    resolved = _with_flags_as_sources(mux.resolve_options(**options_from(words, flags, default_agent)))
    if not (flags.continue_last or flags.pick_session):
        return resolved
    from agent_mux.cli.session_choice import with_chosen_session

    return with_chosen_session(resolved, flags)


_LIMIT_FLAGS = {
    "timeout": "--timeout",
    "inactivity_timeout": "--inactivity-timeout",
    "max_model_calls": "--max-model-calls",
    "max_cost_usd": "--max-cost",
    "max_tokens_total": "--max-tokens-total",
}
"""The options that end a run, and the flag of each: the error of such a run names it."""


def _with_flags_as_sources(resolved: "ResolvedOptions") -> "ResolvedOptions":
    """Return the options with the flag as the source of each limit that the command line sets."""
    from dataclasses import replace

    from agent_mux.settings.resolver import FROM_CALL

    flags = {name: flag for name, flag in _LIMIT_FLAGS.items() if resolved.sources.get(name) == FROM_CALL}
    return replace(resolved, sources={**resolved.sources, **flags})


def resolve_format(invocation: "Invocation", flags: "RunFlags") -> None:
    """Decide between JSON lines and text. Errors from here on use the same format."""
    from agent_mux.cli.request import inspect_streams, wants_json

    invocation.json = wants_json(flags, inspect_streams())


def run_locally(resolved: "ResolvedOptions", flags: "RunFlags", invocation: "Invocation") -> "RunResult":
    """Run on this machine and show the run. Raise the error that prevented its start."""
    from agent_mux.cli.run_driver import LocalTask

    return drive(LocalTask(resolved, flags.config_dir), flags, invocation)


def drive(task: "RunTask", flags: "RunFlags", invocation: "Invocation") -> "RunResult":
    """Run a task and show the run. Raise the error that prevented its start."""
    import sys

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
