"""Which fields of `RunOptions` may stand in our files, under which keys, and what is said about a key that may not.

Source: run API, section 1 (what is not allowed in a profile).


The fields of `RunOptions` as they stand in our files: camelCase keys, plain JSON, times in milliseconds.

What a field may be is said by `RunOptions` (its type) and by `validate_options` (its range); this module translates.
Source: run API, section 1 (profiles) and section 2.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from typing import Any, get_type_hints

import msgspec

from agent_mux.errors import FieldError, ValidationError
from agent_mux.redaction import HIDDEN
from agent_mux.sdk.options import McpServer, RetryPolicy, RunOptions, validate_options

PER_RUN_FIELDS: Mapping[str, str] = {
    "prompt": "it is what one run is about",
    "attachments": "they are what one run is about",
    "cwd": "files hold for every directory",
    "env": "files are no place for what may be secret",
    "session_id": "it is what one run goes on with",
    "fork_session_id": "it is what one run begins with",
    "no_session": "it is about one session",
    "run_id": "every run has its own",
    "project_id": "it says which project one run is counted to",
    "on_approval_request": "a file cannot hold a function",
    "on_input_required": "a file cannot hold a function",
    "agents_doc": "it is about one run",
    "profile": "a profile cannot name another",
}
"""Fields that no file may say, and why."""

DURATIONS = frozenset({"timeout", "inactivity_timeout", "grace_period", "approval_timeout", "base_delay", "max_delay"})
"""Seconds in Python, milliseconds in files."""


def camel(name: str) -> str:
    """`max_turns` as it is in files: `maxTurns`."""
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


PROFILE_KEYS: Mapping[str, str] = {
    camel(spec.name): spec.name for spec in fields(RunOptions) if spec.name not in PER_RUN_FIELDS
}
"""What a profile may hold: key, and field."""
_REASONS = {camel(name): why for name, why in PER_RUN_FIELDS.items()}


class Problems:
    """Collects what is wrong with an object, by the keys of the file."""

    def __init__(self) -> None:
        self.fields: list[FieldError] = []

    def add(self, path: str, received: Any, allowed: str) -> None:
        """One more."""
        self.fields.append(FieldError(path, received, allowed))

    def unknown(self, path: str, received: Any, known: Iterable[str]) -> None:
        """A key that there is not."""
        key, known = path.rpartition(".")[2], list(known)
        why = _REASONS.get(key)
        if why is not None:
            shown = HIDDEN if key == "env" else received
            self.add(path, shown, f"nothing here: it is for the call alone, because {why}")
            return
        default = f"default{key.capitalize()}"
        close = [default] if default in known else get_close_matches(key, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"one of {', '.join(sorted(known))}"
        self.add(path, received, f"no such key; {hint}")


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


def fields_from_json(
    told: Mapping[str, Any], problems: Problems, *, keys: Mapping[str, str] = PROFILE_KEYS, under: str = ""
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


def is_text_key(key: str) -> bool:
    """What stands under this key is a string, whatever it looks like."""
    name = PROFILE_KEYS.get(key)
    return name is not None and name not in _READERS and (_OTHER.get(name) or _wanted(name))[0] is str


def profile_key_type(key: str) -> Any:
    """The type that is read under a key; None for one that has a reader of its own without a type."""
    return json_type_of_field(PROFILE_KEYS[key])


def json_type_of_field(name: str) -> Any:
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
