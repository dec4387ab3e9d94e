"""`amux install`, `update` and `uninstall`: the programs of the agents on this machine."""

import sys
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_mux.cli.command_output import Invocation, print_json, print_note, print_rows
from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.installation_options import DryRun

if TYPE_CHECKING:
    from agent_mux.agents.detection import DetectedAgent
    from agent_mux.agents.installer import Installer
    from agent_mux.agents.provisioning import InstallPlan


AgentOrAll = Annotated[
    str | None,
    typer.Argument(metavar="[AGENT]", help="Agent name.", show_default=False),
]
AgentAndVersion = Annotated[
    str | None,
    typer.Argument(
        metavar="[AGENT[@VERSION]]",
        help="Agent name, and a version or tag (default: the latest).",
        show_default=False,
    ),
]
Method = Annotated[
    str | None,
    typer.Option("--method", metavar="npm|pip|brew|...", help="Method (default: the usable one).", show_default=False),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.", show_default=False)]
_PLAN_COLUMNS = ("agent", "command", "outcome", "version", "problem")


@with_common_flags
def install(
    context: typer.Context,
    agent: AgentAndVersion = None,
    all_agents: Annotated[
        bool,
        typer.Option("--all", help="Install every agent that is not installed yet.", show_default=False),
    ] = False,
    version: Annotated[
        str | None,
        typer.Option("--version", metavar="VERSION", help="Same as AGENT@VERSION.", show_default=False),
    ] = None,
    method: Method = None,
    force: Annotated[
        bool, typer.Option("--force", help="With --all: install installed agents again.", show_default=False)
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> int:
    """Install an agent with a vendor-supported method.

    The command is shown for confirmation before it runs.
    """
    from agent_mux.agents.provisioning import split_version
    from agent_mux.cli.errors import usage_error

    installer = _installer()
    if all_agents and version is not None:
        raise usage_error("--version cannot be combined with --all")

    def plan_for(given: str) -> "InstallPlan":
        name, named = split_version(given)
        if named is not None and version is not None:
            raise usage_error("give the version after @ or with --version, not both")
        return installer.install(name, version=named or version, method=method, dry_run=True)

    def every() -> "Iterable[str]":
        return (*installer.missing(), *(installer.installed() if force else ()))

    return _run_one_or_all(agent, every if all_agents else None, plan_for, context.obj, dry_run=dry_run, yes=yes)


@with_common_flags
def update(
    context: typer.Context,
    agent: AgentOrAll = None,
    all_agents: Annotated[
        bool, typer.Option("--all", help="Update every installed agent.", show_default=False)
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> int:
    """Update an agent with its installation method or its own command.

    The command is shown for confirmation before it runs.
    """
    installer = _installer()
    plan_for = partial(installer.update, dry_run=True)
    every = installer.installed if all_agents else None
    return _run_one_or_all(agent, every, plan_for, context.obj, dry_run=dry_run, yes=yes)


@with_common_flags
def uninstall(
    context: typer.Context,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="Agent name.", show_default=False)],
    method: Method = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> int:
    """Uninstall an agent with the package manager that installed it.

    Its settings, credentials and sessions are kept. The command is shown for confirmation before it runs.
    """
    return _run_plan(_installer().uninstall(agent, method=method, dry_run=True), context.obj, dry_run=dry_run, yes=yes)


def _installer() -> "Installer":
    from agent_mux.agents.installer import Installer

    return Installer()


def _run_one_or_all(
    agent: str | None,
    every: "Callable[[], Iterable[str]] | None",
    plan_for: "Callable[[str], InstallPlan]",
    invocation: Invocation,
    *,
    dry_run: bool,
    yes: bool,
) -> int:
    """Run the plan of one agent, or those of `every` agent (`--all`). Returns the exit code."""
    from agent_mux.cli.errors import usage_error

    if every is not None and agent is None:
        return _run_all(every(), plan_for, invocation, dry_run=dry_run, yes=yes)
    if every is not None or agent is None:
        raise usage_error("give an AGENT, or --all")
    return _run_plan(plan_for(agent), invocation, dry_run=dry_run, yes=yes)


def _run_all(
    agents: "Iterable[str]",
    plan_for: "Callable[[str], InstallPlan]",
    invocation: Invocation,
    *,
    dry_run: bool,
    yes: bool,
) -> int:
    """Run the plans of several agents after one confirmation. Continue after a failure and report all outcomes."""
    from agent_mux.cli import exit_codes
    from agent_mux.errors import AgentMuxError

    rows: list[dict[str, Any]] = []
    plans: list[InstallPlan] = []
    for agent in agents:
        try:
            plans.append(plan_for(agent))
        except AgentMuxError as error:  # continue with the other agents
            rows.append({"agent": agent, "outcome": "skipped", "code": error.code, "problem": error.message})
    if dry_run:
        rows += [{"agent": plan.agent, "command": plan.command, "outcome": "planned", **_lacks(plan)} for plan in plans]
    elif plans and not yes and not _confirm([plan.command for plan in plans]):
        print_note("nothing was run")
        return exit_codes.OK
    else:
        rows += [_outcome(plan) for plan in plans]
    print_rows(sorted(rows, key=lambda row: row["agent"]), _PLAN_COLUMNS, invocation, empty="nothing to do")
    return exit_codes.GENERAL if any(row["outcome"] == "failed" for row in rows) else exit_codes.OK


def _lacks(plan: "InstallPlan") -> dict[str, str]:
    return {"problem": f"required but not on PATH: {', '.join(plan.missing)}"} if plan.missing else {}


def _outcome(plan: "InstallPlan") -> dict[str, Any]:
    from agent_mux.agents.provisioning import run_install_plan
    from agent_mux.errors import AgentMuxError

    row: dict[str, Any] = {"agent": plan.agent, "command": plan.command}
    try:
        run_install_plan(plan)
    except AgentMuxError as error:
        return {**row, "outcome": "failed", "code": error.code, "problem": error.message}
    return {**row, "outcome": "done", "version": _detect(plan.agent).version}


def _run_plan(plan: "InstallPlan", invocation: Invocation, *, dry_run: bool, yes: bool) -> int:
    from agent_mux.agents.provisioning import check_ready, run_install_plan

    if dry_run:
        return _print_plan(plan, invocation)
    check_ready(plan)
    if not yes and not _confirm([plan.command]):
        print_note("nothing was run")
        return 0
    run_install_plan(plan)
    return _print_result(plan, invocation)


def _print_plan(plan: "InstallPlan", invocation: Invocation) -> int:
    if invocation.json:
        print_json({"agent": plan.agent, "method": plan.kind, "command": plan.command, "missing": list(plan.missing)})
        return 0
    sys.stdout.write(f"{plan.command}\n")
    if plan.missing:
        print_note(f"required but not on PATH: {', '.join(plan.missing)}")
    print_note("nothing was run")
    return 0


def _confirm(commands: list[str]) -> bool:
    from agent_mux.cli.errors import usage_error
    from agent_mux.cli.terminal import is_terminal

    shown = f"`{commands[0]}`" if len(commands) == 1 else f"{len(commands)} commands"
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise usage_error(f"no terminal to ask on; --yes runs {shown}, --dry-run only shows what would run")
    intro = "This command will run:" if len(commands) == 1 else "These commands will run:"
    listed = "".join(f"    {command}\n" for command in commands)
    sys.stderr.write(f"{intro}\n{listed}Continue? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _detect(agent: str) -> "DetectedAgent":
    import anyio

    from agent_mux.agents.detection import Detector
    from agent_mux.sdk.registry import AdapterRegistry

    return anyio.run(Detector(AdapterRegistry()).detect, agent)


def _print_result(plan: "InstallPlan", invocation: Invocation) -> int:
    """Print what is installed now. Removing one of several installations leaves the others."""
    found = _detect(plan.agent)
    if invocation.json:
        print_json({"agent": plan.agent, "command": plan.command, "version": found.version, "path": found.path})
    elif plan.removes:
        rest = f"; another one is still at {found.path}" if found.installed else ""
        print_note(f"{plan.agent} was uninstalled{rest}")
    elif found.installed:
        print_note(f"{plan.agent} {found.version} is installed at {found.path}")
    else:
        print_note(f"installed, but {plan.agent} is not on PATH: open a new shell, or add its directory to PATH")
    return 0
