"""The options of one run as programs send them: one JSON object, with the keys and units of our files.

It may hold what is for one run alone, too (`keys.FOR_THE_CALL`), and rules (`policy`) as an object. Of a callback it
says that there is one: what it would be asked stays pending for whoever asked for the run, in all approval modes that
call it. Source: run API, section 2.


Fields of `RunOptions`, given by a program, as they stand in our files.
"""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Literal

import msgspec

from agent_mux.errors import FieldError, ValidationError
from agent_mux.redaction import HIDDEN
from agent_mux.sdk.options import Attachment, McpServer, RetryPolicy, RunOptions
from agent_mux.sdk.policy import Policy
from agent_mux.settings.layers import non_default_fields
from agent_mux.settings.options_json import (
    DURATIONS,
    PROFILE_KEYS,
    Problems,
    camel,
    fields_from_json,
    json_type_of_field,
)

NOT_SENT = frozenset({"journal", "collect_events"})
"""Fields that mean something only where the caller is."""
PENDING = "pending"
"""What a request says of a callback: whoever asked for the run answers; until then, it is pending."""
REQUEST_KEYS: Mapping[str, str] = {
    camel(spec.name): spec.name for spec in fields(RunOptions) if spec.name not in NOT_SENT
}
"""What a request may hold: key, and field."""
_TEXT = "a string"


class SentAttachment(msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """A file for the agent to see: exactly one of a path on the machine of the service, a URL or inline data."""

    file_path: str | None = None
    url: str | None = None
    base64: str | None = None
    mime_type: str | None = None


def request_from_json(told: Any) -> dict[str, Any]:
    """The fields of `RunOptions` that a request says; `null` says nothing. Raises `ValidationError` by its keys."""
    if not isinstance(told, Mapping):
        raise ValidationError([FieldError("(request)", type(told).__name__, "a JSON object of options")])
    problems = Problems()
    said: dict[str, Any] = {}
    for key, (kind, allowed, make) in _READERS.items():
        if told.get(key) is not None:
            try:
                said[REQUEST_KEYS[key]] = make(msgspec.convert(told[key], kind))
            except msgspec.ValidationError as error:
                problems.add(key, HIDDEN if key in _HIDDEN else told[key], f"{allowed} ({error})")
    rest = {key: value for key, value in told.items() if key not in _READERS}
    said |= fields_from_json(rest, problems, keys=REQUEST_KEYS)
    if problems.fields:
        raise ValidationError(problems.fields)
    return said


def request_to_json(said: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of `RunOptions` as a request has them. Raises `ValidationError` for what cannot be sent."""
    bad = [
        FieldError(camel(name), value, "nothing: it cannot be sent to a service")
        for name, value in said.items()
        if name in NOT_SENT and value
    ]
    if bad:
        raise ValidationError(bad)
    special = {name: value for name, value in said.items() if camel(name) in _READERS and value is not None}
    told = {camel(name): _sent(value) for name, value in special.items()}
    rest = {name: value for name, value in said.items() if name not in special and name not in NOT_SENT}
    return told | fields_to_json({name: value for name, value in rest.items() if value is not None}, keys=REQUEST_KEYS)


def request_key_type(key: str) -> Any:
    """The type that is read under a key; None for one that has a reader of its own without a type."""
    return _READERS[key][0] if key in _READERS else json_type_of_field(REQUEST_KEYS[key])


def _sent(value: Any) -> Any:
    if callable(value):
        return PENDING
    match value:
        case Policy():
            return msgspec.to_builtins(value)
        case Path():
            return str(value)
        case str() | Mapping():
            return value
    return [msgspec.to_builtins(SentAttachment(**asdict(one))) if isinstance(one, Attachment) else one for one in value]


def leave_pending(_: Any) -> None:
    """The callback of a run whose caller answers from elsewhere."""


def _attachments(told: list[SentAttachment]) -> tuple[Attachment, ...]:
    return tuple(Attachment(**msgspec.structs.asdict(one)) for one in told)


_READERS: Mapping[str, tuple[Any, str, Callable[[Any], Any]]] = {
    "prompt": (str | list[str], "a string or a list of strings", lambda prompt: prompt),
    "cwd": (str, _TEXT, Path),
    "agentsDoc": (str, _TEXT, Path),
    "env": (dict[str, str], "an object of strings", dict),
    "attachments": (list[SentAttachment], "a list of objects with filePath, url, base64, mimeType", _attachments),
    "policy": (Policy, "an object with rules, default, timeout and on_timeout", lambda policy: policy),
    **dict.fromkeys(
        ("onApprovalRequest", "onInputRequired"),
        (Literal["pending"], f"{PENDING!r}: whoever asked for the run answers", lambda _: leave_pending),
    ),
}
_HIDDEN = frozenset({"env", "attachments"})


def fields_to_json(said: Mapping[str, Any], *, keys: Mapping[str, str] = PROFILE_KEYS) -> dict[str, Any]:
    """Fields as they stand in a file. `keys`: those that are allowed. Raises VALIDATION_ERROR for what cannot."""
    problems = Problems()
    told: dict[str, Any] = {}
    for name, value in said.items():
        if camel(name) not in keys:
            problems.unknown(camel(name), value, keys)
        elif isinstance(value, float) and not math.isfinite(value):
            problems.add(camel(name), value, "a number that JSON has")
        else:
            told[camel(name)] = _written(name, value)
    if problems.fields:
        raise ValidationError(problems.fields)
    return told


def _written(name: str, value: Any) -> Any:
    if name in DURATIONS and isinstance(value, int | float) and not isinstance(value, bool):
        milliseconds = round(value * 1000, 6)  # 16.109 * 1000 is not 16109
        return int(milliseconds) if milliseconds == int(milliseconds) else milliseconds
    if name == "retry_policy" and isinstance(value, RetryPolicy | Mapping):
        parts = non_default_fields(value) if isinstance(value, RetryPolicy) else value
        return {camel(part): _written(part, one) for part, one in parts.items()}
    return _plain(value)


def _plain(value: Any) -> Any:
    """As JSON has it; what it has no word for stays as it is, and is complained about later."""
    match value:
        case McpServer():
            return {key: list(one) if isinstance(one, tuple) else one for key, one in asdict(value).items() if one}
        case os.PathLike():
            return os.fspath(value)
        case frozenset() | set():
            return sorted(value)
        case list() | tuple():
            return [_plain(one) for one in value]
    return value
