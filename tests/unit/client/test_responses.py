"""Problem details of a service become the errors that they stand for."""

import httpx
import msgspec
import pytest

from agent_mux import AgentMuxError, CapabilityError, FieldError, ValidationError
from agent_mux.client.remote.responses import error_of
from agent_mux.service.problems import error_response

URL = httpx.URL("http://host/v1/runs?token=x")


@pytest.mark.parametrize(
    "error",
    [
        AgentMuxError("AGENT_NOT_FOUND", "no agent is named 'x'"),
        AgentMuxError("LIMIT_EXCEEDED", "too many"),
        AgentMuxError("UNAVAILABLE", "away", recoverable=False),
        ValidationError([FieldError("max_model_calls", 0, "more"), FieldError("skills[0]", "x", "a folder")]),
        CapabilityError("claude", "flying"),
        CapabilityError("claude", "flying", "opus", hint="walk"),
    ],
)
def test_an_error_is_the_same_on_both_sides(error: AgentMuxError) -> None:
    answer = error_response(error)
    read = error_of(answer.status_code, bytes(answer.body), URL)
    assert (type(read), read.code, read.message, read.recoverable) == (
        type(error),
        error.code,
        error.message,
        error.recoverable,
    )
    if isinstance(error, ValidationError):
        assert isinstance(read, ValidationError)
        assert read.fields == error.fields


def test_field_paths_name_fields_of_run_options() -> None:
    problem = {"code": "VALIDATION_ERROR", "detail": "x", "fields": []}
    problem["fields"] = [{"path": "retryPolicy.baseDelay", "received": -1, "allowed": "more"}]
    read = error_of(422, msgspec.json.encode(problem), URL)
    assert isinstance(read, ValidationError)
    assert read.fields[0].path == "retry_policy.baseDelay"


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b"[]", b"\xff"])
def test_a_response_of_another_server_is_unavailable(body: bytes) -> None:
    read = error_of(502, body, URL)
    assert read.code == "UNAVAILABLE"
    assert "answered 502" in read.message
    assert "token" not in read.message


def test_an_unknown_code_keeps_its_message() -> None:
    read = error_of(400, b'{"code":"NEW","detail":"something new"}', URL)
    assert (read.code, read.message) == ("INTERNAL", "something new")
