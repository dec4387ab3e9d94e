"""`amux skills`, `amux subagents` and `amux plugins`: what extends the agents.

Skills and sub-agents are files in the agents' folders and share their commands; plugins are managed by the agents' own
commands.
"""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_mux.cli.command_output import Invocation, print_json, print_note, print_rows
from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.installation_options import (
    AgentName,
    AnyScope,
    Cwd,
    DryRun,
    Force,
    Scope,
    ScopeName,
    homes_for,
    scope_value,
)
from agent_mux.cli.terminal import progress

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_mux.agents.definitions import DefinitionChange, Definitions
    from agent_mux.agents.plugins import PluginChange, Plugins
    from agent_mux.sdk.installation import Plugin


DefinitionName = Annotated[str, typer.Argument(metavar="NAME", help="Definition name.", show_default=False)]
DefinitionSource = Annotated[
    Path, typer.Argument(metavar="SOURCE", help="Folder with its main file, or a single file.", show_default=False)
]


def commands_for(kind: str, what: str) -> typer.Typer:
    """Build the command group for one kind: `skills` or `subagents`."""
    group = typer.Typer(help=f"{what.capitalize()}s in the agents' folders.", no_args_is_help=True)

    @group.command("list", help=f"List the {what}s that an agent finds, with the reason for each that it rejects.")
    @with_common_flags
    def list_them(context: typer.Context, agent: AgentName, scope: AnyScope = None, cwd: Cwd = None) -> int:
        found = _definitions(kind, cwd).list(agent, scope=scope_value(scope))
        rows = [
            {
                "name": one.name,
                "scope": one.scope,
                "shared": one.is_shared or None,
                "description": one.description,
                "problem": one.problem,
                "path": str(one.path),
            }
            for one in found
        ]
        print_rows(rows, ("name", "scope", "description", "problem", "path"), context.obj, empty=f"no {what}s")
        return 0

    @group.command(
        "add", help=f"Copy a {what} into an agent's folder. An existing one is kept unless --force is given."
    )
    @with_common_flags
    def add(
        context: typer.Context,
        agent: AgentName,
        source: DefinitionSource,
        name: Annotated[
            str | None, typer.Option("--name", help="New name (default: its own).", show_default=False)
        ] = None,
        scope: Scope = ScopeName.everywhere,
        cwd: Cwd = None,
        force: Force = False,
        dry_run: DryRun = False,
    ) -> int:
        done = _definitions(kind, cwd).add(
            agent, source, name=name, scope=scope_value(scope), force=force, dry_run=dry_run
        )
        return _print_placement(done, context.obj, dry_run=dry_run)

    @group.command("remove", help=f"Remove a {what} and all its files from an agent's own folder.")
    @with_common_flags
    def remove(
        context: typer.Context,
        agent: AgentName,
        name: DefinitionName,
        scope: AnyScope = None,
        cwd: Cwd = None,
        dry_run: DryRun = False,
    ) -> int:
        return _print_placement(
            _definitions(kind, cwd).remove(agent, name, scope=scope_value(scope), dry_run=dry_run),
            context.obj,
            dry_run=dry_run,
        )

    @group.command("where", help=f"List the folders that an agent searches for {what}s.")
    @with_common_flags
    def where(context: typer.Context, agent: AgentName, cwd: Cwd = None) -> int:
        rows: list[dict[str, Any]] = [
            {"scope": folder.scope, "path": str(path), "exists": path.is_dir(), "shared": folder.is_shared or None}
            for folder, path in _definitions(kind, cwd).where(agent)
        ]
        print_rows(rows, ("scope", "path", "exists", "shared"), context.obj)
        return 0

    @group.command("agents", help=f"List the agents that have folders for {what}s.")
    @with_common_flags
    def agents(context: typer.Context, cwd: Cwd = None) -> int:
        definitions = _definitions(kind, cwd)
        rows = [
            {"agent": agent, "folders": [str(path) for _, path in definitions.where(agent)]}
            for agent in definitions.agents()
        ]
        print_rows(rows, ("agent", "folders"), context.obj)
        return 0

    return group


def _definitions(kind: str, cwd: Path | None) -> "Definitions":
    from agent_mux.agents import definitions

    return definitions.skills(homes_for(cwd)) if kind == "skills" else definitions.subagents(homes_for(cwd))


def _print_placement(done: "DefinitionChange", invocation: Invocation, *, dry_run: bool) -> int:
    from agent_mux.cli.terminal import one_line

    files = [str(file) for file in done.files if file != Path()]
    if invocation.json:
        what = {
            "name": done.name,
            "target": str(done.target),
            "files": files,
            "replaces": done.replaces,
            "removed": done.source is None,
            "dryRun": dry_run,
        }
        print_json(what)
        return 0
    verb = "removed" if done.source is None else "replaced" if done.replaces else "added"
    count = f" ({len(files)} files)" if len(files) > 1 else ""
    print_note(f"{'would be ' if dry_run else ''}{verb}: {one_line(str(done.target), 1000)}{count}")
    return 0


plugin = typer.Typer(help="Plugins, managed by the agents' own commands.", no_args_is_help=True)
PluginName = Annotated[
    str,
    typer.Argument(metavar="NAME", help="Plugin name, package or path, as the agent accepts it.", show_default=False),
]
_PLUGIN_COLUMNS = ("name", "version", "enabled", "source", "description")


@plugin.command("list")
@with_common_flags
def list_plugins(context: typer.Context, agent: AgentName, cwd: Cwd = None) -> int:
    """List the plugins of an agent."""
    with progress(f"listing plugins of {agent}"):
        found = _plugins(cwd).list(agent)
    print_rows(_plugin_rows(found), _PLUGIN_COLUMNS, context.obj, empty=f"{agent} has no plugins")
    return 0


@plugin.command("search")
@with_common_flags
def search(
    context: typer.Context,
    agent: AgentName,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Search text.", show_default=False)],
    cwd: Cwd = None,
) -> int:
    """Search for plugins that an agent can install."""
    with progress(f"searching plugins for {agent}"):
        found = _plugins(cwd).search(agent, text)
    print_rows(_plugin_rows(found), _PLUGIN_COLUMNS, context.obj, empty="no plugins found")
    return 0


@plugin.command("browse")
@with_common_flags
def browse(context: typer.Context, agent: AgentName, cwd: Cwd = None) -> int:
    """List all plugins of an agent's catalogs."""
    with progress(f"reading the catalogs of {agent}"):
        found = _plugins(cwd).browse(agent)
    print_rows(_plugin_rows(found), _PLUGIN_COLUMNS, context.obj, empty="no plugins found")
    return 0


@plugin.command("show")
@with_common_flags
def info(
    context: typer.Context,
    agent: AgentName,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Plugin name, as in its list.", show_default=False)],
    cwd: Cwd = None,
) -> int:
    """Show what an agent reports about one plugin, installed or available."""
    from dataclasses import asdict

    with progress(f"reading plugins of {agent}"):
        found = _plugins(cwd).info(agent, name)
    if context.obj.json:
        print_json(asdict(found))
        return 0
    rows = [
        {"property": f"{word}: {key}", "value": value}
        for word, entry in (("installed", found.installed), ("available", found.available))
        if entry is not None
        for key, value in _plugin_properties(entry)
    ]
    print_rows(rows, ("property", "value"), context.obj)
    return 0


def _plugin_properties(one: "Plugin") -> "list[tuple[str, Any]]":
    known = {**_plugin_rows([one])[0], **one.extra}
    return [(key, value) for key, value in known.items() if value not in (None, "", [], {})]


@plugin.command("install")
@with_common_flags
def install(
    context: typer.Context, agent: AgentName, name: PluginName, cwd: Cwd = None, dry_run: DryRun = False
) -> int:
    """Install a plugin with the agent's own command."""
    with progress(f"installing with {agent}"):
        done = _plugins(cwd).install(agent, name, dry_run=dry_run)
    return _print_plugin_change(done, context.obj)


@plugin.command("uninstall")
@with_common_flags
def uninstall(
    context: typer.Context, agent: AgentName, name: PluginName, cwd: Cwd = None, dry_run: DryRun = False
) -> int:
    """Remove a plugin with the agent's own command."""
    with progress(f"removing with {agent}"):
        done = _plugins(cwd).uninstall(agent, name, dry_run=dry_run)
    return _print_plugin_change(done, context.obj)


@plugin.command("update")
@with_common_flags
def update(
    context: typer.Context,
    agent: AgentName,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="Plugin name (default: all, if the agent supports it).", show_default=False
        ),
    ] = None,
    cwd: Cwd = None,
    dry_run: DryRun = False,
) -> int:
    """Update one plugin or all plugins with the agent's own command."""
    with progress(f"updating with {agent}"):
        done = _plugins(cwd).update(agent, name, dry_run=dry_run)
    return _print_plugin_change(done, context.obj)


def _plugins(cwd: Path | None) -> "Plugins":
    from agent_mux.agents.plugins import Plugins

    return Plugins(homes_for(cwd))


def _plugin_rows(found: "Sequence[Plugin]") -> list[dict[str, Any]]:
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


def _print_plugin_change(done: "PluginChange", invocation: Invocation) -> int:
    from agent_mux.cli.terminal import sanitize
    from agent_mux.redaction import redact_text

    answer = done.answer
    if invocation.json:
        output = None if answer is None else redact_text(answer.stdout)
        print_json({"agent": done.agent, "command": list(done.argv), "dryRun": answer is None, "output": output})
    elif answer is None:
        sys.stdout.write(f"{shlex.join(done.argv)}\n")
        print_note("nothing was run")
    else:
        output = redact_text(answer.stdout + answer.stderr)
        sys.stderr.write("".join(f"{sanitize(line)}\n" for line in output.splitlines()))
    return 0
