"""`amux auth`: who is authenticated, and how one gets there."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.home_options import AgentName, homes_for
from agent_mux.cli.json_output import print_json
from agent_mux.cli.options import agent_names
from agent_mux.cli.tables import print_rows

if TYPE_CHECKING:
    from agent_mux.auth.client import AuthState
    from agent_mux.auth.methods import SetupStep

auth = typer.Typer(help="The agents' credentials: found, never shown.", no_args_is_help=True)


@auth.command("check")
@with_common_flags
def check(
    context: typer.Context,
    agent: Annotated[
        str | None,
        typer.Argument(metavar="[AGENT]", help="Default: all.", show_default=False, autocompletion=agent_names),
    ] = None,
) -> int:
    """Look for credentials in variables and files. No network is used, no keyring opened, nothing shown of them.

    For one agent, the exit code is 5 where it has none.
    """
    from agent_mux.auth.client import Auth
    from agent_mux.cli.exit_codes import of_error

    looked = Auth(homes_for())
    states = looked.check_all() if agent is None else [looked.check(agent)]
    rows = [_row(state, for_people=not context.obj.json) for state in states]
    print_rows(rows, ("agent", "status", "method", "where", "expires", "problem"), context.obj)
    is_lacking = agent is not None and states[0].status in {"unauthenticated", "expired"}
    return of_error("AUTH_ERROR") if is_lacking else 0


@auth.command("setup")
@with_common_flags
def setup(context: typer.Context, agent: AgentName) -> int:
    """Say what a person can do so that an agent is authenticated: one of these is enough."""
    import sys

    from agent_mux.auth.client import Auth
    from agent_mux.cli.terminal import sanitize
    from agent_mux.registry import AdapterRegistry

    steps = Auth(homes_for()).setup(agent)
    program = AdapterRegistry().get(agent).executables[0]
    told = [_step(step, program) for step in steps]
    if context.obj.json:
        print_json(told)
        return 0
    for step in told:
        command = step.get("command") or (f"export {step['variable']}=..." if step.get("variable") else "")
        sys.stdout.write(sanitize(f"{step['text']}\n") + (f"    {command}\n" if command else ""))
    return 0


def _row(state: "AuthState", *, for_people: bool) -> dict[str, Any]:
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


def _step(step: "SetupStep", program: str) -> dict[str, Any]:
    command = " ".join((program, *step.command)) if step.command else None
    return {"text": step.text, "command": command, "variable": step.variable}
