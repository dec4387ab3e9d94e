"""The fields of `RunOptions` as they stand in our files: camelCase keys, plain JSON, times in milliseconds.

What a field may be is said by `RunOptions` (its type) and by `validate_options` (its range); this module translates.
Source: run API, section 1 (profiles) and section 2.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, get_type_hints

import msgspec

from agent_mux.errors import ValidationError
from agent_mux.sdk.options import McpServer, RetryPolicy, RunOptions, validate_options
from agent_mux.settings.keys import DURATIONS, KEYS, Problems, camel

_HINTS = get_type_hints(RunOptions, localns={"Policy": Any, "Responder": Any, "RetryPolicy": Any})
_PHRASES: tuple[tuple[Any, Any, str], ...] = (
    (str, str, "a string"),
    (bool, bool, "true or false"),
    (int, int, "a whole number"),
    (float, float, "a number"),
    (Sequence[str], list[str], "a list of strings"),
    (Mapping[str, Any], dict[str, Any], "an object"),
)
"""How a type is annotated, what is read, and how it is called. Literals are checked by `validate_options`."""
_OTHER: Mapping[str, tuple[Any, str]] = {
    "policy": (str, "the path of a file of rules (TOML), relative to this file"),
    "journal": (bool, "true or false; a path is for one run"),
}
_RETRY: Mapping[str, tuple[Any, str]] = {
    "max_attempts": (int, "a whole number"),
    "retry_on": (frozenset[str], "a list of error codes"),
}


def from_wire(
    told: Mapping[str, Any], problems: Problems, *, keys: Mapping[str, str] = KEYS, under: str = ""
) -> dict[str, Any]:
    """The fields that an object of a file says; `null` says nothing. What is wrong goes to `problems`.

    `keys`: those that are allowed, with their fields; `under`: the path of the object, with a dot at its end.
    """
    found = Problems()
    said: dict[str, Any] = {}
    for key, value in told.items():
        if key not in keys:
            found.unknown(f"{under}{key}", value, keys)
        elif value is not None:
            made = _read(keys[key], value, f"{under}{key}", found)
            if made is not None:
                said[keys[key]] = made
    if not found.fields:
        _check(said, told, {name: key for key, name in keys.items()}, under, found)
    problems.fields += found.fields
    return said


def takes_text(key: str) -> bool:
    """What stands under this key is a string, whatever it looks like."""
    name = KEYS.get(key)
    return name is not None and name not in _READERS and (_OTHER.get(name) or _wanted(name))[0] is str


def type_in_files(key: str) -> Any:
    """The type that is read under a key; None for one that has a reader of its own without a type."""
    return type_of_field(KEYS[key])


def type_of_field(name: str) -> Any:
    """The same by the name of a field, wherever it stands. Literals are those of `RunOptions`."""
    if name in _READERS:
        return _READ_TYPES.get(name)
    wanted, _ = _OTHER.get(name) or _wanted(name)
    return _HINTS[name] if wanted is Any else wanted


def _read(name: str, value: Any, path: str, problems: Problems) -> Any:
    special = _READERS.get(name)
    if special is not None:
        return special(value, path, problems)
    wanted, allowed = _OTHER.get(name) or _wanted(name)
    made = _converted(value, wanted, allowed, path, problems)
    return made / 1000 if name in DURATIONS and made is not None else made


def _wanted(name: str) -> tuple[Any, str]:
    hint = _HINTS[name]
    for annotated, read, phrase in _PHRASES:
        if hint in (annotated, annotated | None):
            return read, phrase
    return Any, "as the documentation says"


def _converted(value: Any, wanted: Any, allowed: str, path: str, problems: Problems) -> Any:
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError:
        problems.add(path, value, allowed)
        return None


def _retry_policy(value: Any, path: str, problems: Problems) -> dict[str, Any] | None:
    """Its fields, as far as they are said."""
    known = {camel(spec.name): spec for spec in fields(RetryPolicy)}
    if not isinstance(value, dict):
        problems.add(path, value, f"an object of {', '.join(known)}")
        return None
    made: dict[str, Any] = {}
    for key, part in value.items():
        if key not in known:
            problems.unknown(f"{path}.{key}", part, known)
        elif part is not None:
            name = known[key].name
            read = _converted(part, *_RETRY.get(name, (float, "a number")), f"{path}.{key}", problems)
            made[name] = read / 1000 if name in DURATIONS and read is not None else read
    return made


def _mcp_servers(value: Any, path: str, problems: Problems) -> tuple[McpServer, ...] | None:
    if not isinstance(value, list):
        problems.add(path, value, "a list of objects with name, transport, command, args, env, url and headers")
        return None
    made = [_mcp_server(one, f"{path}[{index}]", problems) for index, one in enumerate(value)]
    return tuple(server for server in made if server is not None)


def _mcp_server(value: Any, path: str, problems: Problems) -> McpServer | None:
    known = [spec.name for spec in fields(McpServer)]
    if not isinstance(value, dict):
        problems.add(path, value, f"an object of {', '.join(known)}")
        return None
    for key in value:
        if key not in known:
            problems.unknown(f"{path}.{key}", "(hidden)", known)
            return None
    try:
        return msgspec.convert(value, McpServer)
    except msgspec.ValidationError as error:
        problems.add(path, value.get("name"), str(error))
        return None


_READERS: Mapping[str, Callable[[Any, str, Problems], Any]] = {
    "retry_policy": _retry_policy,
    "mcp_servers": _mcp_servers,
}
_READ_TYPES: Mapping[str, Any] = {"mcp_servers": list[McpServer]}


def _check(
    said: Mapping[str, Any], told: Mapping[str, Any], keys: Mapping[str, str], under: str, problems: Problems
) -> None:
    """Ranges: as for any run."""
    plain = {name: value for name, value in said.items() if name not in {"policy", "agent"}}
    if "retry_policy" in plain:
        plain["retry_policy"] = RetryPolicy(**plain["retry_policy"])
    try:
        validate_options(RunOptions(agent="-", prompt="-", **plain))
    except ValidationError as error:
        for one in error.fields:
            name, dot, rest = one.path.partition(".")
            field, bracket, index = name.partition("[")
            key = keys.get(field, field)
            path = f"{under}{key}{bracket}{index}{dot}{camel(rest)}"
            as_told = told.get(key) if not rest and not bracket else one.received
            problems.add(path, as_told, _in_milliseconds(field, rest, one.allowed))


def _in_milliseconds(name: str, part: str, allowed: str) -> str:
    return f"{allowed}, in milliseconds" if {name, part} & DURATIONS else allowed
