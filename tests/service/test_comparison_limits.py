"""What a client may not do by comparisons: leave the roots, start without the right or beyond a limit, read secrets."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.process.compared_agents import make_repository
from tests.service.comparing import comparing, ended, messages, request_of, started
from tests.service.keys import bearing, make_token
from tests.service.serving import Serving

SECRET = "sk-0123456789abcdef0123456789"  # noqa: S105  # one for tests


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("limits")
    make_repository(place / "outside")
    (place / "outside" / "fix.patch").write_text("")
    (place / "outside" / "schema.json").write_text("{}")
    return place


@pytest.fixture(scope="module")
def served(place: Path) -> Iterator[Serving]:
    with comparing(place, "fixes", "hangs") as server:
        (place / "project" / "link").symlink_to(place / "outside")
        yield server


def refused(served: Serving, *candidates: Any, **fields: Any) -> list[tuple[str, str]]:
    """Return the paths and allowed values of a refused request, which has started nothing."""
    before = served.http.get("/v1/comparisons").json()
    response = served.http.post("/v1/comparisons", json=request_of(*(candidates or ("null",)), **fields))
    assert response.status_code == 422, response.text
    assert served.http.get("/v1/comparisons").json() == before
    return [(one["path"], one["allowed"]) for one in response.json().get("fields", [])]


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("cwd", {"cwd": "../outside"}),
        ("cwd", {"cwd": "link"}),
        ("cwd", {"cwd": "/"}),
        ("hiddenChecks", {"hiddenChecks": "../outside"}),
        ("checks[0].schema", {"checks": [{"schema": "../outside/schema.json"}]}),
        ("checks[1].directory", {"checks": ["true", {"python": "os:abort", "directory": "/tmp"}]}),
        ("candidates[0].patch", {"candidates": ["oracle:../outside/fix.patch"]}),
        ("candidates[0].patch", {"candidates": [{"kind": "oracle", "patch": "link/fix.patch"}]}),
        ("agentsDoc", {"candidates": [{"agent": "fixes", "agentsDoc": "/etc/passwd"}]}),
        ("addDirs[0]", {"candidates": ['fixes,add_dirs=["/etc"]']}),
        ("addDirs[0]", {"candidates": ["fixes"], "options": {"addDirs": ["/tmp"]}}),
        ("judge", {"judge": 'fixes,agents_doc="/etc/passwd"'}),
    ],
)
def test_paths_outside_of_the_roots_are_refused(served: Serving, field: str, fields: dict[str, Any]) -> None:
    ((path, allowed),) = refused(served, **{"candidates": ["null"], **fields})
    assert path == field
    assert "in /" in allowed or "inside" in allowed or field == "judge"


def test_recording_outside_of_the_roots_is_refused(served: Serving) -> None:
    ((path, _),) = refused(served, "replay", prompt="/etc/passwd")
    assert path == "prompt"


def test_repository_around_the_root_is_refused(tmp_path: Path) -> None:
    (make_repository(tmp_path / "project") / "part").mkdir()
    with comparing(tmp_path, roots=[tmp_path / "project" / "part"]) as served:
        ((path, allowed),) = refused(served)
    assert path == "cwd"
    assert "repository" in allowed


def test_directory_with_the_files_of_the_service_is_refused(tmp_path: Path) -> None:
    with comparing(tmp_path, roots=[tmp_path]) as served:
        ((path, allowed),) = refused(served)
    assert path == "cwd"
    assert "files of the service" in allowed


@pytest.mark.parametrize(
    ("field", "fields"),
    [
        ("options.cwd", {"options": {"cwd": "."}}),
        ("options.sessionId", {"options": {"sessionId": "x"}}),
        ("options.mcpServers", {"options": {"mcpServers": [{"name": "x", "command": "y"}]}}),
        ("candidates[0].onApprovalRequest", {"candidates": [{"agent": "fixes", "onApprovalRequest": "pending"}]}),
        ("candidates.prompt", {"candidates": ["fixes,prompt=x"]}),
        ("trials", {"candidates": ["null,trials=600", "oracle:a.patch,trials=600"], "checks": []}),
    ],
)
def test_options_that_a_comparison_cannot_have_are_refused(
    served: Serving, place: Path, field: str, fields: dict[str, Any]
) -> None:
    (place / "project" / "a.patch").write_text("")
    ((path, allowed),) = refused(served, **{"candidates": ["fixes"], **fields})
    assert path == field
    assert allowed


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"prompt": "x"}, "candidates"),
        ({"prompt": "x", "candidates": []}, "candidates"),
        ({"prompt": "x", "candidates": ["null"], "chekcs": []}, "chekcs"),
        ({"prompt": "x", "candidates": ["null"], "jobs": 65}, "jobs"),
        ({"prompt": "x", "candidates": ["nobody-like-this"]}, "nobody-like-this"),
        ({"prompt": "x", "candidates": ["null"], "select": "best"}, "checks-first"),
        ({"prompt": "x", "candidates": ["null"], "checks": ["a | b"]}, "needs a shell"),
    ],
)
def test_invalid_bodies_name_the_mistake(served: Serving, body: dict[str, Any], named: str) -> None:
    response = served.http.post("/v1/comparisons", json=body)
    assert response.status_code in {404, 422}
    assert named in response.text


@pytest.mark.slow
def test_secrets_of_agents_are_neither_stored_nor_shown(served: Serving, place: Path) -> None:
    candidate = {"agent": "fixes", "env": {"API_KEY": SECRET}}
    comparison = started(served.http, candidate, checks=[f"echo {SECRET}"])
    view = ended(served.http, comparison)
    assert view["report"]["options"]["candidateEnv"] == {"fixes": ["API_KEY"]}
    shown = [served.http.get(f"/v1/comparisons/{comparison}{path}").text for path in ("", "?records=true", "/events")]
    shown += [served.http.get(f"/v1/comparisons/{comparison}/export?format={one}").text for one in ("markdown", "html")]
    shown.append(served.http.get("/v1/comparisons").text)
    assert not [text for text in shown if SECRET in text]
    stored = place / "config" / "service" / "comparisons" / comparison
    journals = [path for path in stored.rglob("*.journal") if SECRET.encode() in path.read_bytes()]
    assert not journals


@pytest.mark.slow
def test_interrupted_comparison_needs_its_variables_again(served: Serving) -> None:
    comparison = started(served.http, {"agent": "hangs", "env": {"API_KEY": SECRET}})
    messages(served.http, comparison, until="text_delta")
    served.http.post(f"/v1/comparisons/{comparison}/stop")
    path = f"/v1/comparisons/{comparison}/resume"
    missing = served.http.post(path, json={})
    assert (missing.status_code, missing.json()["fields"][0]["path"]) == (422, "env")
    assert "API_KEY" in missing.json()["fields"][0]["allowed"]
    assert served.http.post(path, json={"env": {"API_KEY": SECRET}}).status_code == 200
    served.http.post(f"/v1/comparisons/{comparison}/stop")


@pytest.mark.slow
def test_scope_read_may_only_read(tmp_path: Path) -> None:
    reader, runner = (bearing(make_token(tmp_path / "config", f"{one}er", one)) for one in ("read", "run"))
    with comparing(tmp_path, "fixes") as served:
        response = served.http.post("/v1/comparisons", headers=runner, json=request_of("null", checks=[]))
        comparison = response.json()["id"]
        served.http.get(f"/v1/comparisons/{comparison}/events", headers=reader)
        path = f"/v1/comparisons/{comparison}"
        for allowed in (path, f"{path}/events", f"{path}/trials/null-1", f"{path}/export", "/v1/comparisons"):
            assert served.http.get(allowed, headers=reader).status_code == 200
        for command in ("stop", "resume", "apply", "trials/null-1/abort"):
            assert served.http.post(f"{path}/{command}", headers=reader, json={}).status_code == 403
        assert served.http.post("/v1/comparisons", headers=reader, json=request_of("null")).status_code == 403
        assert served.http.delete(path, headers=reader).status_code == 403
        assert served.http.get(path).status_code == 401
        mine = served.http.get("/v1/comparisons", headers=reader, params={"owner": "runer"}).json()
        assert [one["id"] for one in mine["comparisons"]] == [comparison]
        assert served.http.get("/v1/comparisons", headers=reader, params={"owner": "x"}).json() == {"comparisons": []}


@pytest.mark.slow
def test_each_trial_of_an_agent_counts_as_the_start_of_a_run(tmp_path: Path) -> None:
    with comparing(tmp_path, "fixes", runs_per_minute=3) as served:

        def post(*candidates: str) -> httpx.Response:
            return served.http.post("/v1/comparisons", json=request_of(*candidates))

        too_many = post("fixes,trials=4")
        assert (too_many.status_code, too_many.json()["code"]) == (429, "LIMIT_EXCEEDED")
        assert "4 run starts" in too_many.json()["detail"]
        assert served.http.get("/v1/comparisons").json() == {"comparisons": []}
        accepted = post("fixes,trials=2", "null,trials=9")
        assert accepted.status_code == 201
        assert accepted.headers["ratelimit-remaining"] == "1"
        assert post("fixes,trials=2").status_code == 429
        served.http.post(f"/v1/comparisons/{accepted.json()['id']}/stop")


def test_runs_that_a_judge_may_need_count_as_starts_of_runs(tmp_path: Path) -> None:
    with comparing(tmp_path, "fixes", "nothing", "prefers-a", runs_per_minute=3) as served:
        body = request_of("fixes", "nothing", "null", judge="prefers-a")
        refused = served.http.post("/v1/comparisons", json=body)
        assert refused.status_code == 429
        assert "4 run starts at once exceed the limit of 3" in refused.json()["detail"]


@pytest.mark.slow
def test_actions_are_in_the_audit_trail(served: Serving) -> None:
    comparison = started(served.http, "hangs", checks=[])
    messages(served.http, comparison, until="text_delta")
    served.http.post(f"/v1/comparisons/{comparison}/trials/hangs-1/steer", json={"text": "hello"})
    served.http.post(f"/v1/comparisons/{comparison}/stop")
    served.http.delete(f"/v1/comparisons/{comparison}")
    entries = audit(served.http, comparison)
    assert [(one["action"], one["outcome"]) for one in entries] == [
        ("comparison.delete", "ok"),
        ("comparison.stop", "ok"),
        ("comparison.start", "ok"),
    ]
    assert entries[-1]["detail"]["runs"] == 1
    (steer,) = served.http.get("/v1/audit", params={"action": "run.steer"}).json()["entries"]
    assert steer["detail"]["comparison"] == comparison
    assert steer["detail"]["trial"] == "hangs-1"


def audit(http: httpx.Client, comparison: str) -> list[dict[str, Any]]:
    query = {"target": comparison, "targetType": "comparison"}
    entries: list[dict[str, Any]] = http.get("/v1/audit", params=query).json()["entries"]
    return entries
