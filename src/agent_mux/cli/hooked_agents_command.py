"""`amux hooks install` and what belongs to it: agents that have hooks of their own call us."""

from typing import TYPE_CHECKING, Annotated

import typer

from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.home_options import AgentName, DryRun, Scope, ScopeName, show_change
from agent_mux.cli.hook_options import Cwd, client_for
from agent_mux.cli.json_output import say
from agent_mux.cli.options import ConfigDir

if TYPE_CHECKING:
    from agent_mux.config.editing import Change


Types = Annotated[
    list[str] | None, typer.Option("--type", "-t", help="Only these hooks, as pre_tool_use.", show_default=False)
]


@with_common_flags
def install(
    context: typer.Context,
    agent: AgentName,
    scope: Scope = ScopeName.everywhere,
    types: Types = None,
    dry_run: DryRun = False,
    cwd: Cwd = None,
    config_dir: ConfigDir = None,
) -> int:
    """Tell an agent to call us, in its own configuration."""
    client = client_for(cwd, config_dir)
    change = client.install(agent, scope=scope.value, types=types or (), dry_run=dry_run)
    consent = client.status(agent)[0].consent
    return _show_change(context, agent, change, "calls us", dry_run=dry_run, consent=consent)


@with_common_flags
def uninstall(
    context: typer.Context,
    agent: AgentName,
    scope: Scope = ScopeName.everywhere,
    types: Types = None,
    dry_run: DryRun = False,
    cwd: Cwd = None,
    config_dir: ConfigDir = None,
) -> int:
    """Tell an agent to call us no more. What somebody else wrote stays."""
    change = client_for(cwd, config_dir).uninstall(agent, scope=scope.value, types=types or (), dry_run=dry_run)
    return _show_change(context, agent, change, "calls us no more", dry_run=dry_run, consent=None)


@with_common_flags
def status(
    context: typer.Context,
    agent: Annotated[str | None, typer.Argument(metavar="[AGENT]", help="Only this one.", show_default=False)] = None,
    cwd: Cwd = None,
    config_dir: ConfigDir = None,
) -> int:
    """Show which agents call us, and where that is written."""
    from agent_mux.cli.tables import print_rows

    as_json = context.obj.json
    rows = [
        {
            "agent": one.agent,
            "kind": one.kind,
            "types": list(one.types),
            "installed": {str(path): list(types) for path, types in one.installed.items()}
            if as_json
            else [str(path) for path in one.installed],
            "consent": one.consent,
        }
        for one in client_for(cwd, config_dir).status(agent)
    ]
    print_rows(rows, ("agent", "kind", "installed", "consent"), context.obj)
    return 0


def handle(
    context: typer.Context,
    agent: AgentName,
    hook_type: Annotated[str, typer.Argument(metavar="TYPE", help="As pre_tool_use.", show_default=False)],
    config_dir: ConfigDir = None,
) -> int:
    """Answer an agent that calls us: `amux hooks AGENT handle TYPE`. Agents say this, people seldom do.

    What happens is read from standard input; the answer is in the agent's own format, and so is the exit code.
    """
    from agent_mux.cli.hook_answer import answer_hook

    return answer_hook(agent, hook_type, config_dir, context.obj)


def _show_change(
    context: typer.Context, agent: str, change: "Change", what: str, *, dry_run: bool, consent: str | None
) -> int:
    show_change(change, context.obj, dry_run=dry_run)
    if not context.obj.json and not dry_run:
        say(f"{agent} {what}{'' if change.is_needed else ' already'}")
        if consent is not None:
            say(consent)
    return 0
