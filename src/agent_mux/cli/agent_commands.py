"""`amux adapters`, `detect-host`, `capabilities`, `install`, `update` and `auth`: the agents on this machine."""

import sys
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from agent_mux.cli.command_output import Invocation, print_json, print_note, print_rows
from agent_mux.cli.decorators import with_common_flags, with_service_flags
from agent_mux.cli.installation_options import AgentName, DryRun, homes_for
from agent_mux.cli.options import agent_names

if TYPE_CHECKING:
    from agent_mux.agents.auth import AuthState
    from agent_mux.agents.provisioning import InstallPlan
    from agent_mux.cli.command_output import ServiceEndpoint
    from agent_mux.sdk.installation import SetupStep


adapters = typer.Typer(help="Agents that amux can drive.", no_args_is_help=True)


@adapters.command("list")
@with_common_flags
@with_service_flags
def list_adapters(context: typer.Context) -> int:
    """List all adapters, with protocols and tested versions."""
    import msgspec

    from agent_mux.api.agents import known_agents
    from agent_mux.sdk.registry import AdapterRegistry

    service: ServiceEndpoint | None = context.obj.service
    known = AdapterRegistry() if service is None else cast("AdapterRegistry", service.client().adapters)
    rows = [msgspec.to_builtins(view) for view in known_agents(known)]
    print_rows(rows, ("agent", "displayName", "protocols", "testedVersion", "problem"), context.obj)
    return 0


@adapters.command("detect")
@with_common_flags
@with_service_flags
def detect(
    context: typer.Context,
    agent: Annotated[
        str | None,
        typer.Argument(metavar="[AGENT]", help="Agent (default: all).", show_default=False, autocompletion=agent_names),
    ] = None,
) -> int:
    """Find installed agents and print their versions."""
    import anyio
    import msgspec

    from agent_mux.agents.detection import Detector
    from agent_mux.api.agents import detected_view
    from agent_mux.cli.terminal import progress
    from agent_mux.sdk.registry import AdapterRegistry

    service: ServiceEndpoint | None = context.obj.service
    detector = Detector(AdapterRegistry()) if service is None else service.client().detector
    with progress("reading versions"):
        found = anyio.run(detector.detect_all) if agent is None else [anyio.run(detector.detect, agent)]
    rows = [msgspec.to_builtins(detected_view(one)) for one in found]
    print_rows(rows, ("agent", "installed", "version", "versionState", "path", "problem"), context.obj)
    return 0


@with_common_flags
def detect_host(context: typer.Context) -> int:
    """Report which agent or CI system runs this process.

    They are recognized by their environment variables.
    """
    import os

    from agent_mux.agents.detection import detect_hosts
    from agent_mux.sdk.registry import AdapterRegistry

    rows = [asdict(host) for host in detect_hosts(AdapterRegistry(), os.environ)]
    print_rows(rows, ("kind", "name", "variable"), context.obj, empty="no agent or CI system runs this process")
    return 0


@with_common_flags
def capabilities(context: typer.Context, agent: AgentName) -> int:
    """Show what an agent can do, as proven by recordings and live tests."""
    from agent_mux.api.agents import capabilities_json, capabilities_of
    from agent_mux.sdk.registry import AdapterRegistry

    adapter = AdapterRegistry().get(agent)
    if context.obj.json:
        print_json(capabilities_json(adapter))
        return 0
    known = capabilities_of(adapter)
    events = known.pop("emits")
    known["emits"] = f"{len(events)} event types"
    rows = [{"capability": name.replace("_", " "), "value": value} for name, value in known.items() if value != []]
    print_rows(rows, ("capability", "value"), context.obj)
    return 0


Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.", show_default=False)]


@with_common_flags
def install(
    context: typer.Context,
    agent: AgentName,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            metavar="npm|pip|brew|...",
            help="Installation method (default: first usable).",
            show_default=False,
        ),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> int:
    """Install an agent with a vendor-supported method.

    The command is shown for confirmation before it runs.
    """
    import os

    from agent_mux.agents.provisioning import plan_install
    from agent_mux.sdk.registry import AdapterRegistry

    adapter = AdapterRegistry().get(agent)
    return _run_plan(plan_install(adapter, os.environ, kind=method), context.obj, dry_run=dry_run, yes=yes)


@with_common_flags
def update(context: typer.Context, agent: AgentName, dry_run: DryRun = False, yes: Yes = False) -> int:
    """Update an agent with its installation method or its own command.

    The command is shown for confirmation before it runs.
    """
    import os

    from agent_mux.agents.provisioning import plan_update
    from agent_mux.sdk.registry import AdapterRegistry

    return _run_plan(plan_update(AdapterRegistry().get(agent), os.environ), context.obj, dry_run=dry_run, yes=yes)


def _run_plan(plan: "InstallPlan", invocation: Invocation, *, dry_run: bool, yes: bool) -> int:
    from agent_mux.agents.provisioning import check_ready, run_install_plan

    if dry_run:
        return _print_plan(plan, invocation)
    check_ready(plan)
    if not yes and not _confirm(plan):
        print_note("nothing was run")
        return 0
    run_install_plan(plan)
    return _print_version(plan, invocation)


def _print_plan(plan: "InstallPlan", invocation: Invocation) -> int:
    if invocation.json:
        print_json({"agent": plan.agent, "method": plan.kind, "command": plan.command, "missing": list(plan.missing)})
        return 0
    sys.stdout.write(f"{plan.command}\n")
    if plan.missing:
        print_note(f"required but not on PATH: {', '.join(plan.missing)}")
    print_note("nothing was run")
    return 0


def _confirm(plan: "InstallPlan") -> bool:
    from agent_mux.cli.errors import usage_error
    from agent_mux.cli.terminal import is_terminal

    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise usage_error(f"no terminal to ask on; --yes runs `{plan.command}`, --dry-run only shows it")
    sys.stderr.write(f"This command will run:\n    {plan.command}\nContinue? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _print_version(plan: "InstallPlan", invocation: Invocation) -> int:
    import anyio

    from agent_mux.agents.detection import Detector
    from agent_mux.sdk.registry import AdapterRegistry

    found = anyio.run(Detector(AdapterRegistry()).detect, plan.agent)
    if invocation.json:
        print_json({"agent": plan.agent, "command": plan.command, "version": found.version, "path": found.path})
    elif found.installed:
        print_note(f"{plan.agent} {found.version} is installed at {found.path}")
    else:
        print_note(f"installed, but {plan.agent} is not on PATH: open a new shell, or add its directory to PATH")
    return 0


auth = typer.Typer(help="Credentials of the agents; never prints secrets.", no_args_is_help=True)


@auth.command("check")
@with_common_flags
def check_auth(
    context: typer.Context,
    agent: Annotated[
        str | None,
        typer.Argument(metavar="[AGENT]", help="Agent (default: all).", show_default=False, autocompletion=agent_names),
    ] = None,
) -> int:
    """Check for credentials in environment variables and files.

    Uses no network, opens no keyring and prints no secrets. For a single agent, the exit code is 5 if it has no
    credentials.
    """
    from agent_mux.agents.auth import Auth
    from agent_mux.cli.exit_codes import for_error

    looked = Auth(homes_for())
    states = looked.check_all() if agent is None else [looked.check(agent)]
    rows = [_auth_row(state, for_people=not context.obj.json) for state in states]
    print_rows(rows, ("agent", "status", "method", "where", "expires", "problem"), context.obj)
    is_lacking = agent is not None and states[0].status in {"unauthenticated", "expired"}
    return for_error("AUTH_ERROR") if is_lacking else 0


@auth.command("setup")
@with_common_flags
def show_auth_setup(context: typer.Context, agent: AgentName) -> int:
    """Show how to authenticate an agent; one of the listed ways is enough."""
    import sys

    from agent_mux.agents.auth import Auth
    from agent_mux.cli.terminal import sanitize
    from agent_mux.sdk.registry import AdapterRegistry

    steps = Auth(homes_for()).setup(agent)
    program = AdapterRegistry().get(agent).executables[0]
    rows = [_setup_step(step, program) for step in steps]
    if context.obj.json:
        print_json(rows)
        return 0
    for step in rows:
        command = step.get("command") or (f"export {step['variable']}=..." if step.get("variable") else "")
        sys.stdout.write(sanitize(f"{step['text']}\n") + (f"    {command}\n" if command else ""))
    return 0


def _auth_row(state: "AuthState", *, for_people: bool) -> dict[str, Any]:
    expires = state.expires_at
    row = {
        "agent": state.agent,
        "status": state.status,
        "method": state.method,
        "where": state.where,
        "problem": state.problem,
    }
    if for_people:
        moment = None if expires is None else datetime.fromtimestamp(expires / 1000).astimezone()
        return {**row, "expires": None if moment is None else f"{moment:%Y-%m-%d %H:%M}"}
    return {**row, "expiresAt": expires}


def _setup_step(step: "SetupStep", program: str) -> dict[str, Any]:
    command = " ".join((program, *step.command)) if step.command else None
    return {"text": step.text, "command": command, "variable": step.variable}
