"""Profiles as JSON, without their secrets."""

from pathlib import Path
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from agent_mux.api import JsonView
from agent_mux.errors import AgentMuxError
from agent_mux.settings.config import raise_config_error, resolve_file_fields
from agent_mux.settings.options_json import Problems, fields_from_json
from agent_mux.settings.profiles import Profile, Profiles, Scope


class ProfileView(JsonView, kw_only=True):
    """Run options under a name. A profile that cannot be read has only its name and `problem`."""

    name: str
    fields: Annotated[
        dict[str, Any] | UnsetType,
        Meta(
            description=(
                "The content of the files: camelCase keys, durations in milliseconds; without the secrets of "
                "MCP servers."
            )
        ),
    ] = UNSET
    sources: Annotated[
        dict[str, Scope] | UnsetType,
        Meta(description="The scope that each key comes from; a key inside an object is `key.key`."),
    ] = UNSET
    paths: Annotated[dict[Scope, str] | UnsetType, Meta(description="The files of the profile, by scope.")] = UNSET
    problem: Annotated[str | UnsetType, Meta(description="Why the profile cannot be read.")] = UNSET


class ProfileChanged(JsonView, kw_only=True):
    """The result of writing or deleting a profile."""

    profile: str
    scope: Scope | UnsetType = UNSET
    path: Annotated[str, Meta(description="The file of the profile.")]


def profile_view(profile: Profile) -> ProfileView:
    """Return the view of a profile."""
    return ProfileView(
        name=profile.name,
        fields=profile.shown(),
        sources=dict(profile.sources),
        paths={scope: str(path) for scope, path in profile.paths.items()},
    )


def profile_views(profiles: Profiles) -> list[ProfileView]:
    """Return views of all profiles, sorted by name. An unreadable profile does not hide the others."""
    views = []
    for name in profiles.names():
        try:
            views.append(profile_view(profiles.get(name)))
        except AgentMuxError as error:
            views.append(ProfileView(name=name, problem=error.message))
    return views


def profile_from_view(view: ProfileView) -> Profile:
    """Convert a view to a profile whose secrets are masked. Raises CONFIG_ERROR if the view has a problem."""
    if view.problem:
        raise AgentMuxError("CONFIG_ERROR", view.problem)
    content, sources = view.fields or {}, view.sources or {}
    paths = {scope: Path(path) for scope, path in (view.paths or {}).items()}
    problems = Problems(is_wire=True)
    fields = fields_from_json(content, problems)
    raise_config_error(Path(view.name), problems)
    for name in ("policy", "skills"):
        if name in fields and sources.get(name) in paths:
            fields |= resolve_file_fields(paths[sources[name]], {name: fields[name]})
    return Profile(name=view.name, content=content, fields=fields, sources=sources, paths=paths)
