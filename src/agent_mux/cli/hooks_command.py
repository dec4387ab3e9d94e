"""`amux hooks`: what is to happen when an agent does something, wherever it runs."""

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.home_options import OwnScope, scope_of
from agent_mux.cli.hook_options import Cwd, client_for
from agent_mux.cli.hooked_agents_command import handle, install, status, uninstall
from agent_mux.cli.json_output import tell
from agent_mux.cli.options import ConfigDir, ProjectDir


class _HooksGroup(TyperGroup):
    """`AGENT handle TYPE` is said with the agent in front."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command, and what is left for it."""
        if args[1:2] == ["handle"] and args[0] not in self.commands:
            args = ["handle", args[0], *args[2:]]
        return super().resolve_command(ctx, args)


hooks = typer.Typer(help="What is to happen when an agent does something.", no_args_is_help=True, cls=_HooksGroup)
for function in (install, uninstall, status, handle):
    hooks.command(function.__name__)(function)
_COLUMNS = ("id", "agent", "hookType", "handler", "target", "priority", "scope", "counts", "whyNot")


class Handler(StrEnum):
    """Part of agent-mux, a program, or a Python file."""

    builtin = "builtin"
    command = "command"
    script = "script"


Name = Annotated[str, typer.Argument(metavar="ID", help="Its id.", show_default=False)]


@hooks.command("list")
@with_common_flags
def list_hooks(
    context: typer.Context, cwd: Cwd = None, config_dir: ConfigDir = None, project_dir: ProjectDir = None
) -> int:
    """Show what is registered, in the order in which it is called."""
    from agent_mux.cli.tables import print_rows

    rows = [
        {
            **one.registration.plain(),
            "scope": one.scope,
            "path": str(one.path),
            "counts": one.counts,
            "whyNot": one.why_not,
        }
        for one in client_for(cwd, config_dir, project_dir).list()
    ]
    shown = rows if context.obj.json else [{**row, "target": _target(row["target"])} for row in rows]
    print_rows(shown, _COLUMNS, context.obj, empty="no hooks are registered")
    return 0


@hooks.command("add")
@with_common_flags
def add(
    context: typer.Context,
    name: Name,
    handler: Annotated[Handler, typer.Argument(help="What kind of handler.", show_default=False)],
    target: Annotated[
        list[str],
        typer.Argument(
            help="log, log:FILE, trace, trace:FILE or policy:FILE; a program and its arguments (behind --); "
            "or a Python file.",
            show_default=False,
        ),
    ],
    agent: Annotated[str, typer.Option("--agent", "-a", help="Of this agent alone.")] = "*",
    hook_type: Annotated[str, typer.Option("--type", "-t", help="For this hook alone.")] = "*",
    priority: Annotated[int, typer.Option("--priority", help="Lower ones are called first.")] = 100,
    disabled: Annotated[bool, typer.Option("--disabled", help="Not yet.", show_default=False)] = False,
    scope: OwnScope = None,
    cwd: Cwd = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Register a handler."""
    client = client_for(cwd, config_dir, project_dir)
    words: Any = list(target) if handler is Handler.command and len(target) > 1 else " ".join(target)
    path = client.add(
        scope_of(scope) or "global",
        id=name,
        agent=agent,
        hook_type=hook_type,
        handler=handler.value,
        target=words if handler is Handler.command else _absolute(words, handler),
        priority=priority,
        enabled=not disabled,
    )
    return tell(context.obj, f"{name} is registered in {path}", {"id": name, "path": str(path)})


@hooks.command("remove")
@with_common_flags
def remove(
    context: typer.Context,
    name: Name,
    scope: OwnScope = None,
    cwd: Cwd = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Register a handler no more."""
    path = client_for(cwd, config_dir, project_dir).remove(name, scope_of(scope))
    return tell(context.obj, f"{name} is removed from {path}", {"id": name, "path": str(path)})


@hooks.command("enable")
@with_common_flags
def enable(
    context: typer.Context,
    name: Name,
    scope: OwnScope = None,
    cwd: Cwd = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Call a handler again."""
    path = client_for(cwd, config_dir, project_dir).enable(name, scope_of(scope))
    return tell(context.obj, f"{name} is switched on in {path}", {"id": name, "path": str(path)})


@hooks.command("disable")
@with_common_flags
def disable(
    context: typer.Context,
    name: Name,
    scope: OwnScope = None,
    cwd: Cwd = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Call a handler no more, and keep it."""
    path = client_for(cwd, config_dir, project_dir).disable(name, scope_of(scope))
    return tell(context.obj, f"{name} is switched off in {path}", {"id": name, "path": str(path)})


@hooks.command("trust")
@with_common_flags
def trust(context: typer.Context, cwd: Cwd = None, config_dir: ConfigDir = None, project_dir: ProjectDir = None) -> int:
    """Let the hooks of the project here count, as they are now. Read them first: they are programs."""
    path = client_for(cwd, config_dir, project_dir).trust()
    return tell(context.obj, f"{path} is trusted as it is now", {"path": str(path)})


def _absolute(target: str, handler: Handler) -> str:
    """Files are named as a shell names them: from here."""
    name, colon, file = target.partition(":") if handler is Handler.builtin else ("", "", target)
    return f"{name}{colon}{os.path.abspath(Path(file).expanduser())}" if file else target  # noqa: PTH100  # keeps links


def _target(target: Any) -> str:
    import shlex

    return shlex.join(target) if isinstance(target, list) else str(target)
