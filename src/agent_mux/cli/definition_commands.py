"""`amux skill` and `amux agent`: skills and sub-agents in the agents' folders. The same commands for both."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.home_options import AgentName, AnyScope, Cwd, DryRun, Force, Scope, ScopeName, homes_for, scope_of
from agent_mux.cli.json_output import Invocation, print_json, say
from agent_mux.cli.tables import print_rows

if TYPE_CHECKING:
    from agent_mux.definitions.client import Definitions, Placement

Name = Annotated[str, typer.Argument(metavar="NAME", help="Its name.", show_default=False)]
Source = Annotated[
    Path, typer.Argument(metavar="SOURCE", help="The folder with its main file, or the file.", show_default=False)
]


def commands_for(kind: str, what: str) -> typer.Typer:
    """The group of commands for one kind: `skills` or `subagents`."""
    group = typer.Typer(help=f"The agents' {what}s: files in folders.", no_args_is_help=True)

    @group.command("list", help=f"Show the {what}s that an agent finds; also those that it will not take, and why.")
    @with_common_flags
    def list_them(context: typer.Context, agent: AgentName, scope: AnyScope = None, cwd: Cwd = None) -> int:
        found = _definitions(kind, cwd).list(agent, scope=scope_of(scope))
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
        print_rows(rows, ("name", "scope", "description", "problem", "path"), context.obj, empty=f"no {what}")
        return 0

    @group.command("add", help=f"Copy a {what} into an agent's folder. It is refused where there is one of its name.")
    @with_common_flags
    def add(
        context: typer.Context,
        agent: AgentName,
        source: Source,
        name: Annotated[
            str | None, typer.Option("--name", help="Another name than its own.", show_default=False)
        ] = None,
        scope: Scope = ScopeName.everywhere,
        cwd: Cwd = None,
        force: Force = False,
        dry_run: DryRun = False,
    ) -> int:
        done = _definitions(kind, cwd).add(
            agent, source, name=name, scope=scope_of(scope), force=force, dry_run=dry_run
        )
        return _show(done, context.obj, dry_run=dry_run)

    @group.command("remove", help=f"Remove a {what} from an agent's own folder, all its files.")
    @with_common_flags
    def remove(
        context: typer.Context,
        agent: AgentName,
        name: Name,
        scope: AnyScope = None,
        cwd: Cwd = None,
        dry_run: DryRun = False,
    ) -> int:
        return _show(
            _definitions(kind, cwd).remove(agent, name, scope=scope_of(scope), dry_run=dry_run),
            context.obj,
            dry_run=dry_run,
        )

    @group.command("where", help=f"Show the folders in which an agent looks for {what}s.")
    @with_common_flags
    def where(context: typer.Context, agent: AgentName, cwd: Cwd = None) -> int:
        rows: list[dict[str, Any]] = [
            {"scope": folder.scope, "path": str(path), "exists": path.is_dir(), "shared": folder.is_shared or None}
            for folder, path in _definitions(kind, cwd).where(agent)
        ]
        print_rows(rows, ("scope", "path", "exists", "shared"), context.obj)
        return 0

    return group


def _definitions(kind: str, cwd: Path | None) -> "Definitions":
    from agent_mux.definitions import client

    return client.skills(homes_for(cwd)) if kind == "skills" else client.subagents(homes_for(cwd))


def _show(done: "Placement", invocation: Invocation, *, dry_run: bool) -> int:
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
    say(f"{'would be ' if dry_run else ''}{verb}: {one_line(str(done.target), 1000)}{count}")
    return 0
