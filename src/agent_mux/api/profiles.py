"""Profiles as JSON, without their secrets."""

from pathlib import Path
from typing import Any

from msgspec import UNSET, UnsetType

from agent_mux.api import JsonView
from agent_mux.errors import AgentMuxError
from agent_mux.settings.config import raise_config_error, resolve_file_fields
from agent_mux.settings.options_json import Problems, fields_from_json
from agent_mux.settings.profiles import Profile, Profiles, Scope


class ProfileView(JsonView, kw_only=True):
    """Options of runs under a name. One that is damaged has its problem instead."""

    name: str
    fields: dict[str, Any] | UnsetType = UNSET
    """What it says, as in its files: camelCase, times in milliseconds; without the secrets of MCP servers."""
    sources: dict[str, Scope] | UnsetType = UNSET
    """Which place each key comes from; a key inside of an object is `key.key`."""
    paths: dict[Scope, str] | UnsetType = UNSET
    """The files that it is made of."""
    problem: str | UnsetType = UNSET


class ProfileChanged(JsonView, kw_only=True):
    """A profile was written or removed."""

    profile: str
    scope: Scope | UnsetType = UNSET
    path: str
    """Of its file."""


def profile_view(profile: Profile) -> ProfileView:
    """One profile."""
    return ProfileView(
        name=profile.name,
        fields=profile.shown(),
        sources=dict(profile.sources),
        paths={scope: str(path) for scope, path in profile.paths.items()},
    )


def profile_views(profiles: Profiles) -> list[ProfileView]:
    """All of them, by name. One that is damaged hides no other."""
    views = []
    for name in profiles.names():
        try:
            views.append(profile_view(profiles.get(name)))
        except AgentMuxError as error:
            views.append(ProfileView(name=name, problem=error.message))
    return views


def profile_from_view(told: ProfileView) -> Profile:
    """The profile that was told. Its secrets were not: they are masked. Raises CONFIG_ERROR for one that is damaged."""
    if told.problem:
        raise AgentMuxError("CONFIG_ERROR", told.problem)
    fields, sources = told.fields or {}, told.sources or {}
    paths = {scope: Path(path) for scope, path in (told.paths or {}).items()}
    problems = Problems()
    said = fields_from_json(fields, problems)
    raise_config_error(Path(told.name), problems)
    for name in ("policy", "skills"):
        if name in said and sources.get(name) in paths:
            said |= resolve_file_fields(paths[sources[name]], {name: said[name]})
    return Profile(name=told.name, told=fields, said=said, sources=sources, paths=paths)
