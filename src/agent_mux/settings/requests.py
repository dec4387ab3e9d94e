"""The options of one run as a JSON object, as programs send them to a service or an MCP server.

The keys are those of settings files, and the fields that are allowed for single runs only
(`options_json.PER_RUN_FIELDS`). Durations are numbers of milliseconds, `policy` is an object of rules. A callback is
sent as the string `pending`: its questions stay pending until the client answers them, in all approval modes that use
the callback. See docs/spec/run-api.md, section 2.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Literal

import msgspec

from agent_mux.errors import FieldError, ValidationError
from agent_mux.redaction import HIDDEN
from agent_mux.sdk.interactions import Defer
from agent_mux.sdk.options import MAX_ITEMS, Attachment, RunOptions
from agent_mux.sdk.policy import Policy
from agent_mux.settings.options_json import Problems, camel, fields_from_json, fields_to_json, json_type_of_field

NOT_SENT = frozenset({"journal", "collect_events", "tools"})
"""Fields that have a meaning only in the process of the caller."""
PENDING = "pending"
"""The JSON value of a callback: questions stay pending until the client answers them."""
REQUEST_KEYS: Mapping[str, str] = {
    camel(spec.name): spec.name for spec in fields(RunOptions) if spec.name not in NOT_SENT
}
"""The keys allowed in a request, and the field of each."""
_STRING = "a string"


class SentAttachment(msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """A file for the agent to see: exactly one of a path on the machine of the service, a URL or inline data."""

    file_path: str | None = None
    url: str | None = None
    base64: str | None = None
    mime_type: str | None = None


def request_from_json(content: Any) -> dict[str, Any]:
    """Convert a request to fields of `RunOptions`. `null` means unset. Raises `ValidationError` with the JSON keys."""
    if not isinstance(content, Mapping):
        raise ValidationError([FieldError("(request)", type(content).__name__, "a JSON object of options")])
    problems = Problems(is_wire=True)
    values: dict[str, Any] = {}
    for key, (kind, allowed, convert) in _READERS.items():
        if content.get(key) is not None:
            try:
                values[REQUEST_KEYS[key]] = convert(msgspec.convert(content[key], kind))
            except msgspec.ValidationError as error:
                problems.add(key, HIDDEN if key in _HIDDEN else content[key], f"{allowed} ({error})")
            else:
                _check_size(key, values[REQUEST_KEYS[key]], problems)
    rest = {key: value for key, value in content.items() if key not in _READERS}
    values |= fields_from_json(rest, problems, keys=REQUEST_KEYS)
    if problems.fields:
        raise ValidationError(problems.fields)
    return values


def request_to_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert fields of `RunOptions` to a request. Raises `ValidationError` for fields that cannot be sent."""
    not_sent = [
        FieldError(camel(name), value, "nothing: it cannot be sent to a service")
        for name, value in values.items()
        if name in NOT_SENT and value
    ]
    if not_sent:
        raise ValidationError(not_sent)
    special = {name: value for name, value in values.items() if camel(name) in _READERS and value is not None}
    content = {camel(name): _write_special(value) for name, value in special.items()}
    rest = {name: value for name, value in values.items() if name not in special and name not in NOT_SENT}
    return content | fields_to_json(
        {name: value for name, value in rest.items() if value is not None}, keys=REQUEST_KEYS
    )


def request_key_type(key: str) -> Any:
    """Return the JSON type of a key of a request; None if a reader without a type parses it."""
    return _READERS[key][0] if key in _READERS else json_type_of_field(REQUEST_KEYS[key])


def leave_pending(_: Any) -> Defer:
    """Leave a request pending: the callback of runs whose client answers through the service."""
    return Defer()


def _check_size(key: str, value: Any, problems: Problems) -> None:
    limit = MAX_ITEMS.get(REQUEST_KEYS[key])
    if limit is not None and not isinstance(value, str) and len(value) > limit:
        problems.add(key, f"{len(value)} items", f"at most {limit} items")


def _write_special(value: Any) -> Any:
    if callable(value):
        return PENDING
    match value:
        case Policy():
            return msgspec.to_builtins(value)
        case Path():
            return str(value)
        case str() | Mapping():
            return value
    return [
        msgspec.to_builtins(SentAttachment(**asdict(item))) if isinstance(item, Attachment) else item for item in value
    ]


def _read_attachments(sent: list[SentAttachment]) -> tuple[Attachment, ...]:
    return tuple(Attachment(**msgspec.structs.asdict(one)) for one in sent)


_READERS: Mapping[str, tuple[Any, str, Callable[[Any], Any]]] = {
    "prompt": (str | list[str], "a string or a list of strings", lambda prompt: prompt),
    "cwd": (str, _STRING, Path),
    "agentsDoc": (str, _STRING, Path),
    "env": (dict[str, str], "an object of strings", dict),
    "attachments": (list[SentAttachment], "a list of objects with filePath, url, base64, mimeType", _read_attachments),
    "policy": (Policy, "an object with rules, default, timeout and on_timeout", lambda policy: policy),
    **dict.fromkeys(
        ("onApprovalRequest", "onInputRequired"),
        (Literal["pending"], f"{PENDING!r}: the client answers through the service", lambda _: leave_pending),
    ),
}
"""JSON type, description for errors, and conversion of the keys that settings files do not have or have differently."""
_HIDDEN = frozenset({"env", "attachments"})
"""Keys whose values do not appear in errors."""
