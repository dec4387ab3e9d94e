"""Hostile agent output is passed on unchanged and is never served as a page or a script."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.process.scripted import scripted_adapter
from tests.service.serving import Serving, serving

from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.service.security.http_rules import HEADERS

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script src=//evil.example/x.js></script>",
    "<img src=x onerror=alert(1)>",
    "\u2028alert(1)\u2029",
    "\ndata: {}\n\nid: 99999\nevent: x\ndata: forged\n\n",
    "\r\rretry: 1\r",
    "\x1b]0;owned\x07\x1b[2J",
    "javascript:alert(1)//%0D%0ASet-Cookie: a=b",
)
BODY = "\n".join(["emit(session='s')", *(f"emit(text={text!r})" for text in HOSTILE), "emit(over=1)"])
ALLOWED = {"application/json", "application/problem+json", "application/jsonl", "text/event-stream; charset=utf-8"}
"""What a browser shows as text, or hands to nobody. (Prometheus' metrics are text, too.)"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Serving, str]]:
    registry = AdapterRegistry()
    registry.register(scripted_adapter(BODY))
    with serving(tmp_path_factory.mktemp("served"), registry) as server:
        body = {"agent": "scripted", "prompt": HOSTILE[0], "tags": list(HOSTILE[:3]), "projectId": HOSTILE[1]}
        answer = server.http.post("/v1/runs", json=body)
        assert answer.status_code == 201, answer.text
        run_id = str(answer.json()["runId"])
        server.http.get(f"/v1/runs/{run_id}/events")
        yield server, run_id


def texts(events: list[Any]) -> str:
    return "".join(event["delta"] for event in events if event["type"] == "text_delta")


@pytest.mark.slow
def test_event_lines_cannot_be_forged(served: tuple[Serving, str]) -> None:
    server, run_id = served
    lines = server.http.get(f"/v1/runs/{run_id}/events", headers={"accept": "application/jsonl"}).content.split(b"\n")
    events = [json.loads(line) for line in lines if line]
    assert texts(events) == "".join(HOSTILE)
    blocks = server.http.get(f"/v1/runs/{run_id}/events").content.split(b"\n\n")
    body = []
    for number, block in enumerate(blocks[:-1]):
        head, data = block.split(b"\n")
        assert head == b"id: %d" % number
        assert b"\r" not in data
        body.append(json.loads(data.removeprefix(b"data: ")))
    assert blocks[-1] == b""
    assert texts(body) == "".join(HOSTILE)


@pytest.mark.slow
def test_no_response_is_an_html_page(served: tuple[Serving, str]) -> None:
    server, run_id = served
    paths = server.http.get("/openapi.json").json()["paths"]
    seen = 0
    for path, methods in paths.items():
        place = path.replace("{run_id}", run_id)
        if "get" not in methods or "{" in place:
            continue
        seen += 1
        answer = server.http.get(place, params={"x": HOSTILE[0], "state": HOSTILE[0], "format": "html"})
        kind = answer.headers["content-type"]
        is_file = answer.headers.get("content-disposition", "").startswith("attachment")
        assert kind in ALLOWED or kind.startswith("text/plain") or is_file, (path, kind)
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS, path
    assert seen >= 6


@pytest.mark.parametrize("text", HOSTILE)
def test_problems_quote_input_as_json(served: tuple[Serving, str], text: str) -> None:
    server, _ = served
    for answer in (
        server.http.get("/v1/runs", params={"state": text}),
        server.http.get("/v1/runs", params={"cursor": text}),
        server.http.post("/v1/runs", json={"agent": text, "prompt": "x"}),
        server.http.post("/v1/runs", json={"agent": "scripted", "prompt": "x", text: text}),
    ):
        assert answer.status_code in {404, 422}
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == answer.status_code
        assert "set-cookie" not in answer.headers
