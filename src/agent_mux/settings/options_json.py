"""Run options as JSON: keys, types, and conversion in both directions, for settings files and requests.

Keys are in camelCase, values are plain JSON. Durations have a unit in files (see `durations`) and are milliseconds on
the wire; in Python they are seconds. The types come from `RunOptions`, the ranges from `validate_options`. See
docs/spec/run-api.md, sections 1 and 2.
"""

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from agent_mux._util.durations import as_seconds
from agent_mux._util.suggestions import did_you_mean
from agent_mux.errors import FieldError, ValidationError
from agent_mux.redaction import HIDDEN
from agent_mux.sdk.options import (
    DEPRECATED_FIELDS,
    DURATIONS,
    FAIL_ON,
    McpServer,
    RetryPolicy,
    RunOptions,
    validate_options,
)
from agent_mux.settings.durations import FILE_DURATION, WIRE_DURATION, milliseconds, seconds_from_file
from agent_mux.settings.layers import non_default_fields

PER_RUN_FIELDS: Mapping[str, str] = {
    "prompt": "each run has its own",
    "attachments": "each run has its own",
    "cwd": "files apply in every directory",
    "env": "environments may contain secrets",
    "session_id": "it selects the session of one run",
    "fork_session_id": "it selects the session of one run",
    "session_name": "it selects the session of one run",
    "no_session": "it concerns the session of one run",
    "run_id": "each run has its own",
    "project_id": "it assigns one run to a project",
    "on_approval_request": "a file cannot contain a function",
    "on_input_required": "a file cannot contain a function",
    "tools": "a file cannot contain a function",
    "agents_doc": "it concerns one run",
    "profile": "a profile cannot name another profile",
}
"""Fields that are not allowed in settings files, each with the reason."""


def camel(name: str) -> str:
    """Convert a field name to its JSON key: `max_tokens` to `maxTokens`."""
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


MAX_UNKNOWN = 20
"""Unknown keys of one object that are reported."""
PROFILE_KEYS: Mapping[str, str] = {
    camel(spec.name): spec.name for spec in fields(RunOptions) if spec.name not in PER_RUN_FIELDS
}
"""The keys allowed in a profile, and the field of each."""
DEPRECATED_KEYS: Mapping[str, str] = {camel(old): camel(new) for old, new in DEPRECATED_FIELDS.items()}
"""Old keys that are still read, and the key that replaces each."""
_REASONS = {camel(name): reason for name, reason in PER_RUN_FIELDS.items()}


class Problems:
    """Collects the validation errors of a JSON object."""

    def __init__(self, *, is_wire: bool = False, directory: Path | None = None) -> None:
        """Collect the errors of a JSON object.

        Args:
            is_wire: Whether a program sent it, with durations in milliseconds; else it is a settings file.
            directory: Where relative paths in it start, which is the directory of its file; None: they are refused.
        """
        self.is_wire = is_wire
        self.directory = directory
        self.fields: list[FieldError] = []
        self._unknown = 0

    def add(self, path: str, received: Any, allowed: str) -> None:
        """Add an invalid value; `path` is its JSON path."""
        self.fields.append(FieldError(path, received, allowed))

    def add_unknown(self, path: str, received: Any, known: Iterable[str]) -> None:
        """Add an unknown key, with the nearest known one or the reason why it is not allowed.

        After MAX_UNKNOWN keys, further ones are left out: the search for similar names takes time.
        """
        self._unknown += 1
        if self._unknown > MAX_UNKNOWN:
            return
        key, known = path.rpartition(".")[2], list(known)
        reason = _REASONS.get(key)
        if reason is not None:
            shown = HIDDEN if key == "env" else received
            self.add(path, shown, f"nothing in a settings file ({reason})")
            return
        default = f"default{key.capitalize()}"
        wanted = default if default in known else key
        hint = did_you_mean(wanted, known, f"one of {', '.join(sorted(known))}")
        self.add(path, received, f"no such key; {hint}")


# JSON to fields


def replace_deprecated_keys(content: Mapping[str, Any], problems: Problems, under: str = "") -> dict[str, Any]:
    """Return the object with current keys. An old key beside the current one is added to `problems`."""
    for old, new in DEPRECATED_KEYS.items():
        if content.get(old) is not None and content.get(new) is not None:
            problems.add(f"{under}{old}", content[old], f"only one of {new} and its old name {old}")
    return {DEPRECATED_KEYS.get(key, key): value for key, value in content.items()}


UNRESOLVED = ("Policy", "Responder", "RetryPolicy", "Tool", "HookType", "HookFunction")
"""Names in annotations of `RunOptions` that are imported for type checkers only."""
_HINTS = get_type_hints(RunOptions, localns=dict.fromkeys(UNRESOLVED, Any))
_JSON_TYPES: tuple[tuple[Any, Any, str], ...] = (
    (str, str, "a string"),
    (bool, bool, "true or false"),
    (int, int, "a whole number"),
    (float, float, "a number"),
    (Sequence[str], list[str], "a list of strings"),
    (Mapping[str, Any], dict[str, Any], "an object"),
)
"""Annotated type, JSON type, description for errors. `validate_options` checks literals."""
_SPECIAL_TYPES: Mapping[str, tuple[Any, str]] = {
    "fail_on": (list[str], f"a list of: {', '.join(FAIL_ON)}"),
    "policy": (str, "the path of a file of rules (TOML), relative to this file"),
    "add_dirs": (list[str], "a list of directories"),
    "hooks": (bool, "true or false; functions are allowed for a single run only"),
    "journal": (bool, "true or false; a path is allowed for a single run only"),
}
_RETRY_POLICY_TYPES: Mapping[str, tuple[Any, str]] = {
    "max_attempts": (int, "a whole number"),
    "retry_on": (frozenset[str], "a list of error codes"),
}


def fields_from_json(
    content: Mapping[str, Any], problems: Problems, *, keys: Mapping[str, str] = PROFILE_KEYS, under: str = ""
) -> dict[str, Any]:
    """Convert a JSON object to fields of `RunOptions`. `null` means unset. Errors are added to `problems`.

    Args:
        content: The JSON object.
        problems: Receives the errors.
        keys: The allowed keys and their fields.
        under: The JSON path of the object, with a final dot; empty for the root.
    """
    found = Problems(is_wire=problems.is_wire, directory=problems.directory)
    values: dict[str, Any] = {}
    content = replace_deprecated_keys(content, found, under)
    for key, value in content.items():
        if key not in keys:
            found.add_unknown(f"{under}{key}", value, keys)
        elif value is not None:
            converted = _read_field(keys[key], value, f"{under}{key}", found)
            if converted is not None:
                values[keys[key]] = converted
    if not found.fields:
        _check_ranges(values, content, {name: key for key, name in keys.items()}, under, found)
    problems.fields += found.fields
    return values


def is_text_key(key: str) -> bool:
    """Return whether the value of a key is always a string, even if it looks like a number or like JSON."""
    name = PROFILE_KEYS.get(key)
    return name is not None and name not in _READERS and (_SPECIAL_TYPES.get(name) or _json_type(name))[0] is str


def profile_key_type(key: str) -> Any:
    """Return the JSON type of a key of a profile; None if a reader without a type parses it."""
    return json_type_of_field(PROFILE_KEYS[key])


def json_type_of_field(name: str) -> Any:
    """Return the JSON type of a field; None if a reader without a type parses it. Literals keep their annotation."""
    if name in _READERS:
        return _READER_TYPES.get(name)
    wanted, _ = _SPECIAL_TYPES.get(name) or _json_type(name)
    return _HINTS[name] if wanted is Any else wanted


def _read_field(name: str, value: Any, path: str, problems: Problems) -> Any:
    reader = _READERS.get(name)
    if reader is not None:
        return reader(value, path, problems)
    if name in DURATIONS:
        return _read_duration(value, path, problems)
    wanted, allowed = _SPECIAL_TYPES.get(name) or _json_type(name)
    converted = _convert(value, wanted, allowed, path, problems)
    if name == "add_dirs" and converted is not None and problems.directory is not None:
        return [os.path.abspath(problems.directory / one) for one in converted]  # noqa: PTH100  # resolves `..` only
    return converted


def _read_duration(value: Any, path: str, problems: Problems) -> float | None:
    """Return the seconds of a duration: on the wire a number of milliseconds, in files also a text with a unit."""
    seconds = None if problems.is_wire and isinstance(value, str) else seconds_from_file(value)
    if seconds is None:
        problems.add(path, value, WIRE_DURATION if problems.is_wire else FILE_DURATION)
    return seconds


def _json_type(name: str) -> tuple[Any, str]:
    hint = _HINTS[name]
    for annotated, json_type, description in _JSON_TYPES:
        if hint in (annotated, annotated | None):
            return json_type, description
    return Any, "see the documentation of RunOptions"


def _convert(value: Any, wanted: Any, allowed: str, path: str, problems: Problems) -> Any:
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError:
        problems.add(path, value, allowed)
        return None


def _read_retry_policy(value: Any, path: str, problems: Problems) -> dict[str, Any] | None:
    """Convert the fields of a retry policy that are present."""
    known = {camel(spec.name): spec for spec in fields(RetryPolicy)}
    if not isinstance(value, dict):
        problems.add(path, value, f"an object of {', '.join(known)}")
        return None
    result: dict[str, Any] = {}
    for key, part in value.items():
        if key not in known:
            problems.add_unknown(f"{path}.{key}", part, known)
        elif part is not None:
            name = known[key].name
            if name in DURATIONS:
                result[name] = _read_duration(part, f"{path}.{key}", problems)
                continue
            wanted, allowed = _RETRY_POLICY_TYPES.get(name, (float, "a number"))
            result[name] = _convert(part, wanted, allowed, f"{path}.{key}", problems)
    return result


def _read_mcp_servers(value: Any, path: str, problems: Problems) -> tuple[McpServer, ...] | None:
    if not isinstance(value, list):
        problems.add(path, value, "a list of objects with name, transport, command, args, env, url and headers")
        return None
    servers = [_read_mcp_server(item, f"{path}[{index}]", problems) for index, item in enumerate(value)]
    return tuple(server for server in servers if server is not None)


def _read_mcp_server(value: Any, path: str, problems: Problems) -> McpServer | None:
    known = [spec.name for spec in fields(McpServer)]
    if not isinstance(value, dict):
        problems.add(path, value, f"an object of {', '.join(known)}")
        return None
    for key in value:
        if key not in known:
            problems.add_unknown(f"{path}.{key}", "(hidden)", known)
            return None
    try:
        return msgspec.convert(value, McpServer)
    except msgspec.ValidationError as error:
        problems.add(path, value.get("name"), str(error))
        return None


_READERS: Mapping[str, Callable[[Any, str, Problems], Any]] = {
    "retry_policy": _read_retry_policy,
    "mcp_servers": _read_mcp_servers,
}
_READER_TYPES: Mapping[str, Any] = {"mcp_servers": list[McpServer]}


def _check_ranges(
    values: Mapping[str, Any], content: Mapping[str, Any], keys: Mapping[str, str], under: str, problems: Problems
) -> None:
    """Validate the values like the options of a run, and report errors with JSON keys and units."""
    checked = {name: value for name, value in values.items() if name not in {"policy", "agent"}}
    try:
        validate_options(RunOptions(agent="-", prompt="-", **checked))
    except ValidationError as error:
        for one in error.fields:
            name, dot, rest = one.path.partition(".")
            field, bracket, index = name.partition("[")
            key = keys.get(field, field)
            path = f"{under}{key}{bracket}{index}{dot}{camel(rest)}"
            received = content.get(key) if not rest and not bracket else one.received
            problems.add(path, received, _in_milliseconds(field, rest, one.allowed))


def _in_milliseconds(name: str, part: str, allowed: str) -> str:
    return f"{allowed}, in milliseconds" if {name, part} & DURATIONS else allowed


# Fields to JSON


def fields_to_json(values: Mapping[str, Any], *, keys: Mapping[str, str] = PROFILE_KEYS) -> dict[str, Any]:
    """Convert fields of `RunOptions` to a JSON object. `keys`: the allowed keys.

    Raises `ValidationError` for a key that is not allowed, and for a number that JSON cannot represent.
    """
    problems = Problems()
    content: dict[str, Any] = {}
    for given, value in values.items():
        name = DEPRECATED_FIELDS.get(given, given)
        if camel(name) not in keys:
            problems.add_unknown(camel(name), value, keys)
        elif isinstance(value, float) and not math.isfinite(value):
            problems.add(camel(name), value, "a finite number")
        else:
            content[camel(name)] = _write_field(name, value)
    if problems.fields:
        raise ValidationError(problems.fields)
    return content


def _write_field(name: str, value: Any) -> Any:
    seconds: Any = as_seconds(value) if name in DURATIONS else None
    if isinstance(seconds, int | float) and not isinstance(seconds, bool):
        return milliseconds(seconds)
    if name == "retry_policy" and isinstance(value, RetryPolicy | Mapping):
        parts = non_default_fields(value) if isinstance(value, RetryPolicy) else value
        return {camel(part): _write_field(part, item) for part, item in parts.items()}
    return _to_plain(value)


def _to_plain(value: Any) -> Any:
    """Convert a value to plain JSON types; other types are unchanged and rejected later."""
    match value:
        case McpServer():
            return {key: list(item) if isinstance(item, tuple) else item for key, item in asdict(value).items() if item}
        case os.PathLike():
            return os.fspath(value)
        case frozenset() | set():
            return sorted(value)
        case list() | tuple():
            return [_to_plain(item) for item in value]
    return value
