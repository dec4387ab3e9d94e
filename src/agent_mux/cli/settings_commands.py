"""`amux init` and `amux profiles`: agent-mux's own settings of a project or a user."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from agent_mux.cli.command_output import print_result
from agent_mux.cli.decorators import with_common_flags, with_service_flags
from agent_mux.cli.installation_options import OwnScope, scope_value
from agent_mux.cli.options import ConfigDir, ProjectDir

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agent_mux.api.profiles import ProfileView
    from agent_mux.cli.command_output import ServiceEndpoint
    from agent_mux.settings.profiles import Profiles, Scope


DefaultAgent = Annotated[
    str | None,
    typer.Option(
        "--agent",
        "-a",
        help="Default agent of the project.",
        show_default=False,
    ),
]
DefaultModel = Annotated[
    str | None, typer.Option("--model", "-m", help="Default model of the project.", show_default=False)
]
InitDryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show the changes without making them.", show_default=False)
]
InitForce = Annotated[bool, typer.Option("--force", help="Overwrite existing files.", show_default=False)]
_ACTIONS_DONE = {"create": "created", "overwrite": "overwrote", "extend": "extended", "keep": "kept"}


@with_common_flags
def init(
    context: typer.Context,
    agent: DefaultAgent = None,
    model: DefaultModel = None,
    dry_run: InitDryRun = False,
    force: InitForce = False,
    config_dir: ConfigDir = None,  # noqa: ARG001  # accepted by every command of this group
    project_dir: ProjectDir = None,
) -> int:
    """Create .agent-mux in the current directory.

    It contains a configuration file and a page that explains the settings.
    """
    from agent_mux.cli.command_output import json_envelope
    from agent_mux.cli.terminal import one_line
    from agent_mux.sdk.registry import AdapterRegistry
    from agent_mux.settings.project import directory_for, make_project, plan_project

    config = {} if agent is None else {"defaultAgent": AdapterRegistry().get(agent).agent}
    config |= {} if model is None else {"defaultModel": model}
    directory = directory_for((project_dir or Path.cwd()).absolute())
    steps = plan_project(directory, config, force=force)
    if not dry_run:
        make_project(steps)
    if context.obj.json:
        files = [{"path": str(step.path), "action": step.action} for step in steps]
        sys.stdout.write(json_envelope({"directory": str(directory), "files": files, "dryRun": dry_run}) + "\n")
        return 0
    for step in steps:
        done = f"would {step.action}" if dry_run else _ACTIONS_DONE[step.action]
        sys.stderr.write(one_line(f"{done} {step.path}", 1000) + "\n")
    return 0


profiles = typer.Typer(help="Named run options: `amux run --profile NAME`.", no_args_is_help=True)
LONGEST_VALUE = 60  # characters in a table

ProfileName = Annotated[str, typer.Argument(metavar="NAME", help="Profile name.", show_default=False)]


@profiles.command("list")
@with_common_flags
@with_service_flags
def list_profiles(context: typer.Context, config_dir: ConfigDir = None, project_dir: ProjectDir = None) -> int:
    """List the profiles of this project and the global ones."""
    import msgspec

    from agent_mux.api.profiles import profile_views
    from agent_mux.cli.command_output import print_rows

    views = profile_views(_profiles(config_dir, project_dir, context.obj.service))
    rows = [msgspec.to_builtins(view) for view in views] if context.obj.json else [_profile_row(view) for view in views]
    columns = ("name", "from", "agent", "model", "options", "problem")
    print_rows(rows, columns, context.obj, empty="no profiles")
    return 0


@profiles.command("show")
@with_common_flags
@with_service_flags
def show_profile(
    context: typer.Context, name: ProfileName, config_dir: ConfigDir = None, project_dir: ProjectDir = None
) -> int:
    """Show the options of a profile and the file of each. With --json, times are numbers of milliseconds."""
    import msgspec

    from agent_mux.api.profiles import profile_view
    from agent_mux.cli.command_output import json_envelope, print_rows
    from agent_mux.settings.durations import MILLISECOND, with_units

    profile = _profiles(config_dir, project_dir, context.obj.service).get(name)
    if context.obj.json:
        sys.stdout.write(json_envelope(msgspec.to_builtins(profile_view(profile))) + "\n")
        return 0
    shown = _flatten(with_units(profile.shown(), bare=MILLISECOND))
    rows = [{"key": key, "value": value, "from": profile.sources.get(key)} for key, value in shown.items()]
    print_rows(rows, ("key", "value", "from"), context.obj, empty="the profile is empty")
    _print_warnings(profile.warnings)
    return 0


@profiles.command("set")
@with_common_flags
def set_profile(
    context: typer.Context,
    name: ProfileName,
    assignments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE",
            help="Options as in the file: maxModelCalls=5, timeout=10m (a number is seconds), tags='[\"a\"]', "
            "retryPolicy.maxAttempts=3. Values that are not JSON are text. KEY= removes the key.",
            show_default=False,
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", "-f", help="Replace the profile by a JSON file (`-` = standard input).", show_default=False
        ),
    ] = None,
    scope: OwnScope = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Create a profile or change its options.

    It is stored in the project if there is one, else in the global directory. A project's profile overrides the global
    one of the same name, key by key.
    """
    from agent_mux.cli.errors import usage_error
    from agent_mux.cli.inputs import parse_assignments, read_object
    from agent_mux.settings.durations import duration_warnings

    known = _profiles(config_dir, project_dir)
    where: Scope = scope_value(scope) or ("project" if known.has_project else "global")
    if (file is None) == (not assignments):
        raise usage_error("give either KEY=VALUE... or --file FILE")
    if file is not None:
        content = read_object(file)
        _print_warnings(duration_warnings(file, content))
        path = known.set_keys(name, content, scope=where, replace=True)
    else:
        path = known.set_keys(name, parse_assignments(assignments or ()), scope=where)
        _print_warnings(known.get(name, scope=where).warnings)
    return print_result(context.obj, f"saved {name} in {path}", {"profile": name, "scope": where, "path": str(path)})


@profiles.command("delete")
@with_common_flags
def delete_profile(
    context: typer.Context,
    name: ProfileName,
    scope: OwnScope = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Delete a profile. If it exists in the project and globally, --scope is required."""
    from agent_mux.cli.errors import usage_error
    from agent_mux.cli.terminal import one_line

    known = _profiles(config_dir, project_dir)
    if scope is None and len(known.get(name).paths) > 1:
        raise usage_error(f"{name} exists in the project and in the global directory; choose one with --scope")
    named_by = known.named_by(name)
    path = known.delete(name, scope=scope_value(scope))
    for place, file in named_by.items() if name not in known.names() else ():
        undo = "amux profiles use --none" + (" --scope global" if place == "global" else "")
        sys.stderr.write(
            one_line(f"warning: {file} still refers to {name}; `{undo}` removes the reference", 1000) + "\n"
        )
    return print_result(context.obj, f"deleted {path}", {"profile": name, "path": str(path)})


@profiles.command("use")
@with_common_flags
def apply_profile(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Profile name.", show_default=False),
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="Use no profile.", show_default=False)] = False,
    scope: OwnScope = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Make a profile the default for runs in this project; with --scope global, for all runs.

    For a single run, use `amux run --profile NAME`.
    """
    from agent_mux.cli.errors import usage_error

    if (name is None) != none:
        raise usage_error("give a profile NAME, or --none")
    chosen: Scope = scope_value(scope) or "project"
    path = _profiles(config_dir, project_dir).make_default(name, scope=chosen)
    where = "everywhere" if chosen == "global" else f"in {path.parent.parent}"
    sentence = f"runs {where} use no profile" if name is None else f"runs {where} use the profile {name}"
    return print_result(context.obj, f"{sentence} ({path})", {"profile": name, "scope": chosen, "path": str(path)})


def _profiles(
    config_dir: Path | None, project_dir: Path | None, service: "ServiceEndpoint | None" = None
) -> "Profiles":
    if service is not None:
        return cast("Profiles", service.client().profiles)  # the same read interface
    from agent_mux._util import paths
    from agent_mux.settings.profiles import profiles_of

    return profiles_of(config_dir or paths.config_dir(), lambda: paths.project_dir(named=project_dir))


def _print_warnings(warnings: "Iterable[str]") -> None:
    from agent_mux.cli.command_output import print_note

    for warning in warnings:
        print_note(f"warning: {warning}")


def _profile_row(profile: "ProfileView") -> dict[str, Any]:
    from agent_mux.cli.terminal import one_line
    from agent_mux.settings.durations import MILLISECOND, with_units

    fields, paths = with_units(profile.fields or {}, bare=MILLISECOND), profile.paths or {}
    if profile.problem:
        return {"name": profile.name, "problem": profile.problem}
    rest = ", ".join(f"{key}={value}" for key, value in _flatten(fields).items() if key not in {"agent", "model"})
    return {
        "name": profile.name,
        "from": ", ".join(paths),
        "agent": fields.get("agent"),
        "model": fields.get("model"),
        "options": one_line(rest, LONGEST_VALUE),
    }


def _flatten(fields: Any, under: str = "") -> dict[str, Any]:
    """Flatten nested objects to `key.key`; encode lists as JSON."""
    from agent_mux._util.sanitize import to_json

    flat: dict[str, Any] = {}
    for key, value in fields.items():
        if isinstance(value, dict) and value:
            flat |= _flatten(value, f"{under}{key}.")
        elif value is not None:
            flat[f"{under}{key}"] = value if isinstance(value, str) else to_json(value)
    return flat
