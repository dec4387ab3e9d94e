"""Options and helpers of the commands that read and change agents' installations."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_mux.cli.command_output import Invocation, print_json, print_note
from agent_mux.cli.errors import usage_error

if TYPE_CHECKING:
    from agent_mux.agents.config.changes import ConfigFileChange
    from agent_mux.agents.installations import InstallationResolver


class ScopeName(StrEnum):
    """Where an agent's setting applies: all work of the user, everyone in the project, or the user in the project."""

    everywhere = "global"
    project = "project"
    local = "local"


class OwnScopeName(StrEnum):
    """Where one of our own files lies: in the global directory or in the project."""

    everywhere = "global"
    project = "project"


AgentName = Annotated[str, typer.Argument(metavar="AGENT", help="Agent name.", show_default=False)]
Scope = Annotated[
    ScopeName, typer.Option("--scope", help="Scope: user, shared project, or private to you in the project.")
]
AnyScope = Annotated[
    ScopeName | None,
    typer.Option("--scope", help="Only this scope (default: all effective ones).", show_default=False),
]
OwnScope = Annotated[
    OwnScopeName | None,
    typer.Option("--scope", help="Scope: ~/.agent-mux, or .agent-mux of the current project.", show_default=False),
]
Cwd = Annotated[
    Path | None, typer.Option("--cwd", help="Project directory (default: current directory).", show_default=False)
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the changes without making them.", show_default=False)]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing entry.", show_default=False)]


def homes_for(cwd: Path | None = None) -> "InstallationResolver":
    """Return the agents' installations as seen from `cwd`. Raise VALIDATION_ERROR if it is not a directory."""
    from agent_mux.agents.installations import InstallationResolver

    if cwd is not None and not cwd.is_dir():
        raise usage_error(f"--cwd {cwd} is not a directory; name an existing one")
    return InstallationResolver(project=cwd)


def scope_value(scope: ScopeName | OwnScopeName | None) -> Any:
    """Return the scope as the library spells it."""
    return None if scope is None else scope.value


def show_change(change: "ConfigFileChange", invocation: Invocation, *, dry_run: bool) -> None:
    """Print a changed path, or with `dry_run` the diff that would be written."""
    from agent_mux.agents.config.changes import diff_without_secrets
    from agent_mux.cli.terminal import one_line, sanitize, shorten_home

    diff = diff_without_secrets(change)
    if invocation.json:
        print_json({"path": str(change.path), "changed": change.is_needed, "dryRun": dry_run, "diff": diff})
    elif dry_run:
        sys.stdout.write("".join(f"{sanitize(shorten_home(line))}\n" for line in diff.splitlines()))
        print_note(f"{one_line(str(change.path), 1000)}: {'nothing written' if diff else 'nothing to do'}")
    else:
        print_note(f"{one_line(str(change.path), 1000)}: {'changed' if change.is_needed else 'nothing to do'}")
