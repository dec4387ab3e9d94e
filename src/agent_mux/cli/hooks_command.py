"""`amux hooks`: what is to happen when an agent does something, wherever it runs."""

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from agent_mux.cli.options import ConfigDir, with_common_flags

if TYPE_CHECKING:
    from agent_mux.hooks.client import Hooks
    from agent_mux.hooks.installing import FileChange


class _HooksGroup(TyperGroup):
    """`AGENT handle TYPE` is said with the agent in front."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command, and what is left for it."""
        if args[1:2] == ["handle"] and args[0] not in self.commands:
            args = ["handle", args[0], *args[2:]]
        return super().resolve_command(ctx, args)


hooks = typer.Typer(help="What is to happen when an agent does something.", no_args_is_help=True, cls=_HooksGroup)
_COLUMNS = ("id", "agent", "hookType", "handler", "target", "priority", "scope", "counts", "whyNot")


class Handler(StrEnum):
    """Part of agent-mux, a program, or a Python file."""

    builtin = "builtin"
    command = "command"
    script = "script"


class FileScope(StrEnum):
    """For all of a user's work, for all who work on the project, or for one user's work on it."""

    everywhere = "global"
    project = "project"
    local = "local"


Project = Annotated[
    bool, typer.Option("--project", help="Of the project here, instead of all work.", show_default=False)
]
ProjectDir = Annotated[Path | None, typer.Option("--cwd", help="Look for the project here.", show_default=False)]
Name = Annotated[str, typer.Argument(metavar="ID", help="Its id.", show_default=False)]
AgentName = Annotated[str, typer.Argument(metavar="AGENT", help="Registered name, or alias.", show_default=False)]
Scoped = Annotated[FileScope, typer.Option("--scope", help="Which of the agent's files.")]
Types = Annotated[
    list[str] | None, typer.Option("--type", "-t", help="Only these hooks, as pre_tool_use.", show_default=False)
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change.", show_default=False)]


@hooks.command("list")
@with_common_flags
def list_hooks(context: typer.Context, cwd: ProjectDir = None, config_dir: ConfigDir = None) -> int:
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
        for one in _client(cwd, config_dir).list()
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
    project: Project = False,
    cwd: ProjectDir = None,
    config_dir: ConfigDir = None,
) -> int:
    """Register a handler."""
    client = _client(cwd, config_dir)
    words: Any = list(target) if handler is Handler.command and len(target) > 1 else " ".join(target)
    path = client.add(
        "project" if project else "global",
        id=name,
        agent=agent,
        hook_type=hook_type,
        handler=handler.value,
        target=words if handler is Handler.command else _absolute(words, handler),
        priority=priority,
        enabled=not disabled,
    )
    return _done(context, f"{name} is registered in {path}", id=name, path=str(path))


@hooks.command("remove")
@with_common_flags
def remove(
    context: typer.Context, name: Name, project: Project = False, cwd: ProjectDir = None, config_dir: ConfigDir = None
) -> int:
    """Register a handler no more."""
    path = _client(cwd, config_dir).remove(name, "project" if project else None)
    return _done(context, f"{name} is removed from {path}", id=name, path=str(path))


@hooks.command("enable")
@with_common_flags
def enable(
    context: typer.Context, name: Name, project: Project = False, cwd: ProjectDir = None, config_dir: ConfigDir = None
) -> int:
    """Call a handler again."""
    path = _client(cwd, config_dir).enable(name, "project" if project else None)
    return _done(context, f"{name} is switched on in {path}", id=name, path=str(path))


@hooks.command("disable")
@with_common_flags
def disable(
    context: typer.Context, name: Name, project: Project = False, cwd: ProjectDir = None, config_dir: ConfigDir = None
) -> int:
    """Call a handler no more, and keep it."""
    path = _client(cwd, config_dir).disable(name, "project" if project else None)
    return _done(context, f"{name} is switched off in {path}", id=name, path=str(path))


@hooks.command("trust")
@with_common_flags
def trust(context: typer.Context, cwd: ProjectDir = None, config_dir: ConfigDir = None) -> int:
    """Let the hooks of the project here count, as they are now. Read them first: they are programs."""
    path = _client(cwd, config_dir).trust()
    return _done(context, f"{path} is trusted as it is now", path=str(path))


@hooks.command("install")
@with_common_flags
def install(
    context: typer.Context,
    agent: AgentName,
    scope: Scoped = FileScope.everywhere,
    types: Types = None,
    dry_run: DryRun = False,
    cwd: ProjectDir = None,
    config_dir: ConfigDir = None,
) -> int:
    """Tell an agent to call us, in its own configuration."""
    client = _client(cwd, config_dir)
    change = client.install(agent, scope=scope.value, types=types or (), dry_run=dry_run)
    consent = client.status(agent)[0].consent
    return _show_change(context, agent, change, "calls us", dry_run=dry_run, consent=consent)


@hooks.command("uninstall")
@with_common_flags
def uninstall(
    context: typer.Context,
    agent: AgentName,
    scope: Scoped = FileScope.everywhere,
    types: Types = None,
    dry_run: DryRun = False,
    cwd: ProjectDir = None,
    config_dir: ConfigDir = None,
) -> int:
    """Tell an agent to call us no more. What somebody else wrote stays."""
    change = _client(cwd, config_dir).uninstall(agent, scope=scope.value, types=types or (), dry_run=dry_run)
    return _show_change(context, agent, change, "calls us no more", dry_run=dry_run, consent=None)


@hooks.command("status")
@with_common_flags
def status(
    context: typer.Context,
    agent: Annotated[str | None, typer.Argument(metavar="[AGENT]", help="Only this one.", show_default=False)] = None,
    cwd: ProjectDir = None,
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
        for one in _client(cwd, config_dir).status(agent)
    ]
    print_rows(rows, ("agent", "kind", "installed", "consent"), context.obj)
    return 0


@hooks.command("handle")
def handle(
    agent: AgentName,
    hook_type: Annotated[str, typer.Argument(metavar="TYPE", help="As pre_tool_use.", show_default=False)],
    config_dir: ConfigDir = None,
) -> int:
    """Answer an agent that calls us: `amux hooks AGENT handle TYPE`. Agents say this, people seldom do.

    What happens is read from standard input; the answer is in the agent's own format, and so is the exit code.
    """
    from agent_mux.cli.hook_answer import answer_hook

    return answer_hook(agent, hook_type, config_dir)


def _client(cwd: Path | None, config_dir: Path | None) -> "Hooks":
    from agent_mux.cli.inputs import bad_input
    from agent_mux.hooks.client import Hooks

    if cwd is not None and not cwd.is_dir():
        raise bad_input(f"--cwd {cwd} is no directory")
    return Hooks(own=config_dir, directory=cwd)


def _absolute(target: str, handler: Handler) -> str:
    """Files are named as a shell names them: from here."""
    name, colon, file = target.partition(":") if handler is Handler.builtin else ("", "", target)
    return f"{name}{colon}{os.path.abspath(Path(file).expanduser())}" if file else target  # noqa: PTH100  # keeps links


def _target(target: Any) -> str:
    import shlex

    return shlex.join(target) if isinstance(target, list) else str(target)


def _done(context: typer.Context, sentence: str, **data: Any) -> int:
    from agent_mux.cli.json_output import envelope
    from agent_mux.cli.terminal import one_line

    if context.obj.json:
        sys.stdout.write(envelope(data) + "\n")
    else:
        sys.stderr.write(f"{one_line(sentence, 1000)}\n")
    return 0


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
