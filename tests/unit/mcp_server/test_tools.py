"""The schemas and descriptions of the tools, and the arguments that they accept."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from msgspec import UNSET

from agent_mux.errors import AgentMuxError
from agent_mux.mcp_server.requests import AnswerRun, StartRun, WatchRun, parse_request
from agent_mux.mcp_server.server import sanitize_values
from agent_mux.mcp_server.tools import INSTRUCTIONS, TOOLS, ToolSpec

named = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)


@named
def test_schemas_are_valid_and_describe_every_argument(tool: ToolSpec) -> None:
    for schema in (tool.input_schema, tool.output_schema):
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
    for name, field in tool.input_schema["properties"].items():
        assert field.get("description"), name
        assert isinstance(field["type"], str), name
    assert "$ref" not in json.dumps(tool.input_schema)  # several clients do not follow them


def test_descriptions_and_schemas_are_short() -> None:
    tools = [{"name": tool.name, "description": tool.description, "schema": tool.input_schema} for tool in TOOLS]
    assert len(json.dumps(tools)) + len(INSTRUCTIONS) < 8600  # about 2,000 tokens
    assert len({tool.name for tool in TOOLS}) == len(TOOLS)


def test_times_and_money_have_units_in_their_names() -> None:
    for tool in TOOLS:
        for schema in (tool.input_schema, tool.output_schema):
            assert not {"timeout", "wait", "cost", "duration"} & set(schema["properties"])


def test_null_and_numbers_as_text_are_accepted() -> None:
    request = parse_request(WatchRun, {"runId": None, "waitMs": "1000", "after": 3.0})
    assert (request.run_id, request.wait_ms, request.after) == (UNSET, 1000, 3)
    assert parse_request(StartRun, {"agent": "x", "prompt": "y", "keepOpen": "true"}).keep_open


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (None, "missing required field `runId`"),
        ({"runId": "x", "decision": "maybe"}, "Invalid enum value 'maybe'"),
        ({"runId": "x", "decision": "option", "option": -1}, ">= 0"),
        ({"runId": ["x"], "decision": "deny"}, "Expected `str`, got `array`"),
        ({"run_id": "x", "decision": "deny"}, "unknown field `run_id`; the arguments are: runId, decision"),
    ],
)
def test_an_error_names_the_invalid_argument(arguments: Any, words: str) -> None:
    with pytest.raises(AgentMuxError) as caught:
        parse_request(AnswerRun, arguments)
    assert words in str(caught.value)


@pytest.mark.parametrize("cost", ["nan", "inf", float("nan"), float("inf"), 0, -1, 1e300])
def test_no_cost_lifts_a_limit(cost: Any) -> None:
    with pytest.raises(AgentMuxError):
        parse_request(StartRun, {"agent": "x", "prompt": "y", "maxCostUsd": cost})


def test_responses_are_sanitized_recursively() -> None:
    plain = {"a\x1b[2J": ["\x00b\r", {"c": "\u202ed\ud800", "n": 1, "none": None, "f": 0.5, "t": True}]}
    assert sanitize_values(plain) == {"a": ["b", {"c": "d?", "n": 1, "none": None, "f": 0.5, "t": True}]}
