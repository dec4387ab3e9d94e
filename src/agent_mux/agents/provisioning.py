"""Installing and updating agents: planning the commands and their missing requirements, and running a plan."""

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

TIMEOUT = 1800.0  # seconds; hundreds of megabytes over a slow line


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallPlan:
    """The commands that install or update an agent on this machine."""

    agent: str
    kind: str
    """The kind of the method, or `own`: the agent updates itself."""
    command: str
    """The command line as a person would type it."""
    steps: tuple[tuple[str, ...], ...]
    """Programs and their arguments, run without a shell; each reads the output of the previous one on stdin."""
    missing: tuple[str, ...] = ()
    """Required programs that are not on PATH."""


def plan_install(
    adapter: Adapter, environ: Mapping[str, str], *, kind: str | None = None, platform: str = sys.platform
) -> InstallPlan:
    """Plan the installation of an agent, with the first method whose requirements are met, or with the named one.

    Raises:
        CapabilityError: There is no method for this platform, or only a manual one (the error describes it).
        ValidationError: The agent has no method of this kind.
    """
    methods = [method for method in adapter.install if platform in method.platforms]
    if kind is not None:
        wanted = [method for method in methods if method.kind == kind]
        if not wanted:
            kinds = ", ".join(method.kind for method in methods) or "none"
            raise ValidationError([FieldError("method", kind, f"one that {adapter.agent} has on {platform}: {kinds}")])
        methods = wanted
    automatic = [method for method in methods if method.kind != "manual"]
    if not automatic:
        hint = f"by hand: {methods[0].command}" if methods else f"no installation method is known on {platform}"
        raise CapabilityError(adapter.agent, "being installed by amux", hint=hint)
    ready = [method for method in automatic if not _missing_programs(method, environ)]
    return _plan(adapter.agent, (ready or automatic)[0], environ)


def plan_update(adapter: Adapter, environ: Mapping[str, str], *, platform: str = sys.platform) -> InstallPlan:
    """Plan the update of an installed agent, in this order: with npm if npm installed it, by itself, by reinstalling.

    Raises AGENT_NOT_INSTALLED; otherwise like `plan_install`.
    """
    program = find_executable(adapter, environ)
    is_npm = "node_modules" in Path(program).resolve().parts
    npm = next((method for method in adapter.install if method.kind == "npm"), None)
    words = adapter.installation().update
    if is_npm and npm is not None:
        return _plan(adapter.agent, npm, environ, suffix="@latest")
    if words is not None:
        argv = (program, *words)
        return InstallPlan(agent=adapter.agent, kind="own", command=shlex.join(argv), steps=(argv,))
    plan = plan_install(adapter, environ, platform=platform)
    upgrades = {"brew": ("install", "upgrade"), "pip": ("install", "install --upgrade"), "npm": ("", "")}
    old, new = upgrades.get(plan.kind, ("", ""))
    command = plan.command.replace(old, new, 1) if old else plan.command
    return InstallPlan(
        agent=plan.agent, kind=plan.kind, command=command, steps=split_pipeline(command), missing=plan.missing
    )


def split_pipeline(command: str) -> tuple[tuple[str, ...], ...]:
    """Split a command line into the programs of a pipeline. Only quotes and ` | ` have a meaning."""
    return tuple(tuple(shlex.split(part)) for part in command.split(" | "))


def check_ready(plan: InstallPlan) -> None:
    """Raise AGENT_NOT_INSTALLED if programs that a plan requires are missing."""
    if plan.missing:
        needs = f"`{plan.command}` needs {', '.join(plan.missing)}, which is not on PATH"
        raise AgentMuxError("AGENT_NOT_INSTALLED", f"{plan.agent} cannot be installed yet: {needs}; install that first")


def run_install_plan(plan: InstallPlan, environ: Mapping[str, str] | None = None) -> None:
    """Install or update an agent. Blocking; the last program prints to our standard error.

    Raises AGENT_NOT_INSTALLED if a program is missing or fails; SPAWN_ERROR, TIMEOUT.
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
            why = f": {answer.error_line}" if not is_last else "; see its output above"
            raise AgentMuxError("AGENT_NOT_INSTALLED", f"{plan.agent} was not installed: {failed}{why}")
        given = answer.stdout.encode()


def _plan(agent: str, method: InstallMethod, environ: Mapping[str, str], *, suffix: str = "") -> InstallPlan:
    command = method.command + suffix
    missing = _missing_programs(method, environ)
    return InstallPlan(agent=agent, kind=method.kind, command=command, steps=split_pipeline(command), missing=missing)


def _missing_programs(method: InstallMethod, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the programs that a method requires or runs and that are not on PATH."""
    needed = dict.fromkeys((*method.requires, *(step[0] for step in split_pipeline(method.command))))
    return tuple(name for name in needed if shutil.which(name, path=environ.get("PATH")) is None)
