"""What a plan stores of the options of runs, and what a resumed comparison needs again."""

from collections.abc import Mapping
from typing import Any

import pytest

from agent_mux.compare.candidates import make_candidate
from agent_mux.compare.stored_options import given_again, stored_options
from agent_mux.errors import ValidationError
from agent_mux.sdk.options import McpServer, RetryPolicy
from agent_mux.sdk.plain_options import typed_options
from agent_mux.sdk.policy import Policy, Rule

SERVER = McpServer(name="docs", command="docs-server", args=("--fast",))
SECRET = McpServer(name="docs", transport="sse", url="https://example.com/?token=x")


@pytest.mark.parametrize(
    "options",
    [
        {"policy": Policy(rules=(Rule(decision="deny", commands=("rm *",)),))},
        {"mcp_servers": (SERVER,)},
        {"retry_policy": RetryPolicy(max_attempts=2)},
        {"timeout": 3.5, "tags": ["a"]},
    ],
)
def test_objects_are_stored_as_data_from_which_they_are_built_again(options: Mapping[str, Any]) -> None:
    stored, left_out = stored_options(options)
    assert left_out == ()
    assert typed_options(stored) == typed_options(options)


@pytest.mark.parametrize(
    "options",
    [
        {"on_approval_request": print},
        {"tools": [print]},
        {"hooks": {"pre_tool_use": print}},
        {"mcp_servers": [SECRET]},
        {"mcp_servers": [{"name": "docs", "command": "x", "env": {"TOKEN": "secret"}}]},
        {"mcp_servers": [{"name": "docs", "transport": "sse", "url": "https://example.com", "headers": {"A": "b"}}]},
    ],
)
def test_functions_and_secrets_are_not_stored(options: Mapping[str, Any]) -> None:
    assert stored_options(options) == ({}, tuple(options))


def test_record_of_a_candidate_names_what_it_does_not_store() -> None:
    record = make_candidate({"agent": "x", "mcp_servers": [SECRET], "max_turns": 3, "env": {"A": "b"}}).record(1)
    assert (record.options, record.not_stored) == ({"max_turns": 3}, ("mcp_servers",))


def test_options_are_given_again_to_those_that_had_them() -> None:
    of_candidates = {"one": ("tools",), "two": ("tools", "hooks")}
    given = {"tools": 1, "two:tools": 2, "two:hooks": 3, "mcp_servers": 4}
    assert given_again(given, ["mcp_servers"], of_candidates) == (
        {"mcp_servers": 4},
        {"one": {"tools": 1}, "two": {"tools": 2, "hooks": 3}},
    )


def test_missing_and_unknown_options_are_named() -> None:
    with pytest.raises(ValidationError, match="mcp_servers, one:tools, which the plan does not store"):
        given_again({}, ["mcp_servers"], {"one": ("tools",)})
    with pytest.raises(ValidationError, match=r"options\.timeout.*the plan stores the others"):
        given_again({"timeout": 1}, [], {})


def test_answers_of_a_person_replace_those_of_the_process_before() -> None:
    handlers = {"on_approval_request": None}
    assert given_again(handlers, ["on_approval_request"], {}) == (handlers, {})
    assert given_again(handlers, [], {}) == (handlers, {})
