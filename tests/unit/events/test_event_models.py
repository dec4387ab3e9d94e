"""The models are those of the spec: same events, same fields, same optionality, same types. Checked both ways.

`spec_events.json` is the spec's text as data: its TypeScript interfaces and its tables of sections 23, 27, 28 and 29.
"""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from event_strategies import EVENTS
from hypothesis import given

from agent_mux import events
from agent_mux.errors import ERROR_CODES
from agent_mux.events import ALL_EVENTS, CATEGORIES, AgentEventType, CostRecord, ErrorEvent, json_schema
from agent_mux.events.base import BaseEvent
from agent_mux.events.guards import category_of, has_correlation_key, is_event_type, is_terminal_event

SPEC: dict[str, Any] = json.loads((Path(__file__).parent / "spec_events.json").read_text())
BY_TYPE = {event.type: event for event in ALL_EVENTS}
OUR_ADDITIONS = {"subagentId", "stopReason", "cacheCreationTokens", "source", "quota", "nextAgent", "nextModel"}
SCHEMA = json_schema()
GUARDS = {
    "session": events.is_session_event,
    "turn": events.is_turn_event,
    "text": events.is_text_event,
    "thinking": events.is_thinking_event,
    "tool": events.is_tool_event,
    "file": events.is_file_event,
    "shell": events.is_shell_event,
    "mcp": events.is_mcp_event,
    "subagent": events.is_subagent_event,
    "plugin": events.is_plugin_event,
    "skill": events.is_skill_event,
    "multimodal": events.is_multimodal_event,
    "cost": events.is_cost_event,
    "interaction": events.is_interaction_event,
    "rate_limit": events.is_rate_limit_event,
    "run_lifecycle": events.is_run_lifecycle_event,
    "error": events.is_error_event,
    "debug": events.is_debug_event,
}


def model_fields(kind: type[msgspec.Struct]) -> dict[str, bool]:
    """Return whether each field is required, by JSON name."""
    return {field.encode_name: field.required for field in msgspec.structs.fields(kind)}


TYPES: dict[str, Any] = {
    "string": lambda shape: shape["type"] == "string",
    "AgentName": lambda shape: shape["type"] == "string",
    "boolean": lambda shape: shape["type"] == "boolean",
    "number": lambda shape: shape["type"] in {"integer", "number"},
    "string[]": lambda shape: shape["type"] == "array" and shape["items"] == {"type": "string"},
    "unknown": lambda shape: "type" not in shape,
    "CostRecord": lambda shape: shape.get("$ref") == "#/$defs/CostRecord",
    "ErrorCode": lambda shape: set(shape["enum"]) == set(ERROR_CODES),
}


def is_of_type(shape: dict[str, Any], typescript: str) -> bool:
    """Return whether a field's JSON schema has the type of the specification."""
    if typescript in TYPES:
        return TYPES[typescript](shape)
    return {f"'{value}'" for value in shape["enum"]} == set(typescript.split(" | "))


def test_events_match_the_specification_in_order() -> None:
    assert [event.type for event in ALL_EVENTS] == [kind for group in SPEC["categories"] for kind in group["types"]]
    assert {event.type: event.__name__ for event in ALL_EVENTS} == {
        kind: specified["interface"] for kind, specified in SPEC["events"].items()
    }


@pytest.mark.parametrize("kind", SPEC["events"])
def test_fields_match_the_specification(kind: str) -> None:
    specified = {**SPEC["base"], **SPEC["events"][kind]["fields"]}
    ours = {"type": True, **model_fields(BY_TYPE[kind])}
    assert {name: field["required"] for name, field in specified.items()} == {
        name: required for name, required in ours.items() if name in specified
    }
    added = set(ours) - set(specified)
    assert added <= OUR_ADDITIONS
    assert not any(ours[name] for name in added)
    shapes = SCHEMA["$defs"][BY_TYPE[kind].__name__]["properties"]
    assert not [
        name for name, field in specified.items() if name != "type" and not is_of_type(shapes[name], field["type"])
    ]
    assert shapes["type"] == {"enum": [kind]}


def test_the_cost_record_matches_the_specification() -> None:
    specified = {name: field["required"] for name, field in SPEC["cost_record"].items()}
    ours = model_fields(CostRecord)
    assert specified == {name: required for name, required in ours.items() if name in specified}
    assert set(ours) - set(specified) == {"cacheCreationTokens", "source"}
    assert not any(ours[name] for name in set(ours) - set(specified))


def test_type_constants_match_the_specification() -> None:
    assert {member.name: member.value for member in AgentEventType} == {kind.upper(): kind for kind in SPEC["events"]}
    assert AgentEventType.TEXT_DELTA == "text_delta"


def test_categories_match_the_specification() -> None:
    assert [[event.type for event in group] for group in CATEGORIES.values()] == [
        group["types"] for group in SPEC["categories"]
    ]
    assert {event.type: category_of(event.type) for event in ALL_EVENTS} == {
        event.type: name for name, group in CATEGORIES.items() for event in group
    }
    assert category_of("not_yet_invented") is None


def test_every_category_has_a_predicate() -> None:
    assert list(GUARDS) == list(CATEGORIES)


@given(EVENTS)
def test_only_the_predicate_of_its_category_accepts_an_event(event: BaseEvent) -> None:
    assert [name for name, guard in GUARDS.items() if guard(event)] == [category_of(event.type)]
    assert [kind for kind in ALL_EVENTS if is_event_type(event, kind)] == [type(event)]


@given(EVENTS)
def test_terminal_events_match_the_specification(event: BaseEvent) -> None:
    listed = event.type in SPEC["terminal"]
    assert is_terminal_event(event) == (listed and not (isinstance(event, ErrorEvent) and event.recoverable))


@given(EVENTS)
def test_correlation_keys_match_the_specification(event: BaseEvent) -> None:
    for key, kinds in SPEC["correlation_keys"].items():
        inside_subagent = key == "subagentId" and event.subagent_id is not None
        asks_for_call = key == "toolCallId" and getattr(event, "tool_call_id", None) is not None  # our addition
        assert has_correlation_key(event, key) == (event.type in kinds or inside_subagent or asks_for_call), key
    assert not has_correlation_key(event, "turnNumber")


@pytest.mark.parametrize(("call", "expected"), [(None, False), ("call_1", True)])
def test_correlation_key_without_a_value_is_absent(call: str | None, *, expected: bool) -> None:
    request = events.ApprovalRequestEvent("R", "a", 1, "i", "shell", "ls", "low", tool_call_id=call)
    assert has_correlation_key(request, "toolCallId") is expected


@given(EVENTS)
def test_events_are_frozen(event: BaseEvent) -> None:
    with pytest.raises(AttributeError):
        event.timestamp = 2  # type: ignore[misc]


def test_all_lists_the_public_names() -> None:
    assert {event.__name__ for event in ALL_EVENTS} <= set(events.__all__)
    assert not [name for name in events.__all__ if not hasattr(events, name)]
