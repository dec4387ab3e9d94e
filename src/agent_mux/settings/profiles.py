"""Profiles: run options under a name, in `profiles/<name>.json` of the global directory and of a project.

A profile that exists in both places is one profile: the project's values are merged over the global ones, object by
object. See docs/spec/run-api.md, section 1.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from agent_mux._util.files import locked, read_text, remove, write_text
from agent_mux._util.paths import project_dir
from agent_mux._util.suggestions import did_you_mean
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.redaction import Redactor, hide_secret_values, secrets_of_servers
from agent_mux.sdk.checked import Checked
from agent_mux.sdk.options import PROFILE_NAME, PROFILE_NAMES, RunOptions
from agent_mux.settings.config import FILE, raise_config_error, read_config, resolve_file_fields, write_config_key
from agent_mux.settings.durations import MILLISECOND, duration_warnings, in_milliseconds, with_units
from agent_mux.settings.json_files import EMPTY, FileCache, edit_object, parse_object, read_object
from agent_mux.settings.layers import Layer, deep_merge, fields_from_options, merge, options_from_fields
from agent_mux.settings.options_json import DEPRECATED_KEYS, PROFILE_KEYS, Problems, fields_from_json, fields_to_json

Scope = Literal["project", "global"]
SCOPES: tuple[Scope, ...] = ("project", "global")
"""Both scopes, the stronger one first."""
_FileReader = FileCache[dict[str, Any] | None]


class Profile(Checked, msgspec.Struct, frozen=True, kw_only=True):
    """A profile, merged from the files of both scopes."""

    name: str
    """Name of the profile."""
    content: Mapping[str, Any]
    """The JSON content: camelCase keys, durations in milliseconds, as on the wire."""
    fields: Mapping[str, Any]
    """The content as fields of `RunOptions`: durations in seconds."""
    sources: Mapping[str, Scope]
    """The scope of each key; a key inside an object is `key.key`."""
    paths: Mapping[Scope, Path]
    """The files that were merged."""
    warnings: tuple[str, ...] = ()
    """What the files should say in another way, one sentence each."""

    def shown(self) -> dict[str, Any]:
        """Return the JSON content without the secrets of MCP servers."""
        plain = msgspec.json.encode(hide_secret_values("", self.content))
        masked = Redactor(secrets_of_servers(self.fields.get("mcp_servers", ()))).mask(plain)
        return dict(msgspec.json.decode(masked))

    def layer(self) -> Layer:
        """Return the profile as a layer of options, with the file of each field as its source."""
        sources: dict[str, str] = {}
        key_sources: dict[str, str] = {}
        for scope in SCOPES:
            for key, key_scope in self.sources.items():
                if key_scope == scope:
                    top, _, rest = key.partition(".")
                    name = PROFILE_KEYS[DEPRECATED_KEYS.get(top, top)]
                    sources.setdefault(name, str(self.paths[scope]))
                    if rest:
                        key_sources.setdefault(f"{name}.{rest}", str(self.paths[scope]))
        return Layer(f"the profile {self.name!r}", self.fields, sources, key_sources)


class Profiles:
    """The profiles of the global directory and one project. Blocking; every call reads files that have changed."""

    def __init__(
        self, directories: Callable[[], Mapping[Scope, Path]], *, locks: Path, read: _FileReader | None = None
    ) -> None:
        """Create a view on the profiles; nothing is read yet.

        Args:
            directories: Returns the directories with profiles, by scope.
            locks: The directory of lock files.
            read: A cache of files that may have been read already.
        """
        self._directories = directories
        self._locks = locks
        self._read = read if read is not None else FileCache(read_object)

    def list(self) -> "list[Profile]":
        """Return all profiles, sorted by name. Raises CONFIG_ERROR for an unusable file."""
        return [self.get(name) for name in self.names()]

    def names(self) -> tuple[str, ...]:
        """Return the names of all profiles, sorted."""
        return tuple(sorted(set(self._names())))

    def get(self, name: str, *, scope: Scope | None = None) -> Profile:
        """Return one profile, merged from both scopes or read from one.

        Raises:
            AgentMuxError: PROFILE_NOT_FOUND, with the nearest name; CONFIG_ERROR for an unusable file.
        """
        paths = {one: self._path(name, one) for one in SCOPES if scope in {None, one}}
        known = {one: path for one, path in paths.items() if path is not None}
        found = read_profile(name, known, self._read.get)
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
        """Create a profile or change fields of it. Returns the path of its file.

        Args:
            name: 1 to 64 letters, digits, _ or -.
            fields: Fields of `RunOptions`, durations in seconds or with a unit; None removes a field from the profile.
            scope: Which of the two files to write.
            replace: Remove all other fields. By default they are kept.

        Raises:
            ValidationError: An invalid name, or a field that is unknown, not allowed in a profile, or out of range.
            AgentMuxError: CONFIG_ERROR, CONFIG_LOCK_ERROR if the file cannot be read or written.
        """
        return self.set_keys(name, fields_to_json(fields), scope=scope, replace=replace)

    def set_keys(
        self, name: str, changes: Mapping[str, Any], *, scope: Scope = "global", replace: bool = False
    ) -> Path:
        """Set JSON keys of a profile, like `set`: `{"maxTurns": 5, "retryPolicy.maxAttempts": 2}`.

        Durations have a unit (`"60s"`), or are numbers of milliseconds; the file gets a unit.
        """
        path = self._path_to_write(name, scope)
        changes = with_units(changes, bare=MILLISECOND)
        _check_changes(changes, path.parent)
        with locked(path, locks=self._locks):
            before = EMPTY if replace else read_text(path) or EMPTY
            parse_profile(path, parse_object(before, str(path)))
            after = edit_object(before, changes)
            parse_profile(path, parse_object(after, str(path)))
            write_text(path, after, private=scope == "global")
        return path

    def delete(self, name: str, *, scope: Scope | None = None) -> Path:
        """Delete the file of a profile in one scope. Returns its path.

        Raises:
            ValidationError: The profile exists in both scopes and `scope` is None.
            AgentMuxError: PROFILE_NOT_FOUND; CONFIG_ERROR if the file cannot be deleted.
        """
        paths = {one: self._path(name, one) for one in SCOPES if scope in {None, one}}
        existing = [path for path in paths.values() if path is not None and path.is_file()]
        if not existing:
            raise self._not_found(name, scope)
        if len(existing) > 1:
            raise ValidationError([FieldError("scope", None, f"project or global: {name!r} exists in both")])
        with locked(existing[0], locks=self._locks):
            remove(existing[0])
        return existing[0]

    def apply(self, name: str, options: RunOptions) -> RunOptions:
        """Return the options with fields that have their default value filled from a profile. Raises like `get`."""
        fields, _ = merge([Layer("the call", fields_from_options(options)), self.get(name).layer()])
        return options_from_fields(fields)

    def make_default(self, name: str | None, *, scope: Scope = "project") -> Path:
        """Set the profile of runs that name none; None unsets it. Returns the path of the `config.json`.

        Raises like `get` and `set`.
        """
        if name is not None:
            self.get(name, scope="global" if scope == "global" else None)
        path = self._directory(scope) / FILE
        if name is not None or path.is_file():
            write_config_key(path, "profile", name, private=scope == "global", locks=self._locks)
        return path

    def named_by(self, name: str) -> dict[Scope, Path]:
        """Return the `config.json` files that name this profile as the default. Raises CONFIG_ERROR."""
        configs = {scope: read_config(directory / FILE) for scope, directory in self._directories().items()}
        return {scope: config.path for scope, config in configs.items() if config.profile == name}

    @property
    def has_project(self) -> bool:
        """Whether there is a project directory."""
        return "project" in self._directories()

    def _names(self, scope: Scope | None = None) -> Iterator[str]:
        for one, directory in self._directories().items():
            folder = directory / "profiles"
            if scope in {None, one} and os.path.isdir(folder):  # noqa: PTH112  # False if it may not be accessed
                for path in folder.glob("*.json"):
                    if PROFILE_NAME.fullmatch(path.stem):
                        yield path.stem

    def _path(self, name: str, scope: Scope) -> Path | None:
        directory = self._directories().get(scope)
        return None if directory is None else directory / "profiles" / f"{check_profile_name(name)}.json"

    def _path_to_write(self, name: str, scope: Scope) -> Path:
        return self._directory(scope) / "profiles" / f"{check_profile_name(name)}.json"

    def _directory(self, scope: Scope) -> Path:
        directory = self._directories().get(scope)
        if directory is None:
            raise AgentMuxError("VALIDATION_ERROR", "no .agent-mux here; run `amux init` or use --scope global")
        return directory

    def _not_found(self, name: str, scope: Scope | None) -> AgentMuxError:
        known = sorted(set(self._names(scope)))
        hint = did_you_mean(name, known, f"known: {', '.join(known) or 'none'}")
        where = "" if scope is None else f" in the {scope} directory"
        return AgentMuxError("PROFILE_NOT_FOUND", f"no profile is named {name!r}{where}; {hint}")


def profiles_of(
    config_dir: Path, find_project: Callable[[], Path | None] = project_dir, read: _FileReader | None = None
) -> Profiles:
    """Return the profiles of the global directory and, if there is one, of a project.

    Args:
        config_dir: The global directory.
        find_project: Returns the `.agent-mux` of the project, or None.
        read: A cache of files that may have been read already.
    """

    def directories() -> Mapping[Scope, Path]:
        project = find_project()
        return {**({} if project is None else {"project": project}), "global": config_dir}

    return Profiles(directories, locks=config_dir / "locks", read=read)


def read_profile(
    name: str, paths: Mapping[Scope, Path], read: Callable[[Path], dict[str, Any] | None]
) -> Profile | None:
    """Read and merge the files of a profile, the stronger first; None if none exists. Raises CONFIG_ERROR."""
    content: dict[str, Any] = {}
    fields: dict[str, Any] = {}
    sources: dict[str, Scope] = {}
    existing: dict[Scope, Path] = {}
    warnings: list[str] = []
    for scope, path in paths.items():
        found = read(path)
        if found is not None:
            existing[scope] = path
            fields = deep_merge(fields, parse_profile(path, found))
            content = deep_merge(content, in_milliseconds(found))
            warnings += duration_warnings(path, found)
            sources = {**dict.fromkeys(_leaf_keys(found), scope), **sources}
    if not existing:
        return None
    sources = {key: sources[key] for key in _leaf_keys(content)}
    return Profile(name=name, content=content, fields=fields, sources=sources, paths=existing, warnings=tuple(warnings))


def parse_profile(path: Path, content: Mapping[str, Any]) -> dict[str, Any]:
    """Validate the content of one file and convert it to fields of `RunOptions`. Raises CONFIG_ERROR."""
    problems = Problems(directory=path.parent)
    fields = fields_from_json(content, problems)
    raise_config_error(path, problems)
    fields |= resolve_file_fields(path, fields)
    return fields


def check_profile_name(name: str) -> str:
    """Return the name. Raises `ValidationError` if it is not a valid name of a profile."""
    if not isinstance(name, str) or not PROFILE_NAME.fullmatch(name):
        raise ValidationError([FieldError("profile", name, PROFILE_NAMES)])
    return name


def _leaf_keys(content: Mapping[str, Any], under: str = "") -> Iterator[str]:
    for key, value in content.items():
        if isinstance(value, Mapping) and value:
            yield from _leaf_keys(value, f"{under}{key}.")
        elif value is not None:
            yield f"{under}{key}"


def _check_changes(changes: Mapping[str, Any], directory: Path) -> None:
    """Validate changes by themselves, before the file is read. Raises `ValidationError`."""
    problems = Problems(directory=directory)
    try:
        text = edit_object(EMPTY, changes)
        text.encode()
        alone = parse_object(text, "the profile")
    except (TypeError, ValueError) as error:
        raise ValidationError([FieldError("profile", None, f"what JSON can represent: {error}")]) from error
    for key, value in changes.items():
        if value is None and key.partition(".")[0] not in {*PROFILE_KEYS, *DEPRECATED_KEYS}:
            problems.add_unknown(key, value, PROFILE_KEYS)
    fields_from_json(alone, problems)
    if problems.fields:
        raise ValidationError(problems.fields)
