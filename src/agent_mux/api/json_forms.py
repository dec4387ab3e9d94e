"""The JSON form of public classes: how their values are written, read and described by JSON Schema.

Events and costs are written as in streams, results as by `RunResult.to_dict()`, options as in requests to the service,
pending interactions as in its responses. Reading accepts what the JSON Schema describes; null for an absent field and
deltas without their accumulated text are accepted, too.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from functools import cache
from types import NoneType
from typing import Any, Literal, get_args, get_type_hints

import msgspec

from agent_mux._util.json_schemas import json_schema_components
from agent_mux.api.json_problems import InvalidDataError, Problem, reported_problems
from agent_mux.api.result_schema import (
    ChangedFileView,
    DenialView,
    LedgerView,
    RunErrorView,
    RunResultView,
    TokenUsageView,
    WorktreeView,
    result_schema,
)
from agent_mux.assembler import RunAttempt
from agent_mux.events import (
    ALL_EVENTS,
    BaseEvent,
    CostRecord,
    QuotaWindow,
    UnknownEvent,
    event_from_dict,
    event_to_dict,
    json_schema,
)
from agent_mux.run.changed_files import ChangedFile
from agent_mux.run.ledger import Ledger
from agent_mux.run.result import Denial, RunError, RunResult, TokenUsage
from agent_mux.sdk.interactions import ApprovalDetail, InputDetail, PendingInteraction
from agent_mux.sdk.options import Attachment, McpServer, RetryPolicy, RunOptions
from agent_mux.sdk.policy import Policy, Rule
from agent_mux.settings.layers import non_default_fields
from agent_mux.settings.options_json import camel
from agent_mux.settings.options_schema import request_schema
from agent_mux.settings.requests import REQUEST_KEYS, request_from_json, request_to_json
from agent_mux.worktrees.state import Worktree

Schema = dict[str, Any]


@dataclass(frozen=True, slots=True)
class JsonForm:
    """The JSON form of one class."""

    read: Callable[[Any], Any]
    """Convert JSON values to an instance. Raises `InvalidDataError`."""
    write: Callable[[Any], Any]
    """Convert an instance to JSON values."""
    schema: Callable[[], Schema]
    """Return the JSON Schema; it refers to the classes of `CLASS_BY_NAME` as `#/$defs/NAME`."""
    tag: str | None = None
    """The value of the field `type`."""


@cache
def form_of(kind: Any) -> JsonForm:
    """Return the JSON form of a class. Raises `TypeError` for a class without one."""
    if kind in _FORMS:
        return _FORMS[kind]
    if issubclass(kind, BaseEvent):
        return _event_form(kind)
    if issubclass(kind, msgspec.Struct):
        return _struct_form(kind)
    raise TypeError(f"{kind.__name__} has no JSON form; use one of {', '.join(sorted(CLASS_BY_NAME))}, or an event")


# Events


def _as_object(value: Any) -> dict[str, Any]:
    return msgspec.convert(value, dict[str, Any])


def _event_form(kind: type[BaseEvent]) -> JsonForm:
    def read(value: Any) -> Any:
        with reported_problems():
            event = event_from_dict(_as_object(value))
        if not isinstance(event, kind):
            received = _as_object(value)["type"]
            raise InvalidDataError([Problem(("type",), f"Invalid value {received!r}; expected {kind.type!r}")])
        return event

    return JsonForm(read, event_to_dict, lambda: _event_schemas()[kind.__name__], tag=kind.type)


@cache
def _event_schemas() -> dict[str, Schema]:
    schemas: dict[str, Schema] = json_schema()["$defs"]
    return schemas


def _read_unknown_event(value: Any) -> UnknownEvent:
    with reported_problems():
        plain = _as_object(value)
        msgspec.convert(plain, _TypedObject)
        event = event_from_dict(plain)
    if isinstance(event, UnknownEvent):
        return event
    raise InvalidDataError([Problem(("type",), f"{event.type!r} is a known type of event")])


class _TypedObject(msgspec.Struct):
    type: str


def _unknown_event_schema() -> Schema:
    return {
        "title": "UnknownEvent",
        "description": "An event of a type that this version does not know.",
        "type": "object",
        "properties": {"type": {"type": "string", "not": {"enum": [event.type for event in ALL_EVENTS]}}},
        "required": ["type"],
    }


# Structs and dataclasses


def _struct_form(kind: type[msgspec.Struct]) -> JsonForm:
    def read(value: Any) -> Any:
        with reported_problems():
            return msgspec.convert(value, kind)

    def schema() -> Schema:
        if kind.__name__ in _event_schemas():  # the schema of the stream, in which absent fields are never null
            return _event_schemas()[kind.__name__]
        components: dict[str, Schema] = json_schema_components((kind,), ref_template="#/$defs/{name}")[1]
        return components[kind.__name__]

    return JsonForm(read, msgspec.to_builtins, schema)


def _dataclass_form(kind: type[Any]) -> JsonForm:
    """Return the form of a dataclass: keys in camelCase, without absent fields."""
    shape = _shape_of(kind)

    def read(value: Any) -> Any:
        with reported_problems():
            return kind(**msgspec.structs.asdict(msgspec.convert(value, shape)))

    def write(value: Any) -> Schema:
        return {camel(name): part for name, part in asdict(value).items() if part is not None}

    return JsonForm(read, lambda value: msgspec.to_builtins(write(value)), lambda: _without_nulls(shape))


def _shape_of(kind: type[Any]) -> type[msgspec.Struct]:
    hints = get_type_hints(kind, include_extras=True)
    specs: list[Any] = []
    for spec in fields(kind):
        required = spec.default is MISSING and NoneType not in get_args(hints[spec.name])
        default = None if spec.default is MISSING else spec.default
        specs.append((spec.name, hints[spec.name]) if required else (spec.name, hints[spec.name], default))
    namespace = {"__doc__": kind.__doc__}
    return msgspec.defstruct(kind.__name__, specs, rename="camel", kw_only=True, namespace=namespace)


def _without_nulls(kind: type[msgspec.Struct]) -> Schema:
    (_,), components = json_schema_components((kind,))
    schema: Schema = components[kind.__name__]
    for name, part in schema["properties"].items():
        if part.get("default", ...) is None and "anyOf" in part:
            (schema["properties"][name],) = (choice for choice in part["anyOf"] if choice != {"type": "null"})
    return schema


# Results


def _view_form(kind: Any, view: type[msgspec.Struct]) -> JsonForm:
    def read(value: Any) -> Any:
        with reported_problems():
            msgspec.convert(value, view)
            return kind.from_dict(value)

    return JsonForm(read, lambda value: value.to_dict(), lambda: result_schema()["$defs"][kind.__name__])


def _read_result(value: Any) -> RunResult:
    with reported_problems():
        plain = {name: part for name, part in _as_object(value).items() if part is not None}
        msgspec.convert(plain, RunResultView)
    for index, event in enumerate(plain.get("events", ())):
        with reported_problems(("events", index)):
            event_from_dict(event)
    with reported_problems():
        return RunResult.from_dict(plain)


def _result_schema() -> Schema:
    schema: Schema = result_schema()["$defs"]["RunResult"]
    schema["properties"]["events"] = {"type": "array", "items": {"$ref": "#/$defs/AgentEvent"}}
    return schema


# Options


def _read_options(value: Any) -> RunOptions:
    with reported_problems():
        given = request_from_json(value)
    if "agent" not in given:
        # The keys only: the values may be secrets.
        raise InvalidDataError([Problem(("agent",), "Object missing required field `agent`", True, list(value))])
    if "retry_policy" in given:
        given["retry_policy"] = RetryPolicy(**given["retry_policy"])
    return RunOptions(**given)


def _options_schema() -> Schema:
    schema = request_schema()
    schema["title"] = "RunOptions"
    schema["required"] = ["agent"]
    del schema["$defs"]
    return schema


def _option_form(key: str, kind: Any, name: str, *, is_item: bool = False) -> JsonForm:
    """Return the form of the value of one option, or of an item of it; `name` is the name of its schema."""
    option = REQUEST_KEYS[key]

    def read(value: Any) -> Any:
        with reported_problems(leave_out=2 if is_item else 1):
            found = request_from_json({key: [value] if is_item else value})[option]
        return found[0] if is_item else kind(**found)

    def write(value: Any) -> Any:
        written = request_to_json({option: (value,) if is_item else value})[key]
        return written[0] if is_item else written

    return JsonForm(read, write, lambda: {**request_schema()["$defs"][name], "title": kind.__name__})


# Interactions


class _PendingShape(msgspec.Struct, rename="camel"):
    id: str
    type: Literal["approval", "input"]
    run_id: str
    description: str
    detail: dict[str, Any]
    created_at: int


_DETAILS: Mapping[str, Any] = {"approval": ApprovalDetail, "input": InputDetail}


def _read_pending(value: Any) -> PendingInteraction:
    with reported_problems():
        shape = msgspec.convert(value, _PendingShape)
    with reported_problems(("detail",)):
        detail = form_of(_DETAILS[shape.type]).read(shape.detail)
    return PendingInteraction(shape.id, shape.type, shape.run_id, shape.description, detail, shape.created_at)


def _write_pending(value: PendingInteraction) -> Schema:
    plain = _PendingShape(value.id, value.type, value.run_id, value.description, {}, value.created_at)
    return {**msgspec.to_builtins(plain), "detail": form_of(_DETAILS[value.type]).write(value.detail)}


def _pending_schema() -> Schema:
    (_,), components = json_schema_components((_PendingShape,))
    schema: Schema = components["_PendingShape"]
    schema["properties"]["detail"] = {"anyOf": [{"$ref": f"#/$defs/{kind.__name__}"} for kind in _DETAILS.values()]}
    return {**schema, "title": "PendingInteraction", "description": PendingInteraction.__doc__}


_FORMS: Mapping[type, JsonForm] = {
    UnknownEvent: JsonForm(_read_unknown_event, event_to_dict, _unknown_event_schema),
    RunResult: JsonForm(_read_result, RunResult.to_dict, _result_schema, tag="run_result"),
    RunError: _view_form(RunError, RunErrorView),
    TokenUsage: _view_form(TokenUsage, TokenUsageView),
    Worktree: _view_form(Worktree, WorktreeView),
    Denial: _view_form(Denial, DenialView),
    ChangedFile: _view_form(ChangedFile, ChangedFileView),
    Ledger: _view_form(Ledger, LedgerView),
    RunOptions: JsonForm(_read_options, lambda options: request_to_json(non_default_fields(options)), _options_schema),
    Attachment: _option_form("attachments", Attachment, "SentAttachment", is_item=True),
    McpServer: _option_form("mcpServers", McpServer, "McpServer", is_item=True),
    RetryPolicy: _option_form("retryPolicy", RetryPolicy, "RetryPolicy"),
    PendingInteraction: JsonForm(_read_pending, _write_pending, _pending_schema),
    ApprovalDetail: _dataclass_form(ApprovalDetail),
    InputDetail: _dataclass_form(InputDetail),
}
CLASS_BY_NAME: Mapping[str, type] = {
    **{kind.__name__: kind for kind in (*_FORMS, CostRecord, QuotaWindow, RunAttempt, Policy, Rule)},
    "SentAttachment": Attachment,
}
"""The classes to which schemas refer, by the name of the schema."""
