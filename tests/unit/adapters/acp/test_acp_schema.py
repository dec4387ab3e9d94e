"""The shapes that we read are those of the protocol: what real agents printed fits the official models."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from acp import schema
from acp_transcript import check
from pydantic import TypeAdapter
from tests.unit.adapters.recordings import FIXTURES

from agent_mux_testing.fixtures import Fixture, find_fixtures, load_fixture

TOLD: dict[str, Any] = {
    "session/request_permission": schema.RequestPermissionRequest,
    "session/update": schema.SessionNotification,
}
ANSWERS: dict[str, Any] = {
    "initialize": schema.InitializeResponse,
    "session/load": schema.LoadSessionResponse,
    "session/new": schema.NewSessionResponse,
    "session/prompt": schema.PromptResponse,
}
RECORDINGS = [load_fixture(folder) for folder in find_fixtures(FIXTURES, "acp")]


def fitting(fixture: Fixture) -> Iterator[tuple[Any, Any]]:
    """The model and the value of each message of the agent that has one."""
    asked = {}
    for line in fixture.stdin:
        message = json.loads(line)
        if "method" in message and "id" in message:
            asked[message["id"]] = message["method"]
    for line in fixture.stdout_lines:
        message = json.loads(line)
        if message.get("method") in TOLD:
            yield TOLD[message["method"]], message["params"]
        elif "result" in message and "method" not in message and asked.get(message["id"]) in ANSWERS:
            yield ANSWERS[asked[message["id"]]], message["result"]


@pytest.mark.parametrize("fixture", RECORDINGS, ids=lambda fixture: f"{fixture.version}/{fixture.scenario}")
def test_recordings_fit_the_official_models(fixture: Fixture) -> None:
    checked = [TypeAdapter(model).validate_python(value) for model, value in fitting(fixture)]
    assert checked


def test_a_message_that_does_not_fit_would_be_found() -> None:
    with pytest.raises(AssertionError):
        check({"id": 1, "method": "session/dance", "params": {}})
    with pytest.raises(ValueError, match="sessionId"):
        check({"id": 1, "method": "session/prompt", "params": {"prompt": []}})
    with pytest.raises(AssertionError):
        check({"id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": [], "more": 1}})
