"""The known fields of a configuration: validation and JSON Schema."""

from pathlib import Path
from typing import Any

import pytest

from agent_mux.agents.config.schema import config_schema, find_problems
from agent_mux.sdk.config import AgentConfig, ConfigField

CONFIG = AgentConfig(
    files=(),
    fields={
        "policy": ConfigField(kind="string", meaning="what is asked", choices=("never", "always"), or_kinds=("table",)),
        "limits.depth": ConfigField(kind="number", meaning="metres", or_kinds=("string", "list")),
    },
)


@pytest.mark.parametrize(
    "data",
    [{"policy": "never"}, {"policy": {"of": "tools"}}, {"limits": {"depth": 3}}, {"limits": {"depth": "3 m"}}, {}],
)
def test_value_of_any_allowed_kind_is_valid(data: dict[str, Any]) -> None:
    assert find_problems(CONFIG, "global", Path("x"), data) == []


@pytest.mark.parametrize(
    ("data", "allowed"),
    [
        ({"policy": "sometimes"}, "one of never, always or a table"),
        ({"policy": ["never"]}, "one of never, always or a table"),
        ({"limits": {"depth": True}}, "a number or a string or a list"),
    ],
)
def test_invalid_value_is_reported_with_allowed_ones(data: dict[str, Any], allowed: str) -> None:
    [problem] = find_problems(CONFIG, "global", Path("x"), data)
    assert problem.message == allowed


def test_schema_has_choices_at_their_kind() -> None:
    properties = config_schema("Wombat", CONFIG)["properties"]
    assert properties["policy"] == {
        "anyOf": [{"type": "string", "enum": ["never", "always"]}, {"type": "object"}], "description": "what is asked"
    }  # fmt: skip
    depth = properties["limits"]["properties"]["depth"]
    assert [one["type"] for one in depth["anyOf"]] == ["number", "string", "array"]
