"""`amux hooks install` and what belongs to it: agents that have hooks of their own call us."""

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from agent_mux.cli.hook_options import Cwd, client_for
from agent_mux.cli.options import ConfigDir, with_common_flags

if TYPE_CHECKING:
    from agent_mux.hooks.installing import FileChange


class FileScope(StrEnum):
    """For all of a user's work, for all who work on the project, or for one user's work on it."""

    everywhere = "global"
    project = "project"
    local = "local"


AgentName = Annotated[str, typer.Argument(metavar="AGENT", help="Registered name, or alias.", show_default=False)]
Scoped = Annotated[FileScope, typer.Option("--scope", help="Which of the agent's files.")]
Types = Annotated[
    list[str] | None, typer.Option("--type", "-t", help="Only these hooks, as pre_tool_use.", show_default=False)
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change.", show_default=False)]


@with_common_flags
def install(
    context: typer.Context,
    agent: AgentName,
    scope: Scoped = FileScope.everywhere,
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
    scope: Scoped = FileScope.everywhere,
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
    context: typer.Context, agent: str, change: "FileChange", what: str, *, dry_run: bool, consent: str | None
) -> int:
    from agent_mux.cli.json_output import envelope
    from agent_mux.cli.terminal import one_line, sanitize
    from agent_mux.redaction import redact_text

    diff, is_changed = redact_text(change.diff()), change.before != change.after
    if context.obj.json:
        data = {"path": str(change.path), "changed": is_changed, "dryRun": dry_run, "diff": diff, "consent": consent}
        sys.stdout.write(envelope(data) + "\n")
        return 0
    if dry_run:
        sys.stdout.write(sanitize(diff) or "nothing would change\n")
        return 0
    again = "" if is_changed else " already"
    sys.stderr.write(f"{one_line(f'{agent} {what}{again}: {change.path}', 1000)}\n")
    if consent is not None:
        sys.stderr.write(f"{consent}\n")
    return 0
