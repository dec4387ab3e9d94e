"""Options as JSON: allowed keys, conversion in both directions, and errors."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_mux.errors import ValidationError
from agent_mux.sdk.options import McpServer, RetryPolicy, RunOptions
from agent_mux.settings.options_json import (
    PER_RUN_FIELDS,
    PROFILE_KEYS,
    Problems,
    camel,
    fields_from_json,
    fields_to_json,
)

NOT_IN_A_PROFILE = {
    "prompt", "onApprovalRequest", "onInputRequired", "env", "cwd", "sessionId", "forkSessionId", "noSession",
    "sessionName", "attachments", "runId", "projectId", "profile", "agentsDoc", "tools",
}  # fmt: skip
"""See docs/spec/run-api.md, section 1."""


def read(content: dict[str, Any]) -> dict[str, Any]:
    problems = Problems()
    fields = fields_from_json(content, problems)
    assert problems.fields == []
    return fields


def wrong_in(content: dict[str, Any]) -> list[tuple[str, str]]:
    problems = Problems()
    fields_from_json(content, problems)
    return [(one.path, str(one)) for one in problems.fields]


def test_profiles_allow_all_but_per_run_fields() -> None:
    every = {camel(spec.name) for spec in fields(RunOptions)}
    assert every - set(PROFILE_KEYS) == NOT_IN_A_PROFILE
    assert {camel(name) for name in PER_RUN_FIELDS} == NOT_IN_A_PROFILE


@pytest.mark.parametrize("key", sorted(NOT_IN_A_PROFILE))
def test_per_run_field_is_rejected_with_the_reason(key: str) -> None:
    [(path, problem)] = wrong_in({key: "hunter2" if key == "env" else "x"})
    assert path == key
    assert "nothing in a settings file (" in problem
    assert "hunter2" not in problem


def test_durations_are_in_milliseconds() -> None:
    content = {"timeout": 1500, "inactivityTimeout": 0, "gracePeriod": 10, "approvalTimeout": 2000}
    content["retryPolicy"] = {"baseDelay": 250, "maxAttempts": 2, "jitter": 0.5, "retryOn": ["TIMEOUT"]}
    fields = read(content)
    assert fields == {
        "timeout": 1.5, "inactivity_timeout": 0.0, "grace_period": 0.01, "approval_timeout": 2.0,
        "retry_policy": {
            "base_delay": 0.25, "max_attempts": 2, "jitter": 0.5, "retry_on": frozenset({"TIMEOUT"}),
        },
    }  # fmt: skip
    assert fields_to_json(fields) == content


def test_null_means_unset() -> None:
    assert read({"model": None, "timeout": None, "retryPolicy": {"jitter": None}}) == {"retry_policy": {}}


GOOD: dict[str, Any] = {
    "agent": "a", "model": "m", "command": ["x", "-y"], "systemPrompt": "s", "systemPromptMode": "replace",
    "thinkingEffort": "max", "thinkingBudgetTokens": 1024, "temperature": 2, "topP": 0.5, "topK": 1, "maxTokens": 1,
    "maxOutputTokens": 1, "stream": False, "outputSchema": {"type": "object"}, "inheritEnv": False, "timeout": 1,
    "inactivityTimeout": 1, "gracePeriod": 1, "maxModelCalls": 1, "maxCostUsd": 0.5, "maxTokensTotal": 1,
    "approvalMode": "yolo", "policy": "rules.toml", "approvalTimeout": 0, "collectEvents": True, "eventBufferSize": 1,
    "mcpServers": [{"name": "files", "command": "npx", "args": ["x"], "env": {"A": "b"}}],
    "tags": ["t"], "retryPolicy": {"maxAttempts": 1}, "interactive": True, "includeSubagentEvents": True,
    "debug": True, "journal": False, "hooks": False, "skills": ["/x"], "isolation": "worktree", "carryChanges": False,
    "setupCommand": ["npm", "ci"],
    "trackChanges": False, "failOn": ["denied", "length"],
    "thinkingOverride": {"effort": "xhigh"}, "fallbackModel": "m", "addDirs": ["/"], "allowedTools": ["Read"],
    "disallowedTools": ["Bash"], "extraArgs": ["--flag"], "nativeOptions": {"a.b": 1},
    "waitForQuota": 60_000, "maxTextBytes": 4096, "fallback": ["codex", "claude:haiku"],
}  # fmt: skip


def test_every_key_round_trips() -> None:
    assert set(GOOD) == set(PROFILE_KEYS)
    fields = read(GOOD)
    assert set(fields) == set(PROFILE_KEYS.values())
    assert fields["mcp_servers"] == (McpServer("files", command="npx", args=("x",), env={"A": "b"}),)
    again = fields_to_json(fields)
    assert {key: value for key, value in again.items() if key != "mcpServers"} == {
        key: value for key, value in GOOD.items() if key != "mcpServers"
    }
    assert read(again) == fields


@pytest.mark.parametrize("key", sorted(set(GOOD) - {"outputSchema"}))
@pytest.mark.parametrize("value", [{"x": 1}, [[]], float(10**20) * 10**300, -1, True, "", "x"])
def test_wrong_types_are_reported_as_problems(key: str, value: Any) -> None:
    for path, problem in wrong_in({key: value}):
        assert path.startswith(key)
        assert "allowed: " in problem


@pytest.mark.parametrize(
    ("content", "path", "message"),
    [
        ({"timeout": -5}, "timeout", "got -5; allowed: a number >= 0, in milliseconds"),
        ({"timeout": "5x"}, "timeout", "got '5x'; allowed: a duration with a unit"),
        ({"timeout": True}, "timeout", "got True; allowed: a duration with a unit"),
        ({"temperature": 3}, "temperature", "allowed: a number from 0 to 2"),
        ({"approvalMode": "yes"}, "approvalMode", "got 'yes'; allowed: yolo, prompt, deny"),
        ({"stream": 1}, "stream", "got 1; allowed: auto, True, False"),
        ({"model": 5}, "model", "got 5; allowed: a string"),
        ({"tags": "one"}, "tags", "allowed: a list of strings"),
        ({"debug": "yes"}, "debug", "allowed: true or false"),
        ({"maxModelCalls": 1.5}, "maxModelCalls", "allowed: a whole number"),
        ({"journal": "/tmp/x"}, "journal", "a path is allowed for a single run only"),
        ({"aprovalMode": "deny"}, "aprovalMode", "no such key; did you mean 'approvalMode'?"),
        ({"approval_mode": "deny"}, "approval_mode", "did you mean 'approvalMode'?"),
        ({"zzz": 1}, "zzz", "no such key; one of addDirs, agent, "),
        ({"retryPolicy": {"maxAtempts": 1}}, "retryPolicy.maxAtempts", "did you mean 'maxAttempts'?"),
        ({"retryPolicy": {"maxAttempts": 0}}, "retryPolicy.maxAttempts", "a whole number >= 1"),
        ({"retryPolicy": {"retryOn": ["NOPE"]}}, "retryPolicy.retryOn[0]", "RATE_LIMITED"),
        ({"retryPolicy": {"baseDelay": -1}}, "retryPolicy.baseDelay", "in milliseconds"),
        ({"retryPolicy": 3}, "retryPolicy", "an object of maxAttempts"),
        ({"mcpServers": {"files": {}}}, "mcpServers", "a list of objects"),
        ({"mcpServers": ["x"]}, "mcpServers[0]", "an object of name"),
        ({"mcpServers": [{"name": "x", "comand": "y"}]}, "mcpServers[0].comand", "did you mean 'command'?"),
        ({"mcpServers": [{"name": "x", "args": 1}]}, "mcpServers[0]", "args"),
        ({"mcpServers": [{"name": "a b", "command": "y"}]}, "mcpServers[0].name", "letters"),
        ({"command": "one two"}, "command", "a list of strings"),
    ],
)  # fmt: skip
def test_problems_name_the_key(content: dict[str, Any], path: str, message: str) -> None:
    [(where, sentence)] = wrong_in(content)
    assert where == path
    assert message in sentence


def test_per_run_fields_cannot_be_written() -> None:
    with pytest.raises(ValidationError, match="prompt"):
        fields_to_json({"prompt": "x"})
    with pytest.raises(ValidationError, match="no such key"):
        fields_to_json({"modell": "x"})
    with pytest.raises(ValidationError, match="a finite number"):
        fields_to_json({"timeout": float("inf")})


def test_retry_policy_is_written_without_defaults() -> None:
    assert fields_to_json({"retry_policy": RetryPolicy(max_attempts=5, base_delay=0.5)}) == {
        "retryPolicy": {"maxAttempts": 5, "baseDelay": 500}
    }


def test_path_is_written_as_string() -> None:
    assert fields_to_json({"policy": Path("/etc/rules.toml")}) == {"policy": "/etc/rules.toml"}


@given(st.floats(0, 10**7), st.integers(0, 10**9))
def test_durations_round_trip(seconds: float, milliseconds: int) -> None:
    assert read(fields_to_json({"timeout": seconds}))["timeout"] == pytest.approx(seconds, abs=1e-8)
    assert fields_to_json(read({"timeout": milliseconds}))["timeout"] == milliseconds


def test_old_key_of_a_renamed_option_is_read() -> None:
    problems = Problems()
    assert fields_from_json({"maxTurns": 3}, problems) == {"max_model_calls": 3}
    assert fields_to_json({"max_turns": 3}) == {"maxModelCalls": 3}
    assert not problems.fields


def test_old_and_new_key_together_are_a_problem() -> None:
    problems = Problems()
    fields_from_json({"maxTurns": 3, "maxModelCalls": 4}, problems)
    assert [(one.path, one.allowed) for one in problems.fields] == [
        ("maxTurns", "only one of maxModelCalls and its old name maxTurns")
    ]
