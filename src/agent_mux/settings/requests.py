"""The options of one run as programs send them: one JSON object, with the keys and units of our files.

It may hold what is for one run alone, too (`keys.FOR_THE_CALL`), and rules (`policy`) as an object. Of a callback it
says that there is one: what it would be asked stays pending for whoever asked for the run, in all approval modes that
call it. Source: run API, section 2.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Literal

import msgspec

from agent_mux.errors import FieldError, ValidationError
from agent_mux.redaction import HIDDEN
from agent_mux.sdk.options import Attachment, RunOptions
from agent_mux.sdk.policy import Policy
from agent_mux.settings.fields import from_wire, type_of_field
from agent_mux.settings.keys import Problems, camel
from agent_mux.settings.writing import to_wire

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


def request_from_wire(told: Any) -> dict[str, Any]:
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
    said |= from_wire(rest, problems, keys=REQUEST_KEYS)
    if problems.fields:
        raise ValidationError(problems.fields)
    return said


def request_to_wire(said: Mapping[str, Any]) -> dict[str, Any]:
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
    return told | to_wire({name: value for name, value in rest.items() if value is not None}, keys=REQUEST_KEYS)


def type_in_requests(key: str) -> Any:
    """The type that is read under a key; None for one that has a reader of its own without a type."""
    return _READERS[key][0] if key in _READERS else type_of_field(REQUEST_KEYS[key])


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
