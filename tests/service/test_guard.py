"""Requests that the guard refuses before any route, over real sockets."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.service.keys import bearing, make_token
from tests.service.serving import Serving, serving

from agent_mux.service.security.http_rules import HEADERS, LONGEST_TARGET, MAX_HEADERS
from agent_mux.service.settings import ConnectionLimits

DEMO = {"agent": "replay", "prompt": "demo", "env": {"AMUX_REPLAY_SPEED": "0"}}
LARGEST = 10_000  # bytes of a body, here


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    directory = tmp_path_factory.mktemp("served")
    limits = ConnectionLimits(largest_body=LARGEST)
    with serving(
        directory, limits=limits, allowed_hosts=("amux.example",), allow_unauthenticated=True, roots=(directory,)
    ) as server:
        yield server


def runs(served: Serving) -> int:
    return len(served.http.get("/v1/runs", params={"limit": 200}).json()["runs"])


# -- other sites


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "192.0.2.1", "", "a b"])
def test_rebound_host_names_are_refused(served: Serving, host: str) -> None:
    for path in ("/health", "/v1/runs", "/openapi.json"):
        answer = served.http.get(path, headers={"host": host})
        assert answer.status_code in {400, 421}, path


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:9", "[::1]:1", "amux.example", "AMUX.EXAMPLE:443"])
def test_our_own_names_are_served(served: Serving, host: str) -> None:
    assert served.http.get("/v1/runs", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:3000"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"origin": "https://amux.example", "sec-fetch-site": "cross-site"},
    ],
)
def test_a_page_of_another_site_starts_and_reads_nothing(served: Serving, headers: dict[str, str]) -> None:
    before = runs(served)
    sent = {**headers, "content-type": "text/plain"}
    assert served.http.post("/v1/runs", content=json.dumps(DEMO), headers=sent).status_code == 403
    assert served.http.get("/v1/runs", headers=headers).status_code == 403
    preflight = {**headers, "access-control-request-method": "POST"}
    answer = served.http.options("/v1/runs", headers=preflight)
    assert answer.status_code == 403
    assert not any(name.startswith("access-control") for name in answer.headers)
    assert runs(served) == before


def test_an_own_page_is_served_and_must_send_json(served: Serving) -> None:
    own = {"origin": served.url, "sec-fetch-site": "same-origin"}
    assert served.http.get("/v1/runs", headers=own).status_code == 200
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        answer = served.http.post("/v1/runs", content=json.dumps(DEMO), headers={**own, "content-type": kind})
        assert answer.status_code == 415, kind
    assert served.http.post("/v1/runs", json=DEMO, headers=own).status_code == 201
    assert served.http.post("/v1/runs", json=DEMO, headers={"origin": "https://amux.example"}).status_code == 201


def test_a_program_may_leave_the_type_to_curl(served: Serving) -> None:
    form = {"content-type": "application/x-www-form-urlencoded"}
    assert served.http.post("/v1/runs", content=json.dumps(DEMO), headers=form).status_code == 201


# -- sizes


def test_a_body_over_the_limit_is_refused_whatever_its_declared_length(served: Serving) -> None:
    before = runs(served)
    body = json.dumps({**DEMO, "tags": ["x" * LARGEST]}).encode()

    def chunks() -> Iterator[bytes]:
        for at in range(0, len(body), 1000):
            yield body[at : at + 1000]

    for content in (body, chunks()):
        answer = served.http.post("/v1/runs", content=content)
        assert (answer.status_code, answer.json()["code"]) == (413, "VALIDATION_ERROR")
    assert runs(served) == before


def test_a_body_of_the_largest_size_is_read(served: Serving) -> None:
    body = json.dumps({**DEMO, "tags": ["x" * 256]}).encode().ljust(LARGEST)
    assert served.http.post("/v1/runs", content=body).status_code == 201


def test_a_head_that_is_too_large_is_refused(served: Serving) -> None:
    many = [(f"x-{number}", "y") for number in range(MAX_HEADERS)]
    assert served.http.get("/health", headers=many).status_code == 431
    assert served.http.get("/health", headers={"x": "y" * 20_000}).status_code == 431
    assert served.http.get("/health", headers={"x": "y" * 200_000}).status_code == 431
    assert served.http.get("/health?" + "y" * LONGEST_TARGET).status_code == 414
    assert served.http.get("/health", headers={"x": "y" * 10_000}).status_code == 200


# -- what is answered


def test_every_answer_has_the_headers(served: Serving, tmp_path: Path) -> None:
    run_id = served.http.post("/v1/runs", json=DEMO).json()["runId"]
    answers = [
        served.http.get("/health"),
        served.http.get("/no/such/path"),
        served.http.get("/v1/runs"),
        served.http.get("/v1/runs", headers={"host": "evil.example"}),
        served.http.get("/v1/runs", headers={"origin": "null"}),
        served.http.get("/health", headers={"x": "y" * 200_000}),
        served.http.post("/v1/runs", content=b"{"),
        served.http.post("/v1/runs", content=b"x" * (LARGEST + 1)),
        served.http.get(f"/v1/runs/{run_id}/events"),
        served.http.get("/openapi.json"),
        served.http.delete(f"/v1/runs/{run_id}"),
        served.http.put("/health"),
    ]
    for answer in answers:
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS, answer.url
        assert "server" not in answer.headers
        kind = answer.headers.get("content-type", "")
        assert "html" not in kind
        assert "script" not in kind


def test_an_internal_error_does_not_expose_its_message(
    served: Serving, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*_: object, **__: object) -> Any:
        raise RuntimeError("the password is hunter2hunter2")

    monkeypatch.setattr(served.service.runs, "page", broken)
    with caplog.at_level(logging.ERROR, "agent_mux"):
        answer = served.http.get("/v1/runs")
    assert (answer.status_code, answer.json()["code"]) == (500, "INTERNAL")
    assert "hunter2" not in answer.text
    assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS
    assert [record.getMessage() for record in caplog.records] == ["a request failed"]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/runs/..%2f..%2fetc%2fpasswd",
        "/v1/runs/%2e%2e/events",
        "/v1/runs/../../etc/passwd",
        "/v1/runs/a%00b",
        "/v1/runs/" + "A" * 25,
        "/v1/runs/" + "U" * 26,
        "/v1/runs/" + "0" * 25 + "%0a",
        "/v1/runs/x/events",
        "/v1/runs/x/interactions",
    ],
)
def test_an_invalid_run_id_is_not_found(served: Serving, path: str) -> None:
    answer = served.http.get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert "passwd" not in answer.text
    assert served.http.request("POST", f"{path}/abort").status_code in {404, 405}
    assert served.http.request("DELETE", path).status_code in {404, 405}


# -- roots


@pytest.mark.parametrize("cwd", ["/", "/etc", "..", "../..", "link", "missing", "file", "a\0b", "/no/such/place"])
def test_a_run_works_in_the_roots_alone(served: Serving, cwd: str) -> None:
    root = served.service.settings.config_dir
    (root / "file").write_text("x", "utf-8")
    link = root / "link"
    if not link.is_symlink():
        link.symlink_to("/etc")
    before = runs(served)
    answer = served.http.post("/v1/runs", json={**DEMO, "cwd": cwd})
    assert (answer.status_code, answer.json()["code"]) == (422, "VALIDATION_ERROR")
    assert answer.json()["fields"][0]["path"] == "cwd"
    assert runs(served) == before


def test_a_run_works_in_a_root_or_below(served: Serving) -> None:
    root = served.service.settings.config_dir
    (root / "below").mkdir(exist_ok=True)
    body = {cwd: served.http.post("/v1/runs", json={**DEMO, "cwd": cwd}).json()["cwd"] for cwd in ("below", str(root))}
    assert body == {"below": str(root / "below"), str(root): str(root)}
    assert served.http.post("/v1/runs", json=DEMO).json()["cwd"] == str(root)


@pytest.mark.parametrize(
    ("field", "body"),
    [
        ("attachments[0].filePath", {"attachments": [{"filePath": "/etc/passwd"}]}),
        ("attachments[1].filePath", {"attachments": [{"url": "http://x.example"}, {"filePath": "/etc/passwd"}]}),
        ("agentsDoc", {"agentsDoc": "/etc/passwd"}),
        ("agentsDoc", {"agentsDoc": "../../../../../../etc/passwd"}),
        ("skills[0]", {"skills": ["/etc"]}),
    ],
)
def test_what_an_agent_is_handed_is_in_the_roots(served: Serving, field: str, body: dict[str, Any]) -> None:
    answer = served.http.post("/v1/runs", json={**DEMO, **body})
    assert (answer.status_code, answer.json()["fields"][0]["path"]) == (422, field)
    assert str(served.service.settings.config_dir) in answer.json()["detail"]


# -- secrets, and what agents print


@pytest.mark.slow
def test_a_secret_comes_back_nowhere(tmp_path: Path) -> None:
    token = make_token(tmp_path, "ci", "run")
    secret, value = "gh" + "p_" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA1234", "correct-horse-battery"
    with serving(tmp_path) as served:
        body = [
            {**DEMO, "env": {"AMUX_REPLAY_SPEED": "0", "MY_API_KEY": secret}, "tags": [secret, token]},
            {**DEMO, "nonsense": secret},
            {**DEMO, "agent": secret},
            {**DEMO, "cwd": f"/{secret}"},
            {**DEMO, "env": secret},
            {**DEMO, "projectId": secret},
            {"agent": "native", "prompt": f"use {value}", "model": "scripted:missing", "env": {"MY_API_KEY": value}},
        ]
        reply = ""
        for one in body:
            answer = served.http.post("/v1/runs", json=one, headers=bearing(token))
            reply += answer.text
            if answer.status_code == 201:
                path = f"/v1/runs/{answer.json()['runId']}"
                reply += "".join(served.http.get(p, headers=bearing(token)).text for p in (path, f"{path}/events"))
        reply += served.http.get("/v1/runs", headers=bearing(token)).text
        reply += served.http.get(f"/v1/runs/{token}", headers=bearing(token)).text
        reply += served.http.get("/v1/runs", params={"state": secret}, headers=bearing(token)).text
        reply += served.http.get("/v1/runs", params={"limit": token}, headers=bearing(token)).text
    assert secret not in reply
    assert value not in reply
    assert token.split("_")[2] not in reply


def test_websockets_are_guarded(served: Serving) -> None:
    upgrade = {
        "connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13",
        "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }  # fmt: skip
    for headers, status in (({"origin": "http://evil.example"}, 403), ({"host": "evil.example"}, 421)):
        with httpx.Client(base_url=served.url, timeout=30) as client:
            answer = client.get("/v1/runs/x/ws", headers={**upgrade, **headers})
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
