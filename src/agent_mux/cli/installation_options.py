"""What the commands about the agents' homes have in common."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_mux.cli.command_output import Invocation, print_json, print_note
from agent_mux.cli.errors import usage_error
from agent_mux.cli.options import agent_names

if TYPE_CHECKING:
    from agent_mux.config.editing import Change
    from agent_mux.homes import Homes


class ScopeName(StrEnum):
    """For all of a user's work; for all who work on the project; for one user's work on it."""

    everywhere = "global"
    project = "project"
    local = "local"


class OwnScopeName(StrEnum):
    """Of our own files: for all of a user's work, or for the project here."""

    everywhere = "global"
    project = "project"


AgentName = Annotated[
    str, typer.Argument(metavar="AGENT", help="The agent.", show_default=False, autocompletion=agent_names)
]
Scope = Annotated[
    ScopeName, typer.Option("--scope", help="For all of your work, for the project, or for yours on the project.")
]
AnyScope = Annotated[
    ScopeName | None,
    typer.Option("--scope", help="Only this one; default: all that count.", show_default=False),
]
OwnScope = Annotated[
    OwnScopeName | None,
    typer.Option("--scope", help="~/.agent-mux, or .agent-mux of the project here.", show_default=False),
]
Cwd = Annotated[
    Path | None, typer.Option("--cwd", help="The project's directory; default: the current one.", show_default=False)
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.", show_default=False)]
Force = Annotated[bool, typer.Option("--force", help="Replace what is there.", show_default=False)]


def homes_for(cwd: Path | None = None) -> "Homes":
    """Where the agents keep things here."""
    from agent_mux.homes import Homes

    if cwd is not None and not cwd.is_dir():
        raise usage_error(f"--cwd {cwd} is no directory")
    return Homes(project=cwd)


def scope_value(scope: ScopeName | OwnScopeName | None) -> Any:
    """As the library calls it."""
    return None if scope is None else scope.value


def show_change(change: "Change", invocation: Invocation, *, dry_run: bool) -> None:
    """What was done to a file: a sentence for people; what would be done: the difference."""
    from agent_mux.cli.terminal import one_line, sanitize, shorten_home
    from agent_mux.config.hiding import hidden_diff

    diff = hidden_diff(change)
    if invocation.json:
        print_json({"path": str(change.path), "changed": change.is_needed, "dryRun": dry_run, "diff": diff})
    elif dry_run:
        sys.stdout.write("".join(f"{sanitize(shorten_home(line))}\n" for line in diff.splitlines()))
        print_note(f"{one_line(str(change.path), 1000)}: {'nothing was written' if diff else 'nothing to do'}")
    else:
        print_note(f"{one_line(str(change.path), 1000)}: {'changed' if change.is_needed else 'nothing to do'}")
