"""One profile, read from the files it is made of. Source: run API, section 1 (profiles).

Profiles: options of runs under a name, in `profiles/<name>.json` of the global directory and of a project's.

A profile that is in both places is one: what the project says goes over what is said globally, object by object.
Source: run API, section 1 (profiles).
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

import msgspec

from agent_mux._util.files import locked, read_text, remove, write_text
from agent_mux._util.paths import project_dir
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.redaction import Redactor, hide_secret_values, secrets_of_servers
from agent_mux.sdk.options import PROFILE_NAME, PROFILE_NAMES, RunOptions
from agent_mux.settings.config import FILE, beside, raise_for, read_preferences, write_preference
from agent_mux.settings.documents import EMPTY, Remembered, edited, parse_object, read_object
from agent_mux.settings.fields import KEYS, Problems, from_wire
from agent_mux.settings.requests import to_wire
from agent_mux.settings.resolution import Layer, deep_merged, merge, options_of, said_by

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
        plain = msgspec.json.encode(hide_secret_values("", self.told))
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


_Files = Remembered[dict[str, Any] | None]


class Profiles:
    """The profiles of one place. Blocking; every call looks at the disk again."""

    def __init__(self, places: Callable[[], Mapping[Scope, Path]], *, locks: Path, read: _Files | None = None) -> None:
        """Nothing is read yet.

        Args:
            places: The directories that there may be profiles in, by scope.
            locks: Where locks of files go.
            read: Files that were read already.
        """
        self._places = places
        self._locks = locks
        self._read = read if read is not None else Remembered(read_object)

    def list(self) -> "list[Profile]":
        """All of them, by name. Raises CONFIG_ERROR for one that cannot be used."""
        return [self.get(name) for name in self.names()]

    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted(set(self._names())))

    def _names(self, scope: Scope | None = None) -> Iterator[str]:
        for place, directory in self._places().items():
            if scope in {None, place} and os.path.isdir(directory / "profiles"):  # noqa: PTH112  # nor may it be asked
                for path in (directory / "profiles").glob("*.json"):
                    if PROFILE_NAME.fullmatch(path.stem):
                        yield path.stem

    def get(self, name: str, *, scope: Scope | None = None) -> Profile:
        """One profile: both places together, or what one of them says.

        Raises:
            AgentMuxError: PROFILE_NOT_FOUND, with the nearest name; CONFIG_ERROR when a file of it cannot be used.
        """
        paths = {place: self._path(name, place) for place in SCOPES if scope in {None, place}}
        there = {place: path for place, path in paths.items() if path is not None}
        found = read_profile(name, there, self._read.of)
        if found is None:
            raise self._not_found(name, scope)
        return found

    def set(
        self,
        name: str,
        fields: Mapping[str, Any],
        *,
        scope: Scope = "global",
        replace: bool = False,
    ) -> Path:
        """Make a profile, or change fields of it. Returns the path of its file.

        Args:
            name: 1 to 64 letters, digits, _ or -.
            fields: Fields of `RunOptions`, times in seconds; those that are None are removed from the profile.
            scope: Which of the two files.
            replace: These fields are all of it. Default: the others stay.

        Raises:
            ValidationError: A bad name, or a field that is unknown, not allowed in a profile, or out of range.
            AgentMuxError: CONFIG_ERROR, CONFIG_LOCK_ERROR when the file cannot be read or written.
        """
        return self.set_keys(name, to_wire(fields), scope=scope, replace=replace)

    def set_keys(self, name: str, told: Mapping[str, Any], *, scope: Scope = "global", replace: bool = False) -> Path:
        """As `set`, with keys and values as they stand in the file: `{"maxTurns": 5, "retryPolicy.maxAttempts": 2}`."""
        path = self._writable(name, scope)
        _check(told)
        with locked(path, locks=self._locks):
            before = EMPTY if replace else read_text(path) or EMPTY
            checked_profile(path, parse_object(before, str(path)))
            after = edited(before, told)
            checked_profile(path, parse_object(after, str(path)))
            write_text(path, after, private=scope == "global")
        return path

    def delete(self, name: str, *, scope: Scope | None = None) -> Path:
        """Remove a profile from one place. Returns the path that is gone.

        Raises:
            ValidationError: It is in both places, and `scope` does not say which is meant.
            AgentMuxError: PROFILE_NOT_FOUND; CONFIG_ERROR when it cannot be removed.
        """
        places = {place: self._path(name, place) for place in SCOPES if scope in {None, place}}
        there = [path for path in places.values() if path is not None and path.is_file()]
        if not there:
            raise self._not_found(name, scope)
        if len(there) > 1:
            raise ValidationError([FieldError("scope", None, f"project or global: {name!r} is in both places")])
        with locked(there[0], locks=self._locks):
            remove(there[0])
        return there[0]

    def apply(self, name: str, options: RunOptions) -> RunOptions:
        """The options, with what the profile says where they are as by default. Raises as `get` does."""
        said, _ = merge([Layer("the call", said_by(options)), self.get(name).layer()])
        return options_of(said)

    def make_default(self, name: str | None, *, scope: Scope = "project") -> Path:
        """Let runs that name no profile have this one; None: none. Returns the path of the file that says so.

        Raises as `get` and `set` do.
        """
        if name is not None:
            self.get(name, scope="global" if scope == "global" else None)
        path = self._directory(scope) / FILE
        if name is not None or path.is_file():
            write_preference(path, "profile", name, private=scope == "global", locks=self._locks)
        return path

    def named_by(self, name: str) -> dict[Scope, Path]:
        """The `config.json` files that name it as the default. Raises CONFIG_ERROR for one that cannot be used."""
        files = {scope: read_preferences(directory / FILE) for scope, directory in self._places().items()}
        return {scope: file.path for scope, file in files.items() if file.profile == name}

    @property
    def has_project(self) -> bool:
        """We are in a project."""
        return "project" in self._places()

    def _path(self, name: str, scope: Scope) -> Path | None:
        directory = self._places().get(scope)
        return None if directory is None else directory / "profiles" / f"{checked_name(name)}.json"

    def _writable(self, name: str, scope: Scope) -> Path:
        return self._directory(scope) / "profiles" / f"{checked_name(name)}.json"

    def _directory(self, scope: Scope) -> Path:
        directory = self._places().get(scope)
        if directory is None:
            nowhere = (
                "this is no project: `amux init` makes it one, or say that it is to hold globally (--scope global)"
            )
            raise AgentMuxError("VALIDATION_ERROR", nowhere)
        return directory

    def _not_found(self, name: str, scope: Scope | None) -> AgentMuxError:
        known = sorted(set(self._names(scope)))
        close = get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(known) or 'none'}"
        where = "" if scope is None else f" in the {scope} directory"
        return AgentMuxError("PROFILE_NOT_FOUND", f"no profile is named {name!r}{where}; {hint}")


def checked_name(name: str) -> str:
    """The name. Raises `ValidationError` when no profile can have it."""
    if not isinstance(name, str) or not PROFILE_NAME.fullmatch(name):
        raise ValidationError([FieldError("profile", name, PROFILE_NAMES)])
    return name


def _check(told: Mapping[str, Any]) -> None:
    """What is to be changed makes sense by itself, and JSON can hold it. Raises `ValidationError`."""
    problems = Problems()
    try:
        text = edited(EMPTY, told)
        text.encode()
        alone = parse_object(text, "the profile")
    except (TypeError, ValueError) as error:
        raise ValidationError([FieldError("profile", None, f"what JSON can hold: {error}")]) from error
    for key, value in told.items():
        if value is None and key.partition(".")[0] not in KEYS:
            problems.unknown(key, value, KEYS)
    from_wire(alone, problems)
    if problems.fields:
        raise ValidationError(problems.fields)


def profiles_of(
    config_dir: Path, find_project: Callable[[], Path | None] = project_dir, read: _Files | None = None
) -> Profiles:
    """The profiles of the global directory and of a project, if there is one. `read`: files that were read already."""

    def places() -> Mapping[Scope, Path]:
        project = find_project()
        return {**({} if project is None else {"project": project}), "global": config_dir}

    return Profiles(places, locks=config_dir / "locks", read=read)
