"""Validation of values against a JSON Schema, and its error messages."""

from collections.abc import Mapping
from typing import Any

import pytest

from agent_loop import json_schema
from agent_loop.errors import ConfigurationError
from agent_loop.json_schema import MAX_MESSAGE, check_schema, misfit

CITY = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "districts": {"type": "array", "items": {"$ref": "#/$defs/district"}},
    },
    "required": ["name"],
    "additionalProperties": False,
    "$defs": {"district": {"type": "object", "properties": {"people": {"type": "integer", "minimum": 0}}}},
}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"name": "Oslo"}, None),
        ({"name": "Oslo", "districts": [{"people": 4}]}, None),
        ({"name": "Oslo", "districts": [{"people": 4}, {"people": "four"}]}, "at $.districts[1].people: 'four' is not"),
        ({"name": "Oslo", "districts": [{"people": -1}]}, "at $.districts[0].people: -1 is less than the minimum"),
        ({"name": ""}, "at $.name: '' should be non-empty"),
        ({"name": "Oslo", "mayor": 1}, "at $: Additional properties are not allowed ('mayor' was unexpected)"),
        ([], "at $: [] is not of type 'object'"),
    ],
)
def test_nested_values_must_match_too(value: Any, problem: str | None) -> None:
    message = misfit(CITY, value)
    assert message == problem if problem is None else message is not None and message.startswith(problem)


def test_the_draft_is_the_one_that_the_schema_names() -> None:
    pair = {"items": [{"type": "string"}, {"type": "integer"}]}
    assert misfit({"$schema": "http://json-schema.org/draft-07/schema#", **pair}, ["a", "b"]) is not None
    with pytest.raises(ConfigurationError, match="not a valid JSON Schema"):
        check_schema(pair)


@pytest.mark.parametrize("reference", ["http://127.0.0.1:9/other.json", "#/$defs/missing", "file:///etc/passwd"])
def test_nothing_is_fetched(reference: str) -> None:
    schema = {"properties": {"a": {"$ref": reference}}}
    check_schema(schema)
    assert misfit(schema, {"b": 1}) is None
    with pytest.raises(ConfigurationError, match=r"the output schema refers to .*, which is not in it"):
        misfit(schema, {"a": 1})


@pytest.mark.parametrize(
    "schema", [{"type": "objct"}, {"required": "name"}, {"properties": {"a": 3}}, {"pattern": "("}, {"minimum": "1"}]
)
def test_invalid_schema_is_rejected(schema: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=r"the output schema is not a valid JSON Schema: at \$"):
        check_schema(schema)


def test_endless_nesting_is_invalid_as_value_and_as_schema() -> None:
    value: list[Any] = []
    schema: dict[str, Any] = {}
    for _ in range(5_000):
        value, schema = [value], {"not": schema}
    assert misfit({"type": "array", "items": {"$ref": "#"}}, value) == "the value is nested too deeply"
    assert misfit({"$ref": "#"}, 1) == "the value is nested too deeply"
    with pytest.raises(ConfigurationError, match="nested too deeply"):
        check_schema(schema)


def test_error_message_is_bounded() -> None:
    message = misfit({"type": "integer"}, "x" * 10_000)
    assert message is not None
    assert len(message) == MAX_MESSAGE + len("...")


def test_valid_schema_is_checked_once_and_an_invalid_one_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[object] = []
    check = json_schema._check  # the expensive part

    def count(schema: Mapping[str, Any]) -> None:
        checked.append(schema)
        check(schema)

    monkeypatch.setattr(json_schema, "_check", count)
    valid = {"type": "object", "properties": {"only in this test": {"type": "string"}}}
    for _ in range(2):
        check_schema(valid)
    assert checked == [valid]
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="not a valid JSON Schema"):
            check_schema({**valid, "type": "only in this test"})
    assert len(checked) == 3
