"""One profile, read from the files it is made of. Source: run API, section 1 (profiles)."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from agent_mux.redaction import Redactor, secrets_of_servers, shown
from agent_mux.settings.config import beside, raise_for
from agent_mux.settings.fields import from_wire
from agent_mux.settings.keys import KEYS, Problems
from agent_mux.settings.precedence import Layer, deep_merged

Scope = Literal["project", "global"]
SCOPES: tuple[Scope, ...] = ("project", "global")
"""The stronger one first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What both places say together: the project's over the global one, object by object."""

    name: str
    told: Mapping[str, Any]
    """As in the files: camelCase keys, times in milliseconds."""
    said: Mapping[str, Any]
    """The same as fields of `RunOptions`: times in seconds."""
    sources: Mapping[str, Scope]
    """Where each key comes from; a key inside of an object is `key.key`."""
    paths: Mapping[Scope, Path]
    """The files it is made of."""

    def shown(self) -> dict[str, Any]:
        """What it says, as people may see it: as in the files, without the secrets of MCP servers."""
        plain = msgspec.json.encode(shown("", self.told))
        masked = Redactor(secrets_of_servers(self.said.get("mcp_servers", ()))).mask(plain)
        return dict(msgspec.json.decode(masked))

    def layer(self) -> Layer:
        """What it says, among the other layers."""
        sources: dict[str, str] = {}
        for scope in SCOPES:
            for key, place in self.sources.items():
                if place == scope:
                    sources.setdefault(KEYS[key.partition(".")[0]], str(self.paths[scope]))
        return Layer(f"the profile {self.name!r}", self.said, sources)


def read_profile(
    name: str, paths: Mapping[Scope, Path], read: Callable[[Path], dict[str, Any] | None]
) -> Profile | None:
    """What these files say, the stronger first; None where there is none. Raises CONFIG_ERROR that names the file."""
    told: dict[str, Any] = {}
    said: dict[str, Any] = {}
    sources: dict[str, Scope] = {}
    there: dict[Scope, Path] = {}
    for scope, path in paths.items():
        found = read(path)
        if found is not None:
            there[scope] = path
            said = deep_merged(said, checked_profile(path, found))
            told = deep_merged(told, found)
            sources = {**dict.fromkeys(_leaves(found), scope), **sources}
    if not there:
        return None
    return Profile(name=name, told=told, said=said, sources={key: sources[key] for key in _leaves(told)}, paths=there)


def checked_profile(path: Path, told: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that these contents of a file say. Raises CONFIG_ERROR."""
    problems = Problems()
    said = from_wire(told, problems)
    raise_for(path, problems)
    said |= beside(path, said)
    return said


def _leaves(told: Mapping[str, Any], under: str = "") -> Iterator[str]:
    for key, value in told.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{under}{key}.")
        elif value is not None:
            yield f"{under}{key}"
