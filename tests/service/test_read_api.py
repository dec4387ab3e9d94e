"""The service returns the same agents, models, sessions, costs and profiles as the commands print."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.service.fuzzing import STORE, registry
from tests.service.serving import Serving, serving

from agent_mux import validate
from agent_mux.cli.main import main
from agent_mux.events import decode_event
from agent_mux.journal.run_index import append_line, encode_line, new_index_record

LONG = "1c2b5137-32b6-4a15-be24-b89dbb938b9b"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("read")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(STORE))
        patch.setenv("AGENT_MUX_CONFIG_DIR", str(directory / "config"))
        patch.setenv("PATH", str(directory))  # there is no agent
        patch.delenv("CLAUDE_CONFIG_DIR", raising=False)
        patch.chdir(directory)
        yield directory


@pytest.fixture(scope="module")
def served(place: Path) -> Iterator[Serving]:
    with serving(place / "config") as server:
        yield server


def told(served: Serving, path: str, status: int = 200, **parameters: Any) -> Any:
    answer = served.http.get(path, params=parameters)
    assert answer.status_code == status, answer.text
    return answer.json()


@pytest.fixture
def printed(capfd: pytest.CaptureFixture[str]) -> Any:
    def call(*arguments: str) -> Any:
        capfd.readouterr()
        assert main([*arguments, "--json"]) == 0
        answer = json.loads(capfd.readouterr().out)
        assert answer["ok"]
        return answer["data"]

    return call


@pytest.mark.parametrize(
    ("path", "parameters", "command"),
    [
        ("/v1/agents/claude/capabilities", {}, "capabilities claude"),
        ("/v1/agents/gemini-cli/capabilities", {}, "capabilities gemini"),
        ("/v1/detect", {}, "adapters detect"),
        ("/v1/models", {}, "models list"),
        ("/v1/models/claude-code", {}, "models list claude"),
        ("/v1/models/claude/opus", {}, "models get claude opus"),
        ("/v1/sessions", {}, "sessions list"),
        ("/v1/sessions", {"sort": "turns", "limit": 1, "agent": "claude"}, "sessions list --sort turns -n 1"),
        ("/v1/sessions", {"sort": "cost", "order": "asc", "limit": 2}, "sessions list --sort cost --order asc -n 2"),
        ("/v1/sessions", {"cwd": "/home/dev/other"}, "sessions list --cwd /home/dev/other"),
        ("/v1/sessions", {"model": "other"}, "sessions list -m other"),
        ("/v1/sessions/search", {"q": "QUESTION"}, "sessions search QUESTION"),
        (f"/v1/sessions/claude/{LONG}", {}, f"sessions show claude:{LONG}"),
        (f"/v1/sessions/claude-code/{LONG[:8]}", {}, f"sessions show {LONG}"),
        ("/v1/cost", {}, "cost report"),
        ("/v1/cost", {"by": "day"}, "cost report --by day"),
        ("/v1/cost", {"by": "model", "agent": "claude"}, "cost report --by model -a claude"),
        ("/v1/profiles", {}, "profiles list"),
    ],
)
def test_it_is_what_the_command_prints(
    served: Serving, printed: Any, path: str, parameters: dict[str, Any], command: str
) -> None:
    assert told(served, path, **parameters) == printed(*command.split())


def test_agents_have_static_data_and_their_detection(served: Serving, printed: Any) -> None:
    known = {one["agent"]: one for one in printed("adapters", "list")}
    found = {one["agent"]: one for one in printed("adapters", "detect")}
    assert told(served, "/v1/agents") == [{**known[name], **found[name]} for name in known]
    assert told(served, "/v1/agents/claude-code") == {**known["claude"], **found["claude"]}
    assert not told(served, "/v1/agents/claude")["installed"]


def test_a_fresh_look_finds_what_was_installed_since(served: Serving, place: Path) -> None:
    program = place / "codex"
    assert not told(served, "/v1/agents/codex")["installed"]
    program.write_text("#!/bin/sh\necho codex-cli 0.169.0\n")
    program.chmod(0o755)
    try:
        assert not next(one for one in told(served, "/v1/detect") if one["agent"] == "codex")["installed"]
        fresh = served.http.post("/v1/detect").json()
        assert next(one for one in fresh if one["agent"] == "codex")["version"] == "0.169.0"
        assert told(served, "/v1/agents/codex")["version"] == "0.169.0"
    finally:
        program.unlink()
        served.http.post("/v1/detect")  # the service of the other tests, which expect nothing installed


@pytest.mark.parametrize(
    "path", ["/health", "/metrics", "/v1/runs", "/v1/agents/claude", "/v1/sessions?limit=1", "/v1/runs/none"]
)
def test_head_is_get_without_its_body(served: Serving, path: str) -> None:
    whole, head = served.http.get(path), served.http.head(path)
    assert (head.status_code, head.content) == (whole.status_code, b"")
    assert head.headers["content-type"] == whole.headers["content-type"]
    if path != "/metrics":  # which counts what is asked
        assert head.headers["content-length"] == str(len(whole.content))


def test_streams_have_no_head(served: Serving) -> None:
    for path in ("/v1/runs/01K0000000000000000000000A/events", "/v1/sessions/claude/x/events"):
        answer = served.http.head(path)
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET")


def test_pages_of_sessions_have_each_once(served: Serving) -> None:
    whole, found, path = told(served, "/v1/sessions"), [], "/v1/sessions?limit=1&sort=turns"
    while path:
        answer = served.http.get(path)
        found += answer.json()
        path = answer.links.get("next", {}).get("url", "")
    assert len(found) == len(whole) == 3
    assert {one["id"] for one in found} == {one["id"] for one in whole}
    assert [one["turnCount"] for one in found] == sorted((one["turnCount"] for one in whole), reverse=True)


def test_times_are_milliseconds(served: Serving) -> None:
    newest = told(served, "/v1/sessions")[0]["updatedAt"]
    assert len(told(served, "/v1/sessions", since=newest)) == 1
    assert len(told(served, "/v1/sessions", until=newest)) == 2


def test_tags_are_those_of_the_runs(served: Serving, place: Path) -> None:
    record = new_index_record(started_at=0, run_id="R", agent="claude", session_id=LONG, tags=("red",))
    append_line(place / "config" / "run-index.jsonl", encode_line(record))
    assert [one["nativeId"] for one in told(served, "/v1/sessions", tag="red")] == [LONG]
    assert told(served, "/v1/sessions", tag=["red", "blue"]) == []


@pytest.mark.parametrize("accumulated", [True, False])
def test_a_session_is_conforming_events(served: Serving, accumulated: bool) -> None:
    answer = served.http.get(f"/v1/sessions/claude/{LONG}/events", params={"accumulated": accumulated})
    assert answer.headers["content-type"] == "application/jsonl"
    lines = answer.text.splitlines()
    events: list[Any] = [decode_event(line) for line in lines]
    assert validate(events) == []
    assert events[0].type == "session_start"
    assert ("accumulated" in answer.text) == accumulated


@pytest.mark.parametrize(
    "asked",
    [
        "/v1/sessions/claude/..%2F..%2Fetc%2Fpasswd",
        "/v1/sessions/claude/%2Fetc%2Fpasswd",
        "/v1/sessions/claude/a%2Fexport",
        f"/v1/sessions/claude/{LONG}%2Fexport",
        "/v1/sessions/claude/%2E%2E%2F",
        "/v1/sessions/claude/%25",
        "/v1/sessions/claude/%0A%1B%5B31m",
        "/v1/sessions/claude/%3Cscript%3E",
        "/v1/sessions/claude/codex:1",
        "/v1/sessions/claude/" + "x" * 4000,
        "/v1/sessions/claude/1c2/export",
        "/v1/sessions/claude/%FF%FE/events",
        "/v1/sessions/codex/" + LONG,
    ],
)
def test_session_ids_are_only_compared(served: Serving, asked: str) -> None:
    answer = served.http.get(asked)
    assert (answer.status_code, answer.json()["code"]) == (404, "SESSION_NOT_FOUND")


NAMES = ["a/b", "a b", "ü", "50%", "a%2Fb", "a?b=c#d", ".hidden", "claude:x", "<b>", "export", 'q"q', "back\\slash"]


@pytest.mark.slow
def test_every_id_can_be_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".claude" / "projects" / "-x"
    folder.mkdir(parents=True)
    (source,) = STORE.rglob(f"{LONG}.jsonl")
    for number, name in enumerate(NAMES):
        renamed = source.read_text().replace(LONG, json.dumps(name, ensure_ascii=False)[1:-1])
        (folder / f"{number}.jsonl").write_text(renamed)
    with serving(tmp_path / "config", registry()) as served:
        assert sorted(one["nativeId"] for one in told(served, "/v1/sessions")) == sorted(NAMES)
        for name in NAMES:
            path = f"/v1/sessions/claude/{quote(name, safe='')}"
            assert told(served, path)["summary"]["nativeId"] == name
            assert served.http.get(f"{path}/events").text.count("session_start") == 1
            assert told(served, f"{path}/export")["summary"]["nativeId"] == name


@pytest.mark.parametrize(
    ("path", "parameters", "status", "code"),
    [
        ("/v1/agents/nobody", {}, 404, "AGENT_NOT_FOUND"),
        ("/v1/agents/nobody/capabilities", {}, 404, "AGENT_NOT_FOUND"),
        ("/v1/models/nobody", {}, 404, "AGENT_NOT_FOUND"),
        ("/v1/models/claude/no-such-model", {}, 404, "NOT_FOUND"),
        ("/v1/models/claude/no/such%2Fmodel", {}, 404, "NOT_FOUND"),
        ("/v1/sessions", {"agent": "nobody"}, 404, "AGENT_NOT_FOUND"),
        ("/v1/sessions", {"agent": "replay"}, 422, "CAPABILITY_ERROR"),
        ("/v1/sessions", {"limit": 0}, 422, "VALIDATION_ERROR"),
        ("/v1/sessions", {"limit": 1001}, 422, "VALIDATION_ERROR"),
        ("/v1/sessions", {"offset": -1}, 422, "VALIDATION_ERROR"),
        ("/v1/sessions", {"sort": "size"}, 422, "VALIDATION_ERROR"),
        ("/v1/sessions", {"order": "up"}, 422, "VALIDATION_ERROR"),
        ("/v1/sessions", {"since": "yesterday"}, 422, "VALIDATION_ERROR"),
        ("/v1/sessions", {"since": 1 << 60}, 422, "VALIDATION_ERROR"),
        ("/v1/sessions", {"cwd": "x" * 5000}, 422, "VALIDATION_ERROR"),
        ("/v1/sessions", {"tag": ["x"] * 33}, 422, "VALIDATION_ERROR"),
        ("/v1/sessions", {"tag": "x" * 257}, 422, "VALIDATION_ERROR"),
        ("/v1/sessions", {"model": "a\0b"}, 422, "VALIDATION_ERROR"),
        ("/v1/sessions", {"limit": ["1", "2"]}, 422, "VALIDATION_ERROR"),
        ("/v1/cost", {"by": ["agent", "model"]}, 422, "VALIDATION_ERROR"),
        ("/v1/sessions/claude/a%00b", {}, 422, "VALIDATION_ERROR"),
        ("/v1/sessions/search", {}, 422, "VALIDATION_ERROR"),
        ("/v1/sessions/search", {"q": " "}, 422, "VALIDATION_ERROR"),
        ("/v1/sessions/search", {"q": "x" * 1001}, 422, "VALIDATION_ERROR"),
        ("/v1/sessions/replay/1234", {}, 422, "CAPABILITY_ERROR"),
        (f"/v1/sessions/claude/{LONG}/export", {"format": "pdf"}, 422, "VALIDATION_ERROR"),
        ("/v1/cost", {"by": "hour"}, 422, "VALIDATION_ERROR"),
        ("/v1/profiles/none", {}, 404, "PROFILE_NOT_FOUND"),
        ("/v1/profiles/..%2F..%2Fconfig", {}, 422, "VALIDATION_ERROR"),
        ("/v1/profiles/" + "x" * 65, {}, 422, "VALIDATION_ERROR"),
        ("/v1/nothing", {}, 404, "NOT_FOUND"),
        ("/v1/agents/", {}, 404, "NOT_FOUND"),
    ],
)
def test_what_cannot_be_is_a_problem(
    served: Serving, path: str, parameters: dict[str, Any], status: int, code: str
) -> None:
    answer = served.http.get(path, params=parameters or None)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
