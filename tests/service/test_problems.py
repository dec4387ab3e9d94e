"""Every error is a problem with its code and its status, and contains no secret."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.service.fuzzing import fuzzed_server
from tests.service.serving import Serving

from agent_mux.errors import (
    ERROR_CODES,
    RECOVERABLE,
    SERVICE_CODES,
    AgentMuxError,
    AnyCode,
    AuthError,
    CapabilityError,
    FieldError,
    ValidationError,
)
from agent_mux.service.problems import STATUS, TYPE

RUN = "/v1/runs/01K0000000000000000000000A"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    directory = tmp_path_factory.mktemp("problems")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(directory))
        with fuzzed_server(directory / "config") as server:
            yield server


def raising(served: Serving, monkeypatch: pytest.MonkeyPatch, error: Exception) -> Any:
    async def get(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(type(served.service.runs), "get", get)
    answer = served.http.get(RUN)
    assert answer.headers["content-type"] == "application/problem+json"
    data = answer.json()
    assert data["status"] == answer.status_code
    return answer.status_code, data, answer.headers


@pytest.mark.parametrize("code", [*ERROR_CODES, *SERVICE_CODES])
def test_every_code_has_its_status(served: Serving, monkeypatch: pytest.MonkeyPatch, code: AnyCode) -> None:
    status, data, headers = raising(served, monkeypatch, AgentMuxError(code, "it went wrong; do something else"))
    assert status == STATUS.get(code, 500)
    assert (data["code"], data["type"], data["detail"]) == (code, TYPE + code, "it went wrong; do something else")
    assert data["recoverable"] == (code in RECOVERABLE)
    assert ("retry-after" in headers) == (status in {429, 503})


def test_every_status_belongs_to_a_known_code() -> None:
    assert set(STATUS) <= {*ERROR_CODES, *SERVICE_CODES}
    assert all(400 <= status < 600 for status in STATUS.values())


def test_errors_with_further_fields_have_them(served: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = ValidationError([FieldError("timeout", -1, "a number >= 0"), FieldError("env.API_KEY", "hush", "text")])
    _, data, _ = raising(served, monkeypatch, bad)
    assert [(one["path"], one["allowed"]) for one in data["fields"]] == [
        ("timeout", "a number >= 0"),
        ("env.API_KEY", "text"),
    ]
    assert "hush" not in str(data)
    _, data, _ = raising(served, monkeypatch, CapabilityError("replay", "flying"))
    assert (data["agent"], data["capability"]) == ("replay", "flying")
    status, data, _ = raising(served, monkeypatch, AuthError("replay", "missing", "log in"))
    assert (status, data["code"]) == (424, "AUTH_ERROR")


def test_unexpected_errors_expose_nothing(served: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    status, data, _ = raising(served, monkeypatch, RuntimeError("/etc/secret of somebody"))
    assert (status, data["code"]) == (500, "INTERNAL")
    assert "secret" not in str(data)


def test_secrets_in_messages_are_hidden(served: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-ant-api03-" + "x" * 80
    _, data, _ = raising(served, monkeypatch, AgentMuxError("INTERNAL", f"it said {key}"))
    assert key not in str(data)


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", "/v1/runs", {"agent": "nobody", "prompt": "x"}, 404, "AGENT_NOT_FOUND"),
        ("POST", "/v1/runs", {"agent": "claude", "prompt": "x"}, 424, "AGENT_NOT_INSTALLED"),
        ("POST", "/v1/runs", {"agent": "replay", "prompt": "demo", "profile": "none"}, 404, "PROFILE_NOT_FOUND"),
        ("POST", "/v1/runs", {"agent": "replay", "prompt": "demo", "outputSchema": {}}, 422, "CAPABILITY_ERROR"),
        ("POST", "/v1/runs", {"agent": "replay", "prompt": "demo", "cwd": "/x" * 5000}, 422, "VALIDATION_ERROR"),
        ("POST", "/v1/runs", {"agent": "replay", "prompt": "demo", "tags": ["a\0"]}, 422, "VALIDATION_ERROR"),
        ("GET", RUN, None, 404, "RUN_NOT_FOUND"),
        ("DELETE", RUN, None, 404, "RUN_NOT_FOUND"),
        ("GET", f"{RUN}/events", None, 404, "RUN_NOT_FOUND"),
        ("GET", f"{RUN}/interactions", None, 404, "RUN_NOT_FOUND"),
        ("POST", f"{RUN}/abort", {}, 404, "RUN_NOT_FOUND"),
        ("POST", f"{RUN}/abort", {"type": "kill"}, 422, "VALIDATION_ERROR"),
        ("POST", f"{RUN}/abort", {"more": 1}, 422, "VALIDATION_ERROR"),
        ("POST", f"{RUN}/input", {"text": " "}, 422, "VALIDATION_ERROR"),
        ("POST", f"{RUN}/respond", {"interactionId": "x"}, 422, "VALIDATION_ERROR"),
        ("GET", "/v1/runs?cursor=x", None, 422, "VALIDATION_ERROR"),
        ("GET", "/v1/runs?state=asleep", None, 422, "VALIDATION_ERROR"),
        ("GET", "/v1/runs?agent=%00", None, 422, "VALIDATION_ERROR"),
        ("GET", "/v1/runs/%00", None, 404, "RUN_NOT_FOUND"),
        ("PATCH", "/v1/runs", None, 405, "VALIDATION_ERROR"),
        ("GET", "/", None, 404, "NOT_FOUND"),
    ],
)
def test_problems_that_requests_make(
    served: Serving, method: str, path: str, body: Any, status: int, code: str
) -> None:
    answer = served.http.request(method, path, json=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert answer.headers["content-type"] == "application/problem+json"


def test_problems_of_a_run(served: Serving) -> None:
    data = {"agent": "replay", "prompt": "demo"}  # as slow as it was
    run = f"/v1/runs/{served.http.post('/v1/runs', json=data).json()['runId']}"
    expected = {
        ("DELETE", run): (409, "INVALID_STATE_TRANSITION"),
        ("POST", f"{run}/approve"): (409, "NO_PENDING_INTERACTION"),
        ("POST", f"{run}/resize"): (409, "PTY_NOT_AVAILABLE"),
        ("POST", f"{run}/respond"): (404, "INTERACTION_NOT_FOUND"),
    }
    bodies = {
        f"{run}/resize": {"columns": 80, "rows": 25},
        f"{run}/respond": {"interactionId": "none", "text": "yes"},
    }
    answers = {(method, path): served.http.request(method, path, json=bodies.get(path)) for method, path in expected}
    assert served.http.post(f"{run}/abort").status_code == 200
    assert {key: (one.status_code, one.json()["code"]) for key, one in answers.items()} == expected
    over = served.http.post(f"{run}/input", json={"text": "more"})
    assert (over.status_code, over.json()["code"]) == (409, "RUN_NOT_ACTIVE")


def test_abort_and_kill_are_unneeded_after_the_end_of_a_run(served: Serving) -> None:
    run = f"/v1/runs/{served.http.post('/v1/runs', json={'agent': 'replay', 'prompt': 'demo'}).json()['runId']}"
    assert served.http.post(f"{run}/abort").json()["delivery"] == "applied"
    for command in ("abort", "kill"):
        over = served.http.post(f"{run}/{command}")
        assert (over.status_code, over.json()["delivery"], over.json()["run"]["state"]) == (200, "unneeded", "aborted")
