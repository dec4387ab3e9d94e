"""`amux profiles`: options of runs under a name."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from agent_mux.cli.decorators import with_common_flags
from agent_mux.cli.elsewhere import can_ask_a_service
from agent_mux.cli.home_options import OwnScope, scope_of
from agent_mux.cli.json_output import tell
from agent_mux.cli.options import ConfigDir, ProjectDir, profile_names

if TYPE_CHECKING:
    from agent_mux.cli.server import Service
    from agent_mux.preferences.profile import Scope
    from agent_mux.profiles import Profiles
    from agent_mux.shapes.profiles import ProfileView

profiles = typer.Typer(help="Options of runs under a name: `amux run --profile NAME`.", no_args_is_help=True)
LONGEST_VALUE = 60  # characters, in a listing

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Of the profile.", show_default=False, autocompletion=profile_names)
]


@profiles.command("list")
@with_common_flags
@can_ask_a_service
def list_profiles(context: typer.Context, config_dir: ConfigDir = None, project_dir: ProjectDir = None) -> int:
    """Show all profiles: those of this project and the global ones."""
    import msgspec

    from agent_mux.cli.tables import print_rows
    from agent_mux.shapes.profiles import profile_views

    views = profile_views(_profiles(config_dir, project_dir, context.obj.service))
    rows = [msgspec.to_builtins(view) for view in views] if context.obj.json else [_row(view) for view in views]
    columns = ("name", "from", "agent", "model", "says", "problem")
    print_rows(rows, columns, context.obj, empty="there are no profiles")
    return 0


@profiles.command("show")
@with_common_flags
@can_ask_a_service
def show(context: typer.Context, name: Name, config_dir: ConfigDir = None, project_dir: ProjectDir = None) -> int:
    """Show what a profile says, and which of its files says it. Times are in milliseconds, as in the files."""
    import msgspec

    from agent_mux.cli.json_output import envelope
    from agent_mux.cli.tables import print_rows
    from agent_mux.shapes.profiles import profile_view

    profile = _profiles(config_dir, project_dir, context.obj.service).get(name)
    if context.obj.json:
        sys.stdout.write(envelope(msgspec.to_builtins(profile_view(profile))) + "\n")
        return 0
    shown = _flat(profile.shown())
    rows = [{"key": key, "value": value, "from": profile.sources.get(key)} for key, value in shown.items()]
    print_rows(rows, ("key", "value", "from"), context.obj, empty="it says nothing")
    return 0


@profiles.command("set")
@with_common_flags
def set_profile(
    context: typer.Context,
    name: Name,
    assignments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE",
            help="What it says, as in the file: maxTurns=5, timeout=60000 (milliseconds), tags='[\"a\"]', "
            "retryPolicy.maxAttempts=3. A value that is no JSON is text. KEY= removes the key.",
            show_default=False,
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help="All of it from a JSON file; `-`: standard input.", show_default=False),
    ] = None,
    scope: OwnScope = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Make a profile, or change what it says.

    It goes into the project, where there is one, or else into the global directory. In a project, it goes over the
    global one of the same name, key by key.
    """
    from agent_mux.cli.assignments import assigned, object_in
    from agent_mux.cli.errors import bad_input

    known = _profiles(config_dir, project_dir)
    where: Scope = scope_of(scope) or ("project" if known.has_project else "global")
    if (file is None) == (not assignments):
        raise bad_input("say what the profile says: KEY=VALUE..., or --file FILE, and not both")
    if file is not None:
        path = known.set_keys(name, object_in(file), scope=where, replace=True)
    else:
        path = known.set_keys(name, assigned(assignments or ()), scope=where)
    return tell(context.obj, f"{name} is set in {path}", {"profile": name, "scope": where, "path": str(path)})


@profiles.command("delete")
@with_common_flags
def delete(
    context: typer.Context,
    name: Name,
    scope: OwnScope = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Remove a profile. Where the project has one and there is a global one, say which is meant."""
    from agent_mux.cli.errors import bad_input
    from agent_mux.cli.terminal import one_line

    known = _profiles(config_dir, project_dir)
    if scope is None and len(known.get(name).paths) > 1:
        raise bad_input(f"{name} is in the project and in the global directory; say which with --scope")
    named_by = known.named_by(name)
    path = known.delete(name, scope=scope_of(scope))
    for place, file in named_by.items() if name not in known.names() else ():
        undo = "amux profiles apply --none" + (" --scope global" if place == "global" else "")
        sys.stderr.write(one_line(f"warning: {file} still names {name}; `{undo}` changes that", 1000) + "\n")
    return tell(context.obj, f"{path} is removed", {"profile": name, "path": str(path)})


@profiles.command("apply")
@with_common_flags
def apply(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Of the profile.", show_default=False, autocompletion=profile_names),
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="No profile any more.", show_default=False)] = False,
    scope: OwnScope = None,
    config_dir: ConfigDir = None,
    project_dir: ProjectDir = None,
) -> int:
    """Let all runs in this project have a profile, where they name no other; with --scope global, everywhere.

    For a single run there is `amux run --profile NAME`.
    """
    from agent_mux.cli.errors import bad_input

    if (name is None) != none:
        raise bad_input("say which profile, or --none")
    chosen: Scope = scope_of(scope) or "project"
    path = _profiles(config_dir, project_dir).make_default(name, scope=chosen)
    where = "everywhere" if chosen == "global" else f"in {path.parent.parent}"
    said = f"runs {where} have no profile" if name is None else f"runs {where} have the profile {name}"
    return tell(context.obj, f"{said} ({path})", {"profile": name, "scope": chosen, "path": str(path)})


def _profiles(config_dir: Path | None, project_dir: Path | None, service: "Service | None" = None) -> "Profiles":
    if service is not None:
        return cast("Profiles", service.client().profiles)  # the same, for those who read
    from agent_mux import paths
    from agent_mux.profiles import profiles_of

    return profiles_of(config_dir or paths.config_dir(), lambda: paths.project_dir(named=project_dir))


def _row(profile: "ProfileView") -> dict[str, Any]:
    from agent_mux.cli.terminal import one_line

    told, paths = profile.fields or {}, profile.paths or {}
    if profile.problem:
        return {"name": profile.name, "problem": profile.problem}
    rest = ", ".join(f"{key}={value}" for key, value in _flat(told).items() if key not in {"agent", "model"})
    return {
        "name": profile.name,
        "from": ", ".join(paths),
        "agent": told.get("agent"),
        "model": told.get("model"),
        "says": one_line(rest, LONGEST_VALUE),
    }


def _flat(told: Any, under: str = "") -> dict[str, Any]:
    """Keys inside of objects as `key.key`; lists as JSON."""
    from agent_mux.plain_json import to_json

    flat: dict[str, Any] = {}
    for key, value in told.items():
        if isinstance(value, dict) and value:
            flat |= _flat(value, f"{under}{key}.")
        elif value is not None:
            flat[f"{under}{key}"] = value if isinstance(value, str) else to_json(value)
    return flat
