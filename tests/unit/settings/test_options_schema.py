"""The schemas of requests and profiles accept exactly what the readers accept."""

import json
from dataclasses import fields
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agent_mux._util.field_descriptions import field_descriptions_of
from agent_mux.errors import ValidationError
from agent_mux.sdk.options import RunOptions
from agent_mux.settings.options_json import DEPRECATED_KEYS, DURATIONS, PROFILE_KEYS, Problems, camel, fields_from_json
from agent_mux.settings.options_schema import profile_schema, request_schema
from agent_mux.settings.requests import REQUEST_KEYS, request_from_json

REQUEST, PROFILE = Draft202012Validator(request_schema()), Draft202012Validator(profile_schema())
TINY = 2**-30
COUNTS = ("topK", "maxTokens", "maxOutputTokens", "maxModelCalls", "maxTokensTotal", "eventBufferSize")
SIZES = {"args": 1000, "env": 1000, "headers": 1000, "skills": 100, "mcpServers": 100, "tags": 100, "command": 1000}
SERVER = {"name": "docs", "command": "docs"}


def sized(name: str, count: int) -> dict[str, Any]:
    """A request in which one list or object has so many items."""
    words = [f"A{number}" for number in range(count)]
    match name:
        case "args":
            return {"mcpServers": [{**SERVER, "args": words}]}
        case "env" | "headers":
            return {"mcpServers": [{**SERVER, name: dict.fromkeys(words, "x")}]}
        case "mcpServers":
            return {name: [SERVER] * count}
    return {name: words}


def short(content: dict[str, Any]) -> str:
    return json.dumps(content)[:80]


GOOD: list[dict[str, Any]] = [
    {},
    {"agent": "replay", "prompt": ["one", "two"], "timeout": 1.5, "tags": []},
    {"stream": "auto"}, {"stream": True}, {"stream": False}, {"hooks": False}, {"isolation": "worktree"},
    {"extraArgs": ["--x"]}, {"allowedTools": ["Read"]}, {"disallowedTools": []}, {"addDirs": ["/"]},
    {"nativeOptions": {"a.b": [1]}}, {"thinkingOverride": {"effort": "xhigh"}}, {"fallbackModel": "m"},
    {"failOn": ["denied"]}, {"trackChanges": False},
    {"retryPolicy": {"maxAttempts": 1, "baseDelay": 0, "maxDelay": None, "jitter": 0, "retryOn": ["TIMEOUT"]}},
    {"mcpServers": [{"name": "docs", "command": "docs", "args": ["-x"], "env": {"A": "b"}, "url": None}]},
    {"mcpServers": [{"name": "docs", "transport": "sse", "url": "https://x", "headers": {}}]},
    {"outputSchema": {"type": "object"}}, {"temperature": 0}, {"temperature": 2}, {"topP": 0}, {"topP": 1},
    {"thinkingBudgetTokens": 1024}, {"thinkingEffort": "max"}, {"approvalMode": "deny"}, {"sessionId": "x"},
    *({name: 1} for name in COUNTS), *(sized(name, limit) for name, limit in SIZES.items()),
    *({camel(name): 0} for name in ("timeout", "inactivity_timeout", "grace_period", "approval_timeout")),
]  # fmt: skip
BAD: list[dict[str, Any]] = [
    {"nonsense": 1}, {"run_id": "x"}, {"timeout": "1"}, {"timeout": True}, {"tags": "x"}, {"tags": [1]},
    {"stream": "always"}, {"approvalMode": "maybe"}, {"systemPromptMode": ""}, {"thinkingEffort": "none"},
    {"isolation": "house"}, {"extraArgs": [""]}, {"allowedTools": "Read"}, {"disallowedTools": [1]},
    {"addDirs": ["here"]}, {"nativeOptions": []}, {"nativeOptions": {"": 1}}, {"thinkingOverride": 1},
    {"fallbackModel": " "},
    {"failOn": ["tired"]}, {"failOn": "denied"},
    {"hooks": 1}, {"debug": "yes"}, {"agent": 1}, {"model": []}, {"outputSchema": []},
    {"retryPolicy": 3}, {"retryPolicy": {"attempts": 3}}, {"retryPolicy": {"maxAttempts": 0}},
    {"retryPolicy": {"maxAttempts": 1.5}}, {"retryPolicy": {"jitter": -TINY}}, {"retryPolicy": {"retryOn": ["X"]}},
    {"retryPolicy": {"baseDelay": -TINY}}, {"mcpServers": {}}, {"mcpServers": [{}]}, {"mcpServers": [1]},
    {"mcpServers": [{"name": "a b", "command": "x"}]}, {"mcpServers": [{"name": "a", "command": "x", "more": 1}]},
    {"mcpServers": [{"name": "a", "transport": "pigeon", "command": "x"}]}, {"temperature": -TINY},
    {"temperature": 2 + TINY}, {"topP": -TINY}, {"topP": 1 + TINY}, {"thinkingBudgetTokens": 1023},
    {"maxCostUsd": -TINY}, {"sessionId": " "}, {"forkSessionId": ""}, {"runId": "01K"}, {"runId": "8" * 26},
    *(sized(name, limit + 1) for name, limit in SIZES.items()),
    *({name: 0} for name in COUNTS), *({name: 1.5} for name in COUNTS),
    *({camel(name): -TINY} for name in ("timeout", "inactivity_timeout", "grace_period", "approval_timeout")),
]  # fmt: skip


@pytest.mark.parametrize("content", GOOD, ids=short)
def test_valid_request_is_accepted(content: dict[str, Any]) -> None:
    REQUEST.validate(content)
    request_from_json(content)


@pytest.mark.parametrize("content", BAD, ids=short)
def test_invalid_request_is_rejected(content: dict[str, Any]) -> None:
    assert not REQUEST.is_valid(content)
    with pytest.raises(ValidationError):
        request_from_json(content)


@pytest.mark.parametrize("content", [one for one in (*GOOD, *BAD) if set(one) <= set(PROFILE_KEYS)], ids=short)
def test_profile_schema_agrees_with_the_reader(content: dict[str, Any]) -> None:
    problems = Problems()
    fields_from_json(content, problems)
    assert PROFILE.is_valid(content) == (not problems.fields)


@pytest.mark.parametrize("key", REQUEST_KEYS)
def test_null_means_unset(key: str) -> None:
    REQUEST.validate({key: None})
    assert request_from_json({key: None}) == {}


def test_every_key_has_a_description_in_milliseconds() -> None:
    properties = request_schema()["properties"]
    assert set(properties) == {*REQUEST_KEYS, *DEPRECATED_KEYS}
    assert set(profile_schema()["properties"]) == {*PROFILE_KEYS, *DEPRECATED_KEYS}
    assert [key for key, shape in properties.items() if not shape.get("description")] == []
    for name in DURATIONS & {spec.name for spec in fields(RunOptions)}:
        description = properties[camel(name)]["description"]
        assert "illiseconds" in description
        assert "Seconds" not in description


def test_examples_are_valid() -> None:
    for checker in (REQUEST, PROFILE):
        for example in checker.schema["examples"]:
            checker.validate(example)


def test_descriptions_are_those_of_the_annotations() -> None:
    assert field_descriptions_of(RunOptions)["session_id"] == "Continue this session."
    assert field_descriptions_of(int) == {}
    made_now = type("Made", (), {"__annotations__": {"x": int}})
    assert field_descriptions_of(made_now) == {}
