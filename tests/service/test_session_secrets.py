"""Secrets that a tool printed are hidden in stored sessions, as they are in the events of a run."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.service.fuzzing import STORE, registry
from tests.service.serving import Serving, serving

LONG = "1c2b5137-32b6-4a15-be24-b89dbb938b9b"
OF_A_FORM = "ghp_" + "a1B2" * 9
OF_THE_SERVICE = "service-S3cret-of-the-environment"
OF_A_RUN = "run-S3cret-of-a-request"
SECRETS = (OF_A_FORM, OF_THE_SERVICE, OF_A_RUN)
PRINTED = "b " + " and ".join(SECRETS)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    home = tmp_path_factory.mktemp("home")
    folder = home / ".claude" / "projects" / "-x"
    folder.mkdir(parents=True)
    (source,) = STORE.rglob(f"{LONG}.jsonl")
    lines = [json.loads(line) for line in source.read_text().splitlines()]
    for line in lines:
        content = line.get("message", {}).get("content")
        for part in content if isinstance(content, list) else ():
            name = {"tool_result": "content", "text": "text"}.get(part["type"])
            part.update({name: PRINTED} if name else {})
    (folder / f"{LONG}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("SERVICE_TOKEN", OF_THE_SERVICE)
        patch.delenv("CLAUDE_CONFIG_DIR", raising=False)
        with serving(home / "config", registry()) as server:
            env = {"RUN_TOKEN": OF_A_RUN, "AMUX_REPLAY_SPEED": "0"}
            answer = server.http.post("/v1/runs", json={"agent": "replay", "prompt": "demo", "env": env})
            assert answer.status_code == 201, answer.text
            yield server


EXPORTS = [f"/v1/sessions/claude/{LONG}/export?format={one}" for one in ("json", "jsonl", "markdown", "html")]


@pytest.mark.parametrize(
    "path",
    [
        f"/v1/sessions/claude/{LONG}",
        f"/v1/sessions/claude/{LONG}/events",
        f"/v1/sessions/claude/{LONG}/events?accumulated=true",
        "/v1/sessions/search?q=b%20ghp_",
        *EXPORTS,
    ],
)
def test_printed_secrets_are_hidden(served: Serving, path: str) -> None:
    answer = served.http.get(path)
    assert answer.status_code == 200
    assert [secret for secret in SECRETS if secret in answer.text] == []
    assert "ghp_*" in answer.text


def test_a_search_does_not_find_a_secret(served: Serving) -> None:
    for secret in SECRETS:
        assert served.http.get("/v1/sessions/search", params={"q": secret[:-2]}).json() == []


def test_a_title_with_a_secret_is_hidden_in_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / ".claude" / "projects" / "-x"
    folder.mkdir(parents=True)
    (source,) = STORE.rglob(f"{LONG}.jsonl")
    lines = [json.loads(line) for line in source.read_text().splitlines()]
    prompt = next(one for one in lines if one.get("type") == "user" and isinstance(one["message"]["content"], str))
    prompt["message"]["content"] = f"use {OF_A_FORM}"
    (folder / f"{LONG}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines if one["type"] != "summary"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    with serving(tmp_path / "config", registry()) as server:
        listed = server.http.get("/v1/sessions")
    assert listed.json()
    assert OF_A_FORM not in listed.text
