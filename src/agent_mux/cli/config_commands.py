"""`amux config`: the agents' own configuration files."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_mux.cli.command_output import print_json, print_note, print_rows
from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.installation_options import (
    AgentName,
    AnyScope,
    Cwd,
    DryRun,
    Scope,
    ScopeName,
    homes_for,
    scope_value,
    show_change,
)
from agent_mux.cli.mcp_commands import mcp

if TYPE_CHECKING:
    from agent_mux.agents.config.client import AgentConfigs


config = typer.Typer(help="The agents' own configuration files.", no_args_is_help=True)
config.add_typer(mcp, name="mcp")
FieldName = Annotated[
    str, typer.Argument(metavar="FIELD", help="Dotted name, such as permissions.allow.", show_default=False)
]


@config.command("get")
@with_common_flags
def get(
    context: typer.Context,
    agent: AgentName,
    field: Annotated[
        str | None,
        typer.Argument(metavar="[FIELD]", help="Dotted name, such as permissions.allow.", show_default=False),
    ] = None,
    scope: AnyScope = None,
    cwd: Cwd = None,
) -> int:
    """Show an agent's effective configuration; project files override global ones. Secrets are hidden."""
    from agent_mux.agents.config.changes import hide_secrets

    configs = _agent_configs(cwd)
    if field is None:
        shown = hide_secrets(configs.get(agent, scope=scope_value(scope)))
        sources = configs.sources(agent, scope_value(scope))
        if context.obj.json:
            files = [{"scope": one.scope, "path": str(one.path), "exists": one.exists} for one in sources]
            print_json({"values": shown, "files": files})
        else:
            _write_value(shown)
            for one in sources:
                print_note(f"{one.scope}: {one.path}{'' if one.exists else ' (does not exist)'}")
        return 0
    found = configs.get_field(agent, field, scope=scope_value(scope))
    if found is None:
        from agent_mux.errors import AgentMuxError

        raise AgentMuxError(
            "CONFIG_ERROR", f"{agent} has no value for {field}; `amux config schema {agent}` lists the known fields"
        )
    shown = hide_secrets(found.value, field.rpartition(".")[2])
    if context.obj.json:
        print_json({"value": shown, "scope": found.scope, "path": str(found.path)})
    else:
        _write_value(shown)
        print_note(f"{found.scope}: {found.path}")
    return 0


@config.command("set")
@with_common_flags
def set_field(
    context: typer.Context,
    agent: AgentName,
    field: FieldName,
    value: Annotated[
        str,
        typer.Argument(metavar="VALUE", help="JSON or text; `-` reads standard input.", show_default=False),
    ],
    scope: Scope = ScopeName.everywhere,
    text: Annotated[
        bool, typer.Option("--text", help="Treat VALUE as text, never as JSON.", show_default=False)
    ] = False,
    cwd: Cwd = None,
    dry_run: DryRun = False,
) -> int:
    """Set a field in an agent's file. Comments and other fields are preserved.

    Do not pass secrets on the command line: use `-` to read the value from standard input.
    """
    configs = _agent_configs(cwd)
    given = sys.stdin.read().rstrip("\n") if value == "-" else value
    wanted = given if text else _parse_value(given, _field_kind(configs, agent, field))
    change = configs.set_field(agent, field, wanted, scope=scope_value(scope), dry_run=dry_run)
    show_change(change, context.obj, dry_run=dry_run)
    _warn_of_unknown_field(configs, agent, field, is_set=not dry_run)
    return 0


@config.command("unset")
@with_common_flags
def unset_field(
    context: typer.Context,
    agent: AgentName,
    field: FieldName,
    scope: Scope = ScopeName.everywhere,
    cwd: Cwd = None,
    dry_run: DryRun = False,
) -> int:
    """Remove a setting from an agent's file."""
    configs = _agent_configs(cwd)
    change = configs.unset_field(agent, field, scope=scope_value(scope), dry_run=dry_run)
    show_change(change, context.obj, dry_run=dry_run)
    return 0


@config.command("schema")
@with_common_flags
def schema(context: typer.Context, agent: AgentName) -> int:
    """Show the known fields as JSON Schema. An agent may have more fields."""
    found = _agent_configs(None).schema(agent)
    if context.obj.json:
        print_json(found)
    else:
        _write_value(found)
    return 0


@config.command("validate")
@with_common_flags
def validate(context: typer.Context, agent: AgentName, cwd: Cwd = None) -> int:
    """Report unreadable files and invalid values of known fields; exit code 7 if there are any."""
    return _print_problems(context, agent, cwd)


@config.command("reload")
@with_common_flags
def reload(context: typer.Context, agent: AgentName, cwd: Cwd = None) -> int:
    """Read the files again and report problems.

    Configuration is never cached: every command and every run reads the current files.
    """
    return _print_problems(context, agent, cwd)


def _print_problems(context: typer.Context, agent: str, cwd: Path | None) -> int:
    from agent_mux.agents.config.changes import hide_secrets
    from agent_mux.cli.exit_codes import for_error

    problems = _agent_configs(cwd).validate(agent)
    rows = [
        {
            "scope": one.scope,
            "path": str(one.path),
            "field": one.field,
            "problem": one.message if one.field is None else f"allowed: {one.message}",
            "value": None if one.field is None else json.dumps(hide_secrets(one.value, one.field.rpartition(".")[2])),
        }
        for one in problems
    ]
    print_rows(rows, ("scope", "field", "value", "problem", "path"), context.obj, empty="no problems found")
    return for_error("CONFIG_ERROR") if problems else 0


def _agent_configs(cwd: Path | None) -> "AgentConfigs":
    from agent_mux.agents.config.client import AgentConfigs

    return AgentConfigs(homes_for(cwd))


def _warn_of_unknown_field(configs: "AgentConfigs", agent: str, field: str, *, is_set: bool) -> None:
    """Warn of a field that is not known, and name one that it resembles. Agents have more fields than we know."""
    from agent_mux._util.suggestions import closest_names

    known = configs.fields(agent)
    is_known = any(field == name or field.startswith(f"{name}.") or name.startswith(f"{field}.") for name in known)
    if is_known:
        return
    close = closest_names(field, known)
    hint = f"did you mean {close[0]}?" if close else f"`amux config schema {agent}` lists them."
    step = f" `amux config unset {agent} {field}` removes it" if is_set else ""
    print_note(f"warning: {field} is no field of {agent} that agent-mux knows; {hint}{step}")


def _field_kind(configs: "AgentConfigs", agent: str, field: str) -> str | None:
    known = configs.fields(agent).get(field)
    return None if known is None else known.kind


def _parse_value(given: str, kind: str | None) -> Any:
    if kind == "string":
        return given
    try:
        return json.loads(given)
    except (ValueError, RecursionError):
        return given


def _write_value(value: Any) -> None:
    """Print a value as indented JSON; print text unquoted."""
    from agent_mux.cli.terminal import sanitize

    written = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    sys.stdout.write("".join(f"{sanitize(line)}\n" for line in written.splitlines() or [""]))
