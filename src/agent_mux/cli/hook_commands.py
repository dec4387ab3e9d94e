"""`amux hooks`: registered hooks, and the native hooks by which agents call them."""

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from agent_mux.cli.command_output import print_note, print_result
from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.installation_options import AgentName, DryRun, OwnScope, Scope, ScopeName, scope_value, show_change
from agent_mux.cli.options import ConfigDir, ProjectDir

if TYPE_CHECKING:
    from agent_mux.agents.config.changes import ConfigFileChange
    from agent_mux.agents.hooks.client import Hooks


Cwd = Annotated[Path | None, typer.Option("--cwd", help="Directory to search for the project.", show_default=False)]


def hooks_client(cwd: Path | None, config_dir: Path | None, project_dir: Path | None = None) -> "Hooks":
    """Return the client for the hooks selected by these flags. Raise VALIDATION_ERROR for a missing directory."""
    from agent_mux.agents.hooks.client import Hooks
    from agent_mux.cli.errors import usage_error

    if cwd is not None and not cwd.is_dir():
        raise usage_error(f"--cwd {cwd} is not a directory; name an existing one")
    return Hooks(own=config_dir, directory=cwd, project=project_dir)


Types = Annotated[
    list[str] | None,
    typer.Option("--type", "-t", help="Only this hook type, such as pre_tool_use (repeatable).", show_default=False),
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
    """Install native hooks that call amux in an agent's configuration."""
    client = hooks_client(cwd, config_dir)
    change = client.install(agent, scope=scope.value, types=types or (), dry_run=dry_run)
    consent = client.status(agent)[0].consent
    return _print_installation(context, agent, change, "calls amux", dry_run=dry_run, consent=consent)


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
    """Remove the native hooks that call amux from an agent's configuration. Other hooks are kept."""
    change = hooks_client(cwd, config_dir).uninstall(agent, scope=scope.value, types=types or (), dry_run=dry_run)
    return _print_installation(context, agent, change, "no longer calls amux", dry_run=dry_run, consent=None)


@with_common_flags
def status(
    context: typer.Context,
    agent: Annotated[str | None, typer.Argument(metavar="[AGENT]", help="Only this agent.", show_default=False)] = None,
    cwd: Cwd = None,
    config_dir: ConfigDir = None,
) -> int:
    """Show which agents call amux, and from which files."""
    from agent_mux.cli.command_output import print_rows
    from agent_mux.cli.terminal import shorten_home

    as_json = context.obj.json
    rows = [
        {
            "agent": one.agent,
            "kind": one.kind,
            "types": list(one.types),
            "installed": {str(path): list(types) for path, types in one.installed.items()}
            if as_json
            else [shorten_home(str(path)) for path in one.installed],
            "consent": one.consent,
        }
        for one in hooks_client(cwd, config_dir).status(agent)
    ]
    print_rows(rows, ("agent", "kind", "installed", "consent"), context.obj)
    return 0


def handle(
    context: typer.Context,
    agent: AgentName,
    hook_type: Annotated[
        str, typer.Argument(metavar="TYPE", help="Hook type, such as pre_tool_use.", show_default=False)
    ],
    config_dir: ConfigDir = None,
) -> int:
    """Answer an agent's native hook: `amux hooks AGENT handle TYPE`. Called by agents; not usually run by hand.

    Reads the hook input from standard input. Output and exit code follow the agent's own format.
    """
    from agent_mux.cli.hook_handler import answer_hook

    return answer_hook(agent, hook_type, config_dir, context.obj)


def _print_installation(
    context: typer.Context, agent: str, change: "ConfigFileChange", what: str, *, dry_run: bool, consent: str | None
) -> int:
    show_change(change, context.obj, dry_run=dry_run)
    if not context.obj.json and not dry_run:
        print_note(f"{agent} {what}{'' if change.is_needed else ' (unchanged)'}")
        if consent is not None:
            print_note(consent)
    return 0


class _HooksGroup(TyperGroup):
    """The command group of `amux hooks`, which accepts `AGENT handle TYPE` with the agent first."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command and its remaining arguments."""
        if args[1:2] == ["handle"] and args[0] not in self.commands:
            args = ["handle", args[0], *args[2:]]
        return super().resolve_command(ctx, args)


hooks = typer.Typer(help="Manage hooks.", no_args_is_help=True, cls=_HooksGroup)
for function in (install, uninstall, status, handle):
    hooks.command(function.__name__)(function)
_COLUMNS = ("id", "agent", "hookType", "handler", "target", "priority", "scope", "counts", "whyNot")


class HookHandlerKind(StrEnum):
    """The kinds of hook handlers: part of agent-mux, a program, or a Python file."""

    builtin = "builtin"
    command = "command"
    script = "script"


HookId = Annotated[str, typer.Argument(metavar="ID", help="Hook id.", show_default=False)]


@hooks.command("list")
@with_common_flags
def list_hooks(
    context: typer.Context,
    agent: Annotated[
        str | None,
        typer.Option("--agent", "-a", help="Only hooks that this agent calls.", show_default=False),
    ] = None,
    cwd: Cwd = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """List the registered hooks in calling order."""
    from agent_mux.cli.command_output import print_rows

    rows = [
        {
            **one.registration.plain(),
            "scope": one.scope,
            "path": str(one.path),
            "counts": one.counts,
            "whyNot": one.why_not,
        }
        for one in hooks_client(cwd, config_dir, project_dir).list(agent)
    ]
    shown = rows if context.obj.json else [{**row, "target": _format_target(row["target"])} for row in rows]
    print_rows(shown, _COLUMNS, context.obj, empty="no hooks are registered")
    return 0


@hooks.command("add")
@with_common_flags
def add(
    context: typer.Context,
    name: HookId,
    handler: Annotated[HookHandlerKind, typer.Argument(help="Kind of handler.", show_default=False)],
    target: Annotated[
        list[str],
        typer.Argument(
            help="log, log:FILE, trace, trace:FILE or policy:FILE; a program and its arguments (after --); "
            "or a Python file.",
            show_default=False,
        ),
    ],
    agent: Annotated[str, typer.Option("--agent", "-a", help="Only for this agent.")] = "*",
    hook_type: Annotated[str, typer.Option("--type", "-t", help="Only for this hook type.")] = "*",
    priority: Annotated[int, typer.Option("--priority", help="Lower values run first.")] = 100,
    disabled: Annotated[
        bool, typer.Option("--disabled", help="Register without enabling.", show_default=False)
    ] = False,
    scope: OwnScope = None,
    cwd: Cwd = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Register a hook for agents to run."""
    client = hooks_client(cwd, config_dir, project_dir)
    words: Any = list(target) if handler is HookHandlerKind.command and len(target) > 1 else " ".join(target)
    path = client.add(
        scope_value(scope) or "global",
        id=name,
        agent=agent,
        hook_type=hook_type,
        handler=handler.value,
        target=words if handler is HookHandlerKind.command else _absolute_target(words, handler),
        priority=priority,
        enabled=not disabled,
    )
    return print_result(context.obj, f"registered {name} in {path}", {"id": name, "path": str(path)})


@hooks.command("remove")
@with_common_flags
def remove(
    context: typer.Context,
    name: HookId,
    scope: OwnScope = None,
    cwd: Cwd = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Remove a hook from its file."""
    path = hooks_client(cwd, config_dir, project_dir).remove(name, scope_value(scope))
    return print_result(context.obj, f"removed {name} from {path}", {"id": name, "path": str(path)})


@hooks.command("set")
@with_common_flags
def set_fields(
    context: typer.Context,
    name: HookId,
    priority: Annotated[
        int | None, typer.Option("--priority", help="Lower values run first.", show_default=False)
    ] = None,
    enabled: Annotated[
        bool | None, typer.Option("--enabled/--disabled", help="Call the hook, or not.", show_default=False)
    ] = None,
    target: Annotated[
        str | None, typer.Option("--target", help="New target, written as in the file.", show_default=False)
    ] = None,
    scope: OwnScope = None,
    cwd: Cwd = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Change the priority, the target or the state of a hook."""
    client = hooks_client(cwd, config_dir, project_dir)
    path = client.set(name, scope_value(scope), priority=priority, enabled=enabled, target=target)
    return print_result(context.obj, f"changed {name} in {path}", {"id": name, "path": str(path)})


@hooks.command("enable")
@with_common_flags
def enable(
    context: typer.Context,
    name: HookId,
    scope: OwnScope = None,
    cwd: Cwd = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Enable a hook that was disabled."""
    path = hooks_client(cwd, config_dir, project_dir).enable(name, scope_value(scope))
    return print_result(context.obj, f"enabled {name} in {path}", {"id": name, "path": str(path)})


@hooks.command("disable")
@with_common_flags
def disable(
    context: typer.Context,
    name: HookId,
    scope: OwnScope = None,
    cwd: Cwd = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Disable a hook without removing it."""
    path = hooks_client(cwd, config_dir, project_dir).disable(name, scope_value(scope))
    return print_result(context.obj, f"disabled {name} in {path}", {"id": name, "path": str(path)})


@hooks.command("trust")
@with_common_flags
def trust(context: typer.Context, cwd: Cwd = None, config_dir: ConfigDir = None, project_dir: ProjectDir = None) -> int:
    """Trust the project's hooks in their current form. Read them first: they are programs."""
    path = hooks_client(cwd, config_dir, project_dir).trust()
    return print_result(context.obj, f"trusted {path} in its current form", {"path": str(path)})


def _absolute_target(target: str, handler: HookHandlerKind) -> str:
    """Make a file target absolute, relative to the current directory."""
    name, colon, file = target.partition(":") if handler is HookHandlerKind.builtin else ("", "", target)
    return f"{name}{colon}{os.path.abspath(os.path.expanduser(file))}" if file else target  # noqa: PTH100  # keeps symbolic links


def _format_target(target: Any) -> str:
    import shlex

    return shlex.join(target) if isinstance(target, list) else str(target)
