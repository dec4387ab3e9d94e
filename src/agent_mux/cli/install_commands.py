"""`amux install` and `amux update`: what would be run is shown first."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.home_options import AgentName, DryRun
from agent_mux.cli.json_output import Invocation, print_json, say

if TYPE_CHECKING:
    from agent_mux.install.plan import InstallPlan

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask first.", show_default=False)]


@with_common_flags
def install(
    context: typer.Context,
    agent: AgentName,
    method: Annotated[
        str | None,
        typer.Option(
            "--method", metavar="npm|pip|brew|...", help="Default: the first that can work.", show_default=False
        ),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> int:
    """Install an agent by a way that its makers name. What would be run is shown first, and asked."""
    import os

    from agent_mux.install.plan import plan_install
    from agent_mux.registry import AdapterRegistry

    adapter = AdapterRegistry().get(agent)
    return _carry_out(plan_install(adapter, os.environ, kind=method), context.obj, dry_run=dry_run, yes=yes)


@with_common_flags
def update(context: typer.Context, agent: AgentName, dry_run: DryRun = False, yes: Yes = False) -> int:
    """Update an agent: as it was installed, or by its own command. What would be run is shown first, and asked."""
    import os

    from agent_mux.install.plan import plan_update
    from agent_mux.registry import AdapterRegistry

    return _carry_out(plan_update(AdapterRegistry().get(agent), os.environ), context.obj, dry_run=dry_run, yes=yes)


def _carry_out(plan: "InstallPlan", invocation: Invocation, *, dry_run: bool, yes: bool) -> int:
    from agent_mux.install.installing import carry_out
    from agent_mux.install.plan import check_ready

    if dry_run:
        return _show(plan, invocation)
    check_ready(plan)
    if not yes and not _agreed(plan):
        say("nothing was run")
        return 0
    carry_out(plan)
    return _tell_version(plan, invocation)


def _show(plan: "InstallPlan", invocation: Invocation) -> int:
    if invocation.json:
        print_json({"agent": plan.agent, "method": plan.kind, "command": plan.command, "missing": list(plan.missing)})
        return 0
    sys.stdout.write(f"{plan.command}\n")
    if plan.missing:
        say(f"not on PATH, and needed: {', '.join(plan.missing)}")
    say("nothing was run")
    return 0


def _agreed(plan: "InstallPlan") -> bool:
    from agent_mux.cli.errors import bad_input
    from agent_mux.cli.terminal import is_terminal

    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise bad_input(f"nobody can be asked here; --yes runs `{plan.command}`, --dry-run only shows it")
    sys.stderr.write(f"This will be run:\n    {plan.command}\nGo on? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _tell_version(plan: "InstallPlan", invocation: Invocation) -> int:
    import anyio

    from agent_mux.detection import Detector
    from agent_mux.registry import AdapterRegistry

    found = anyio.run(Detector(AdapterRegistry()).detect, plan.agent)
    if invocation.json:
        print_json({"agent": plan.agent, "command": plan.command, "version": found.version, "path": found.path})
    elif found.installed:
        say(f"{plan.agent} {found.version} is at {found.path}")
    else:
        say(f"done, but {plan.agent} is not on PATH yet: open a new shell, or add the directory it was put into")
    return 0
