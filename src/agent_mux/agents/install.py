"""What would be run to install or update an agent here, and what is missing for that. Nothing is run.

Carrying out a plan: what the programs print is passed on as it comes.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_mux.errors import AgentMuxError, CapabilityError, FieldError, ValidationError
from agent_mux.process.command import run_program
from agent_mux.process.executable import find_executable
from agent_mux.sdk.adapter import Adapter, InstallMethod


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallPlan:
    """How an agent is installed or updated on this machine."""

    agent: str
    kind: str
    """Of the method, or `own`: the agent does it itself."""
    command: str
    """What a person would type."""
    steps: tuple[tuple[str, ...], ...]
    """Programs and their arguments; each gets on standard input what the one before it printed. No shell."""
    missing: tuple[str, ...] = ()
    """Programs that have to be there first."""


def plan_install(
    adapter: Adapter, environ: Mapping[str, str], *, kind: str | None = None, platform: str = sys.platform
) -> InstallPlan:
    """How to install an agent: by the first method that can work here, or by the one that is named.

    Raises:
        CapabilityError: There is none for this platform, or only by hand (the error says how).
        ValidationError: A kind that the agent has not.
    """
    methods = [method for method in adapter.install if platform in method.platforms]
    if kind is not None:
        wanted = [method for method in methods if method.kind == kind]
        if not wanted:
            kinds = ", ".join(method.kind for method in methods) or "none"
            raise ValidationError([FieldError("method", kind, f"one that {adapter.agent} has on {platform}: {kinds}")])
        methods = wanted
    runnable = [method for method in methods if method.kind != "manual"]
    if not runnable:
        by_hand = f"by hand: {methods[0].command}" if methods else f"there is no known way on {platform}"
        raise CapabilityError(adapter.agent, "being installed by amux", hint=by_hand)
    ready = [method for method in runnable if not _missing(method, environ)]
    return _planned(adapter.agent, (ready or runnable)[0], environ)


def plan_update(adapter: Adapter, environ: Mapping[str, str], *, platform: str = sys.platform) -> InstallPlan:
    """How to update an agent that is installed: as it was installed, else by itself.

    Raises AGENT_NOT_INSTALLED; otherwise as `plan_install`.
    """
    program = find_executable(adapter, environ)
    is_npm = "node_modules" in Path(program).resolve().parts
    npm = next((method for method in adapter.install if method.kind == "npm"), None)
    words = adapter.home().update
    if is_npm and npm is not None:
        return _planned(adapter.agent, npm, environ, ending="@latest")
    if words is not None:
        argv = (program, *words)
        return InstallPlan(agent=adapter.agent, kind="own", command=shlex.join(argv), steps=(argv,))
    plan = plan_install(adapter, environ, platform=platform)
    upgrades = {"brew": ("install", "upgrade"), "pip": ("install", "install --upgrade"), "npm": ("", "")}
    old, new = upgrades.get(plan.kind, ("", ""))
    command = plan.command.replace(old, new, 1) if old else plan.command
    return InstallPlan(agent=plan.agent, kind=plan.kind, command=command, steps=steps_of(command), missing=plan.missing)


def steps_of(command: str) -> tuple[tuple[str, ...], ...]:
    """The programs of a command line, which knows quotes and pipes and nothing else of a shell."""
    return tuple(tuple(shlex.split(part)) for part in command.split(" | "))


def _planned(agent: str, method: InstallMethod, environ: Mapping[str, str], *, ending: str = "") -> InstallPlan:
    command = method.command + ending
    return InstallPlan(
        agent=agent, kind=method.kind, command=command, steps=steps_of(command), missing=_missing(method, environ)
    )


def _missing(method: InstallMethod, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Programs that are not there: those that it needs, and those that it runs."""
    needed = dict.fromkeys((*method.requires, *(step[0] for step in steps_of(method.command))))
    return tuple(name for name in needed if shutil.which(name, path=environ.get("PATH")) is None)


def check_ready(plan: InstallPlan) -> None:
    """Raise AGENT_NOT_INSTALLED where something is missing for a plan."""
    if plan.missing:
        needs = f"`{plan.command}` needs {', '.join(plan.missing)}, which is not on PATH"
        raise AgentMuxError("AGENT_NOT_INSTALLED", f"{plan.agent} cannot be installed yet: {needs}; install that first")


TIMEOUT = 1800.0  # seconds; hundreds of megabytes over a slow line


def carry_out(plan: InstallPlan, environ: Mapping[str, str] | None = None) -> None:
    """Install or update. Blocking; the programs print to our standard error.

    Raises AGENT_NOT_INSTALLED where something is missing, or a program fails; SPAWN_ERROR, TIMEOUT.
    """
    check_ready(plan)
    given = b""
    for index, step in enumerate(plan.steps):
        is_last = index == len(plan.steps) - 1
        answer = run_program(
            step, environ=os.environ if environ is None else environ, timeout=TIMEOUT, stdin=given, show_output=is_last
        )
        if answer.exit_code != 0:
            failed = f"`{' '.join(step)}` failed (exit code {answer.exit_code})"
            why = f": {answer.error_line}" if not is_last else "; it says above why"
            raise AgentMuxError("AGENT_NOT_INSTALLED", f"{plan.agent} was not installed: {failed}{why}")
        given = answer.stdout.encode()
