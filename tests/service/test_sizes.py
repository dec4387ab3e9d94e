"""Requests with too many items are refused at once, with a short answer."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.service.serving import Serving, serving

RUN = {"agent": "replay", "prompt": "demo"}
HOOK = {"url": "http://127.0.0.1:9/", "events": ["run.ended"]}
LONGEST_ANSWER = 40_000  # bytes


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("served"), allow_private_webhooks=True) as server:
        yield server


def named(count: int) -> dict[str, str]:
    return {f"A{number}": "x" for number in range(count)}


WORDS = [f"A{number}" for number in range(300_000)]
MANY: list[tuple[str, dict[str, Any], str]] = [
    ("/v1/runs", {**RUN, "env": named(300_000)}, "env"),
    ("/v1/runs", {**RUN, "env": named(1001)}, "env"),
    ("/v1/runs", {**RUN, "env": {f"{number}-": "x" for number in range(9000)}}, "env"),
    ("/v1/runs", {**RUN, **named(300_000)}, "(body)"),
    ("/v1/runs", {**RUN, **named(9000)}, "A0"),
    ("/v1/runs", {**RUN, "tags": WORDS}, "tags"),
    ("/v1/runs", {**RUN, "tags": WORDS[:101]}, "tags"),
    ("/v1/runs", {**RUN, "prompt": WORDS[:1001]}, "prompt"),
    ("/v1/runs", {**RUN, "skills": WORDS[:101]}, "skills"),
    ("/v1/runs", {**RUN, "command": WORDS[:1001]}, "command"),
    ("/v1/runs", {**RUN, "attachments": [{"filePath": "/x"}] * 101}, "attachments"),
    ("/v1/runs", {**RUN, "mcpServers": [{"name": "x", "command": "x"}] * 101}, "mcpServers"),
    ("/v1/runs", {**RUN, "outputSchema": {"enum": WORDS}}, "outputSchema.enum"),
    ("/v1/profiles/x", named(300_000), "(body)"),
    ("/v1/profiles/x", {"tags": WORDS[:101]}, "tags"),
    ("/v1/webhooks", {**HOOK, "events": WORDS[:9000]}, "events"),
    ("/v1/webhooks", {**HOOK, "agents": WORDS[:9000]}, "agents"),
    ("/v1/webhooks", {**HOOK, "agents": ["claude"] * 51}, "agents"),
    ("/v1/webhooks", {**HOOK, "tags": WORDS[:9000]}, "tags"),
]


@pytest.mark.parametrize(("path", "body", "field"), MANY, ids=lambda one: str(one)[:60])
def test_too_many_items_are_refused_with_a_short_answer(
    served: Serving, path: str, body: dict[str, Any], field: str
) -> None:
    answer = served.http.request("PUT" if "profiles" in path else "POST", path, json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["fields"][0]["path"] == field
    assert len(answer.content) < LONGEST_ANSWER


@pytest.mark.slow
def test_as_many_items_as_allowed_are_accepted(served: Serving) -> None:
    body = {**RUN, "env": {**named(999), "AMUX_REPLAY_SPEED": "0"}, "tags": WORDS[:100]}
    answer = served.http.post("/v1/runs", json=body)
    assert answer.status_code == 201, answer.text
    served.http.get(f"/v1/runs/{answer.json()['runId']}/events")


PASSWORDS = ["hunter2", "x1", "pa/ss", "p$w{d}", "q?u#x", "50%", "a*b*c", "<y>", "p@w@d"]


@pytest.mark.parametrize("password", PASSWORDS)
@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_a_password_in_the_url_of_a_webhook_is_not_in_the_answer(served: Serving, method: str, password: str) -> None:
    hook = served.http.post("/v1/webhooks", json=HOOK).json()["webhookId"]
    path = "/v1/webhooks" if method == "POST" else f"/v1/webhooks/{hook}"
    for url in (f"https://me:{password}@example.com/x", f"ftp://token{password}@example.com/x"):
        answer = served.http.request(method, path, json={**HOOK, "url": url})
        assert answer.status_code == 422, answer.text
        (field,) = answer.json()["fields"]
        assert field["path"] == "url"
        assert password not in field["received"]
        assert password not in answer.json()["detail"]
        assert "example.com/x" in field["received"]


def test_a_password_in_the_url_of_an_mcp_server_is_not_in_the_answer(served: Serving) -> None:
    url = "https://me:pa/ss@example.com/x"
    for servers in ([url], [{"name": "a b", "transport": "sse", "url": url}], url, [{"name": url, "command": "x"}]):
        answer = served.http.post("/v1/runs", json={**RUN, "agent": "claude", "mcpServers": servers})
        assert answer.status_code == 422
        assert "pa/ss" not in answer.text
