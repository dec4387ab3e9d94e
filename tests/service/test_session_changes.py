"""Stored sessions are renamed, deleted and rewound over HTTP by administrators, inside of the allowed directories."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.service.keys import bearing, make_token
from tests.service.serving import Serving, serving
from tests.unit.sessions.scripted_store import ADAPTER, START, write_session

from agent_mux import AgentMuxError, CapabilityError, RemoteMux
from agent_mux.cli.main import main
from agent_mux.sdk.installation import AgentInstallation
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.sdk.session_changes import (
    RewindOutcome,
    RewindRequest,
    SessionCommands,
    SessionSteps,
    StoredSessionRef,
    run_words,
)

PROGRAM = f"""#!{sys.executable} -IS
import json, os, pathlib, sys
command, path, *rest = sys.argv[1:]
file = pathlib.Path(path)
rows = [json.loads(line) for line in file.read_text().splitlines()]
if command == "delete":
    file.unlink()
elif command == "fail":
    sys.exit("no such session")
else:
    if command == "rename":
        rows.append({{**rows[1], "title": rest[0]}})
    else:
        rows = rows[: next(number for number, row in enumerate(rows) if row.get("id") == rest[0])]
    file.write_text("".join(json.dumps(row) + "\\n" for row in rows))
"""
SESSION = "/v1/sessions/scripted/one"


def _rewind(session: StoredSessionRef, request: RewindRequest) -> SessionSteps[RewindOutcome]:
    yield from run_words(session, "rewind", str(session.path), request.checkpoint)
    return RewindOutcome()


COMMANDS = SessionCommands(
    delete=lambda session: run_words(session, "delete", str(session.path)),
    rename=lambda session, title: run_words(session, "fail" if title == "fail" else "rename", str(session.path), title),
    rewind=_rewind,
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("home", "project", "elsewhere"):
        (tmp_path / name).mkdir()
    program = tmp_path / "program"
    program.write_text(PROGRAM, "utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("AMUX_TEST_PROGRAM", str(program))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name, directory in (("one", "project"), ("outside", "elsewhere")):
        write_session(
            tmp_path / "home", name, {"session": name, "cwd": str(tmp_path / directory)},
            {"prompt": "first", "id": "aa1", "at": START}, {"text": "done"}, {"done": True},
            {"prompt": "second", "id": "ab2", "at": START + 1}, {"text": "done"}, {"done": True},
        )  # fmt: skip
    write_session(tmp_path / "home", "nowhere", {"prompt": "first", "id": "aa1", "at": START})
    return tmp_path / "home"


def adapters(commands: SessionCommands = COMMANDS) -> AdapterRegistry:
    registry = AdapterRegistry()
    for name in registry.names():
        registry.unregister(name)
    installation = AgentInstallation(sessions=commands)
    registry.register(replace(ADAPTER, executable_variable="AMUX_TEST_PROGRAM", installation=lambda: installation))
    return registry


@pytest.fixture
def served(home: Path, tmp_path: Path) -> Iterator[Serving]:
    with serving(tmp_path / "config", adapters(), roots=(tmp_path / "project",)) as server:
        yield server


def audited(served: Serving) -> list[tuple[str, str, str]]:
    entries = served.http.get("/v1/audit").json()["entries"]
    return [(entry["action"], entry["target"], entry["outcome"]) for entry in entries[::-1]]


def test_a_session_is_rewound_renamed_and_deleted(served: Serving, home: Path) -> None:
    points = served.http.get(f"{SESSION}/checkpoints").json()
    assert [(point["id"], point["turn"], point["prompt"]) for point in points] == [
        ("aa1", 0, "first"), ("ab2", 1, "second"),
    ]  # fmt: skip
    plan = served.http.post(f"{SESSION}/rewind", json={"checkpoint": "ab", "dryRun": True}).json()
    assert (plan["checkpoint"]["id"], plan["changed"]) == ("ab2", "conversation")
    assert len(served.http.get(f"{SESSION}/checkpoints").json()) == 2
    assert served.http.post(f"{SESSION}/rewind", json={"checkpoint": "ab2"}).json()["session"] == "scripted:one"
    assert len(served.http.get(f"{SESSION}/checkpoints").json()) == 1
    assert served.http.patch(SESSION, json={"title": "New"}).json()["title"] == "New"
    assert served.http.delete(SESSION).json()["id"] == "scripted:one"
    assert not (home / "one.jsonl").exists()
    assert served.http.delete(SESSION).json()["code"] == "SESSION_NOT_FOUND"
    assert audited(served) == [
        ("session.rewind", "scripted:one", "ok"), ("session.rename", "scripted:one", "ok"),
        ("session.delete", "scripted:one", "ok"), ("session.delete", "scripted:one", "SESSION_NOT_FOUND"),
    ]  # fmt: skip


@pytest.mark.parametrize("session", ["outside", "nowhere"])
def test_a_session_outside_of_the_roots_is_not_changed(served: Serving, home: Path, session: str) -> None:
    path, before = f"/v1/sessions/scripted/{session}", (home / f"{session}.jsonl").read_bytes()
    answers = [
        served.http.post(f"{path}/rewind", json={"checkpoint": "aa1"}),
        served.http.post(f"{path}/rewind", json={"checkpoint": "aa1", "dryRun": True}),
        served.http.patch(path, json={"title": "New"}),
        served.http.delete(path),
    ]
    assert [answer.status_code for answer in answers] == [403] * 4
    assert all("amux serve --root" in answer.json()["detail"] for answer in answers)
    assert (home / f"{session}.jsonl").read_bytes() == before
    assert {outcome for _, _, outcome in audited(served)} == {"FORBIDDEN"}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("POST", f"{SESSION}/rewind", {"checkpoint": "none"}, 422, "VALIDATION_ERROR"),
        ("POST", f"{SESSION}/rewind", {"checkpoint": "a"}, 422, "VALIDATION_ERROR"),
        ("POST", f"{SESSION}/rewind", {"checkpoint": "aa1", "scope": "files"}, 422, "CAPABILITY_ERROR"),
        ("POST", f"{SESSION}/rewind", {"checkpoint": "aa1", "force": True}, 422, "VALIDATION_ERROR"),
        ("POST", f"{SESSION}/rewind", {}, 422, "VALIDATION_ERROR"),
        ("PATCH", SESSION, {"title": ""}, 422, "VALIDATION_ERROR"),
        ("PATCH", SESSION, {"title": "--model=x"}, 422, "VALIDATION_ERROR"),
        ("PATCH", SESSION, {"title": "fail"}, 500, "AGENT_CRASH"),
        ("GET", "/v1/sessions/scripted/none/checkpoints", None, 404, "SESSION_NOT_FOUND"),
        ("DELETE", "/v1/sessions/nobody/one", None, 404, "AGENT_NOT_FOUND"),
    ],
)
def test_a_change_that_is_not_possible_is_refused(
    served: Serving, home: Path, method: str, path: str, body: Any, status: int, code: str
) -> None:
    before = (home / "one.jsonl").read_bytes()
    answer = served.http.request(method, path, json=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert (home / "one.jsonl").read_bytes() == before


@pytest.mark.slow
def test_changes_need_the_scope_admin(home: Path, tmp_path: Path) -> None:
    config = tmp_path / "config"
    tokens = {scope: make_token(config, scope, scope) for scope in ("read", "run", "admin")}
    with serving(config, adapters(), roots=(tmp_path / "project",)) as server:

        def status(scope: str, method: str, path: str, body: Any = None) -> int:
            url, headers = server.url + path, bearing(tokens[scope])
            return httpx.request(method, url, json=body, headers=headers, timeout=60).status_code

        for scope in ("read", "run"):
            assert status(scope, "GET", f"{SESSION}/checkpoints") == 200
            assert status(scope, "POST", f"{SESSION}/rewind", {"checkpoint": "ab2"}) == 403
            assert status(scope, "PATCH", SESSION, {"title": "New"}) == 403
            assert status(scope, "DELETE", SESSION) == 403
        assert status("admin", "PATCH", SESSION, {"title": "New"}) == 200
        assert status("admin", "DELETE", SESSION) == 200


def test_the_remote_client_has_the_same_methods(served: Serving) -> None:
    sessions = RemoteMux(served.url).sessions
    first, second = sessions.checkpoints("scripted:one")
    assert (first.id, second.prompt) == ("aa1", "second")
    assert sessions.plan_rewind("one", "ab2").checkpoint == second
    assert sessions.rewind("one", "ab2").checkpoint == second
    assert sessions.rename("one", "New").title == "New"
    assert sessions.delete("one").title == "New"
    with pytest.raises(AgentMuxError) as caught:
        sessions.delete("scripted:outside")
    assert caught.value.code == "FORBIDDEN"


def test_an_agent_without_a_command_is_refused(home: Path, tmp_path: Path) -> None:
    commands = SessionCommands(missing={"delete": "it keeps all"})
    with serving(tmp_path / "config", adapters(commands), roots=(tmp_path / "project",)) as server:
        sessions = RemoteMux(server.url).sessions
        for change in (
            lambda: sessions.delete("one"), lambda: sessions.rename("one", "New"), lambda: sessions.checkpoints("one"),
        ):  # fmt: skip
            with pytest.raises(CapabilityError):
                change()


def test_commands_change_sessions_of_a_service(served: Serving, home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    at = ("--server", served.url)
    assert main(["sessions", "checkpoints", "one", "--json", *at]) == 0
    assert [one["id"] for one in json.loads(capfd.readouterr().out)["data"]] == ["aa1", "ab2"]
    assert main(["sessions", "rewind", "one", "ab2", "--yes", *at]) == 0
    assert main(["sessions", "rename", "one", "New", *at]) == 0
    assert main(["sessions", "delete", "one", *at]) == 2  # nobody can be asked
    assert (home / "one.jsonl").exists()
    assert main(["sessions", "delete", "one", "--yes", *at]) == 0
    assert not (home / "one.jsonl").exists()
    assert "deleted scripted:one" in capfd.readouterr().err
    assert [action for action, _, _ in audited(served)] == ["session.rewind", "session.rename", "session.delete"]
