"""Errors: codes, stored data, messages without secrets."""

import pytest

from agent_mux.errors import (
    ERROR_CODES,
    RECOVERABLE,
    SERVICE_CODES,
    AgentMuxError,
    AuthError,
    CapabilityError,
    FieldError,
    ValidationError,
)

OWN = "own-k3y-of-this-process"
KEY = "npm" + "_" + "aB3dE5gH7jK9" * 3


def test_codes_match_the_run_api() -> None:
    codes = """CAPABILITY_ERROR VALIDATION_ERROR AUTH_ERROR AGENT_NOT_FOUND AGENT_NOT_INSTALLED
        AGENT_CRASH SPAWN_ERROR TIMEOUT INACTIVITY_TIMEOUT PARSE_ERROR CONFIG_ERROR CONFIG_LOCK_ERROR SESSION_NOT_FOUND
        PROFILE_NOT_FOUND PLUGIN_ERROR RATE_LIMITED NETWORK_ERROR CONTEXT_EXCEEDED ABORTED RUN_LOST
        RUN_NOT_ACTIVE STDIN_NOT_AVAILABLE
        NO_PENDING_INTERACTION INTERACTION_NOT_FOUND INVALID_STATE_TRANSITION PTY_NOT_AVAILABLE BUDGET_EXCEEDED
        CONTENT_FILTERED TURN_LIMIT EMPTY_ANSWER LOOP_DETECTED INTERNAL"""
    assert list(ERROR_CODES) == codes.split()
    assert {*ERROR_CODES, *SERVICE_CODES} >= RECOVERABLE


@pytest.mark.parametrize("code", ERROR_CODES)
def test_code_determines_recoverability_unless_overridden(code: str) -> None:
    error = AgentMuxError(code, "what happened")  # type: ignore[arg-type]
    assert (error.code, str(error), error.message) == (code, "what happened", "what happened")
    assert error.recoverable == (code in RECOVERABLE)
    assert AgentMuxError(code, "", recoverable=True).recoverable  # type: ignore[arg-type]
    assert not AgentMuxError(code, "", recoverable=False).recoverable  # type: ignore[arg-type]


def test_validation_error_lists_every_invalid_field() -> None:
    error = ValidationError([FieldError("top_p", 2, "a number from 0 to 1"), FieldError("agent", "", "a name")])
    assert error.code == "VALIDATION_ERROR"
    assert [field.path for field in error.fields] == ["top_p", "agent"]
    expected = "invalid options: top_p: got 2; allowed: a number from 0 to 1; agent: got ''; allowed: a name"
    assert str(error) == expected


def test_long_received_value_is_truncated() -> None:
    text = str(FieldError("prompt", "x" * 1000, "less"))
    assert len(text) < 250
    assert "..." in text


def test_capability_error_names_agent_model_and_alternative() -> None:
    error = CapabilityError("someone", "images", "small-1", hint="use big-1")
    assert (error.agent, error.capability, error.model) == ("someone", "images", "small-1")
    assert str(error) == "someone with model small-1 does not support images; use big-1"
    assert str(CapabilityError("someone", "images")) == "someone does not support images"


def test_auth_error_states_the_guidance() -> None:
    error = AuthError("someone", "expired", "run `someone login`")
    assert (error.code, error.status, error.guidance) == ("AUTH_ERROR", "expired", "run `someone login`")
    assert str(error) == "someone is not authenticated (expired); run `someone login`"


def test_every_error_is_an_agent_mux_error() -> None:
    for error in (ValidationError([]), CapabilityError("a", "b"), AuthError("a", "b", "c")):
        assert isinstance(error, AgentMuxError)


def test_errors_contain_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", OWN)
    errors = [
        AgentMuxError("INTERNAL", f"cannot use {OWN} nor {KEY}"),
        AuthError("a", "refused", f"log in without {KEY}"),
        CapabilityError("a", f"model {OWN}"),
        ValidationError([FieldError("prompt", [OWN, KEY], "another"), FieldError("x.api_key", "any", "another")]),
        ValidationError([FieldError("model", OWN, "another"), FieldError("cwd", {"k": KEY}, "another")]),
    ]
    for error in errors:
        for text in (str(error), repr(error), error.message, str(error.args), str(getattr(error, "fields", ""))):
            assert not [secret for secret in (OWN, KEY, "'any'") if secret in text]
    assert FieldError("top_p", 2, "").received == 2
    assert FieldError("api_key", None, "").received is None
