"""`amux plugin`: plugins of the agents, by the agents' own commands."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.home_options import AgentName, Cwd, DryRun, homes_for
from agent_mux.cli.json_output import Invocation, print_json, say
from agent_mux.cli.progress import progress
from agent_mux.cli.tables import print_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_mux.plugins.client import PluginChange, Plugins
    from agent_mux.plugins.commands import Plugin

plugin = typer.Typer(help="Plugins of the agents, by their own commands.", no_args_is_help=True)
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="As the agent knows it: a name, a package, a path.", show_default=False)
]
_COLUMNS = ("name", "version", "enabled", "source", "description")


@plugin.command("list")
@with_common_flags
def list_plugins(context: typer.Context, agent: AgentName, cwd: Cwd = None) -> int:
    """Show the plugins that an agent has."""
    with progress(f"{agent} lists its plugins"):
        found = _plugins(cwd).list(agent)
    print_rows(_rows(found), _COLUMNS, context.obj, empty=f"{agent} has no plugin")
    return 0


@plugin.command("search")
@with_common_flags
def search(
    context: typer.Context,
    agent: AgentName,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to look for.", show_default=False)],
    cwd: Cwd = None,
) -> int:
    """Show the plugins that an agent could install."""
    with progress(f"{agent} looks for plugins"):
        found = _plugins(cwd).search(agent, text)
    print_rows(_rows(found), _COLUMNS, context.obj, empty="none is found")
    return 0


@plugin.command("install")
@with_common_flags
def install(context: typer.Context, agent: AgentName, name: Name, cwd: Cwd = None, dry_run: DryRun = False) -> int:
    """Let an agent install a plugin."""
    with progress(f"{agent} installs"):
        done = _plugins(cwd).install(agent, name, dry_run=dry_run)
    return _show(done, context.obj)


@plugin.command("uninstall")
@with_common_flags
def uninstall(context: typer.Context, agent: AgentName, name: Name, cwd: Cwd = None, dry_run: DryRun = False) -> int:
    """Let an agent remove a plugin."""
    with progress(f"{agent} removes"):
        done = _plugins(cwd).uninstall(agent, name, dry_run=dry_run)
    return _show(done, context.obj)


@plugin.command("update")
@with_common_flags
def update(
    context: typer.Context,
    agent: AgentName,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Default: all, where the agent can.", show_default=False)
    ] = None,
    cwd: Cwd = None,
    dry_run: DryRun = False,
) -> int:
    """Let an agent update a plugin, or all of them."""
    with progress(f"{agent} updates"):
        done = _plugins(cwd).update(agent, name, dry_run=dry_run)
    return _show(done, context.obj)


def _plugins(cwd: Path | None) -> "Plugins":
    from agent_mux.plugins.client import Plugins

    return Plugins(homes_for(cwd))


def _rows(found: "Sequence[Plugin]") -> list[dict[str, Any]]:
    return [
        {
            "name": one.name,
            "version": one.version,
            "enabled": one.enabled,
            "source": one.source,
            "description": one.description,
        }
        for one in found
    ]


def _show(done: "PluginChange", invocation: Invocation) -> int:
    from agent_mux.cli.terminal import sanitize
    from agent_mux.redaction import redact_text

    answer = done.answer
    if invocation.json:
        said = None if answer is None else redact_text(answer.stdout)
        print_json({"agent": done.agent, "command": list(done.argv), "dryRun": answer is None, "output": said})
    elif answer is None:
        sys.stdout.write(f"{shlex.join(done.argv)}\n")
        say("nothing was run")
    else:
        said = redact_text(answer.stdout + answer.stderr)
        sys.stderr.write("".join(f"{sanitize(line)}\n" for line in said.splitlines()))
    return 0
