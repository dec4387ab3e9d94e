"""`/v1/comparisons`: start, read, stream, control and export comparisons of scripted agents."""

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.process.compared_agents import git, state_of
from tests.service.comparing import comparing, ended, messages, request_of, started, verdicts
from tests.service.serving import Serving


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("comparisons")


@pytest.fixture(scope="module")
def served(place: Path) -> Iterator[Serving]:
    with comparing(place, "fixes", "nothing", "denied", "hangs") as server:
        yield server


@pytest.fixture(scope="module")
def finished(served: Serving) -> str:
    """A comparison in which one candidate passes."""
    comparison = started(served.http, "fixes", {"agent": "nothing", "name": "lazy"}, "null")
    ended(served.http, comparison)
    return comparison


def test_candidates_are_judged_and_the_repository_stays_as_it_was(served: Serving, place: Path) -> None:
    before = state_of(place / "project")
    view = ended(served.http, started(served.http, "fixes", "nothing", "null"))
    assert view["status"] == "ended"
    assert verdicts(view) == {"fixes-1": "pass", "nothing-1": "fail", "null-1": "fail"}
    assert view["selection"]["winner"] == "fixes-1"
    assert view["report"]["gate"]["status"] == "passed"
    assert view["report"]["differences"]["byOne"][0]["path"] == "calc.py"
    assert "fixes" in view["table"]
    assert (view["trials"], view["over"], view["passed"]) == (3, 3, 1)
    assert state_of(place / "project") == before


@pytest.mark.slow
@pytest.mark.parametrize("path", ["", "/export"])
def test_selected_strategy_determines_the_selection_and_the_report(served: Serving, finished: str, path: str) -> None:
    view = served.http.get(f"/v1/comparisons/{finished}{path}", params={"select": "transparent"}).json()
    assert view["selection"]["strategy"] == "transparent"
    assert view["selection"] == view["report"]["selection"]
    assert served.http.get(f"/v1/comparisons/{finished}{path}", params={"select": "best"}).status_code == 422


@pytest.mark.slow
def test_folder_is_private(served: Serving, place: Path, finished: str) -> None:
    folder = place / "config" / "service" / "comparisons" / finished
    assert folder.stat().st_mode & 0o777 == 0o700
    assert not list((place / "config" / "service" / "workspaces").iterdir())
    assert served.http.get(f"/v1/comparisons/{finished}").json()["id"] == finished


@pytest.mark.slow
def test_list_has_the_latest_first_in_pages(served: Serving, finished: str) -> None:
    second = started(served.http, "null", checks=[])
    ended(served.http, second)
    first_page = served.http.get("/v1/comparisons", params={"limit": 1}).json()
    assert [one["id"] for one in first_page["comparisons"]] == [second]
    rest = served.http.get("/v1/comparisons", params={"cursor": first_page["next"], "records": True}).json()
    found = {one["id"]: one for one in rest["comparisons"]}
    assert found[finished]["candidates"] == ["fixes", "lazy", "null"]
    assert found[finished]["record"]["plan"]["prompt"] == "fix it"
    assert served.http.get("/v1/comparisons", params={"status": "active"}).json() == {"comparisons": []}
    assert served.http.get("/v1/comparisons", params={"cursor": "../x"}).status_code == 422


def test_stream_has_facts_and_tagged_events_in_order(served: Serving, finished: str) -> None:
    found = [data for _, data in messages(served.http, finished)]
    facts = [data["fact"]["type"] for data in found if data["type"] == "fact"]
    assert facts[0] == "begun"
    assert facts[-1] == "ended"
    assert facts.count("trial_ended") == 3
    events = [data for data in found if data["type"] == "event"]
    assert {(data["trial"], data["candidate"], data["attempt"]) for data in events} == {
        ("fixes-1", "fixes", 1),
        ("lazy-1", "lazy", 1),
    }
    for trial in ("fixes-1", "lazy-1"):
        types = [data["event"]["type"] for data in events if data["trial"] == trial]
        assert (types[0], types[-1]) == ("session_start", "session_end")
        opened, closed = (fact_position(found, kind, trial) for kind in ("attempt_started", "trial_ended"))
        positions = [number for number, data in enumerate(found) if data.get("trial") == trial]
        assert opened < positions[0] <= positions[-1] < closed


def fact_position(found: list[dict[str, Any]], kind: str, trial: str) -> int:
    """Return the number of the message with a fact about a trial."""
    for number, data in enumerate(found):
        fact = data.get("fact", {})
        named = fact.get("trial")
        if fact.get("type") == kind and trial == (named["id"] if isinstance(named, dict) else named):
            return number
    raise AssertionError(f"no {kind} of {trial}")


def test_stream_resumes_behind_any_message(served: Serving, finished: str) -> None:
    whole = messages(served.http, finished)
    for number in range(0, len(whole), 3):
        assert messages(served.http, finished, after=whole[number][0]) == whole[number + 1 :]
    assert messages(served.http, finished, after=whole[-1][0]) == []
    response = served.http.get(f"/v1/comparisons/{finished}/events", headers={"last-event-id": whole[-1][0]})
    assert response.status_code == 204


@pytest.mark.parametrize("id_", ["x", "9999", "1,fixes-1:1", "3,nobody-1:2", "1,", "-1", "1" * 9000])
def test_unknown_position_is_refused(served: Serving, finished: str, id_: str) -> None:
    response = served.http.get(f"/v1/comparisons/{finished}/events", headers={"last-event-id": id_})
    assert response.status_code == 422
    assert "the id of a message" in response.json()["detail"]


def test_lines_are_those_of_the_messages(served: Serving, finished: str) -> None:
    response = served.http.get(f"/v1/comparisons/{finished}/events", headers={"accept": "application/jsonl"})
    assert [json.loads(line) for line in response.text.splitlines()] == [
        data for _, data in messages(served.http, finished)
    ]


def test_trial_has_its_outcome_and_a_patch_that_applies(
    served: Serving, place: Path, finished: str, tmp_path: Path
) -> None:
    trial = served.http.get(f"/v1/comparisons/{finished}/trials/fixes-1").json()
    assert trial["trial"]["verdict"] == "pass"
    assert "run" not in trial
    patch = served.http.get(f"/v1/comparisons/{finished}/trials/fixes-1/patch")
    assert patch.headers["content-type"].startswith("text/x-diff")
    subprocess.run(["git", "clone", "-q", place / "project", tmp_path / "clone"], check=True, timeout=60)
    subprocess.run(["git", "apply"], input=patch.content, cwd=tmp_path / "clone", check=True, timeout=60)
    assert "a + b" in (tmp_path / "clone" / "calc.py").read_text()
    other = served.http.get(f"/v1/comparisons/{finished}/trials/fixes-1/patch", params={"against": "lazy-1"})
    assert b"calc.py" in other.content
    for path in ("nobody-1", "nobody-1/patch", "fixes-1/patch?against=x"):
        response = served.http.get(f"/v1/comparisons/{finished}/trials/{path}")
        assert response.status_code == 404
        assert "it has: fixes-1" in response.json()["detail"]


@pytest.mark.parametrize(
    ("form", "media_type", "part"),
    [
        ("json", "application/json", '"record":'),
        ("markdown", "text/markdown", "fixes"),
        ("html", "text/html", "<table"),
    ],
)
def test_export_is_an_attachment(served: Serving, finished: str, form: str, media_type: str, part: str) -> None:
    response = served.http.get(f"/v1/comparisons/{finished}/export", params={"format": form})
    assert response.headers["content-type"].startswith(media_type)
    assert response.headers["content-disposition"].startswith(f'attachment; filename="comparison-{finished}.')
    assert "sandbox" in response.headers["content-security-policy"]
    assert part in response.text


@pytest.mark.slow
def test_pending_approval_is_answered_through_the_trial(served: Serving) -> None:
    options = {"timeout": 60_000, "gracePeriod": 1000, "approvalMode": "prompt", "onApprovalRequest": None}
    comparison = started(served.http, "denied", checks=[], options=options)
    messages(served.http, comparison, until="approval_request")
    trial = f"/v1/comparisons/{comparison}/trials/denied-1"
    (pending,) = served.http.get(trial).json()["run"]["pending"]
    answer = served.http.post(f"{trial}/deny", json={"interactionId": pending["id"], "reason": "no"})
    assert answer.json()["delivery"] == "applied"
    view = ended(served.http, comparison)
    assert view["report"]["trials"][0]["cause"] == "denied"
    late = served.http.post(f"{trial}/approve", json={})
    assert (late.status_code, late.json()["code"]) == (409, "RUN_NOT_ACTIVE")


@pytest.mark.slow
def test_run_of_the_judge_is_visible_and_ends_on_request(served: Serving) -> None:
    candidates = [{"agent": "nothing", "name": name} for name in ("a", "b")]
    comparison = started(served.http, *candidates, checks=[], judge="hangs")
    first = judge_run(served, comparison)
    assert first["name"] == "judge:a-1:b-1"
    assert first["run"]["state"] in {"spawned", "running"}
    aborted = served.http.post(f"/v1/comparisons/{comparison}/trials/{first['name']}/abort", json={})
    assert (aborted.status_code, aborted.json()["run"]["runId"]) == (200, first["run"]["runId"])
    assert judge_run(served, comparison, but=first["name"])["name"] == "judge:b-1:a-1"
    served.service.comparisons.kill()  # what a second signal does
    view = ended(served.http, comparison)
    assert "judgeRun" not in view
    assert [bool(one["problem"]) for one in view["judgements"]] == [True, True]


def judge_run(served: Serving, comparison: str, but: str = "") -> dict[str, Any]:
    """Wait until the judge has a run with another name than `but`, and return it."""
    deadline = time.monotonic() + 60.0
    while True:
        found: dict[str, Any] = served.http.get(f"/v1/comparisons/{comparison}").json().get("judgeRun", {})
        if found.get("name", but) != but:
            return found
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.slow
def test_stopped_comparison_is_resumed(served: Serving) -> None:
    comparison = started(served.http, "hangs", {"kind": "null", "trials": 2}, jobs=1, seed=1)
    messages(served.http, comparison, until="text_delta")
    delete = served.http.delete(f"/v1/comparisons/{comparison}")
    assert (delete.status_code, delete.json()["code"]) == (409, "INVALID_STATE_TRANSITION")
    stopped = served.http.post(f"/v1/comparisons/{comparison}/stop").json()
    assert stopped["status"] == "interrupted"
    assert served.http.post(f"/v1/comparisons/{comparison}/stop").json()["status"] == "interrupted"
    before = messages(served.http, comparison)
    resumed = served.http.post(f"/v1/comparisons/{comparison}/resume", json={})
    assert resumed.status_code == 200, resumed.text
    again = served.http.post(f"/v1/comparisons/{comparison}/resume", json={})
    assert again.status_code == 409
    served.http.post(f"/v1/comparisons/{comparison}/stop")
    after = messages(served.http, comparison)
    assert after[: len(before)] == before
    assert len(after) > len(before)
    assert served.http.delete(f"/v1/comparisons/{comparison}").status_code == 204
    assert served.http.get(f"/v1/comparisons/{comparison}").status_code == 404


@pytest.mark.slow
def test_applied_trial_changes_the_working_tree_only(tmp_path: Path) -> None:
    with comparing(tmp_path, "fixes") as served:
        comparison = started(served.http, "fixes")
        ended(served.http, comparison)
        head = git(tmp_path / "project", "rev-parse", "HEAD")
        applied = served.http.post(f"/v1/comparisons/{comparison}/apply", json={"trial": "fixes-1"})
        assert applied.status_code == 200, applied.text
        assert applied.json()["files"] == ["calc.py"]
        assert [check["status"] for check in applied.json()["checks"]] == ["pass"]
        assert "a + b" in (tmp_path / "project" / "calc.py").read_text()
        assert git(tmp_path / "project", "rev-parse", "HEAD") == head
        actions = [one["action"] for one in served.http.get("/v1/audit").json()["entries"]]
        assert actions[:2] == ["comparison.apply", "comparison.start"]


def test_repeated_key_returns_the_same_comparison(served: Serving) -> None:
    body, headers = request_of("null", checks=[]), {"idempotency-key": "once"}
    first = served.http.post("/v1/comparisons", json=body, headers=headers)
    second = served.http.post("/v1/comparisons", json=body, headers=headers)
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json()["id"] == second.json()["id"]
    assert second.headers["idempotent-replayed"] == "true"
    other = served.http.post("/v1/comparisons", json={**body, "trials": 2}, headers=headers)
    assert (other.status_code, other.json()["fields"][0]["path"]) == (422, "Idempotency-Key")


def test_failure_of_a_comparison_is_stored(served: Serving) -> None:
    comparison = started(served.http, "null", checks=["no-such-program-anywhere"])
    view = ended(served.http, comparison)
    assert view["status"] == "interrupted"
    assert view["error"]["code"] == "CONFIG_ERROR"
    assert "no-such-program-anywhere" in view["error"]["message"]


@pytest.mark.slow
def test_metrics_count_comparisons_and_trials_once_also_after_a_resumption(tmp_path: Path) -> None:
    with comparing(tmp_path, "fixes", "hangs") as served:
        comparison = started(served.http, "fixes", "null", "hangs", seed=1, jobs=3)
        wait_for_outcome(served, comparison)
        assert "agent_mux_comparisons 1.0" in served.http.get("/metrics").text
        served.http.post(f"/v1/comparisons/{comparison}/stop")
        served.http.post(f"/v1/comparisons/{comparison}/resume", json={})
        served.http.post(f"/v1/comparisons/{comparison}/stop")
        lines = served.http.get("/metrics").text.splitlines()
        outcomes = [trial for trial in ended(served.http, comparison)["report"]["trials"] if trial["verdict"]]
    counted = [float(line.split()[-1]) for line in lines if line.startswith("agent_mux_trials_ended_total")]
    assert sum(counted) == len(outcomes) > 0
    assert 'agent_mux_comparisons_ended_total{status="interrupted"} 2.0' in lines
    assert "agent_mux_comparisons 0.0" in lines


def wait_for_outcome(served: Serving, comparison: str) -> None:
    """Wait until a trial of an active comparison has an outcome."""
    with served.http.stream("GET", f"/v1/comparisons/{comparison}/events?events=false") as response:
        assert any('"type":"trial_ended"' in line for line in response.iter_lines())


@pytest.mark.slow
def test_oldest_comparisons_are_deleted_after_a_start(tmp_path: Path) -> None:
    with comparing(tmp_path) as served:
        over = [started(served.http, "null", checks=[]) for _ in range(3)]
        for one in over:
            ended(served.http, one)
    with comparing(tmp_path, keep_comparisons=1, keep_days=1) as served:
        wait_for_comparisons(served, over[-1:])
        query = {"action": "comparison.delete"}
        deleted = served.http.get("/v1/audit", params=query).json()["entries"]
        assert {one["origin"] for one in deleted} == {"retention"}
    with comparing(tmp_path, keep_days=0) as served:
        wait_for_comparisons(served, [])


def wait_for_comparisons(served: Serving, ids: list[str]) -> None:
    deadline = time.monotonic() + 60.0
    while [one["id"] for one in served.http.get("/v1/comparisons").json()["comparisons"]] != ids:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("method", ["get", "delete"])
@pytest.mark.parametrize("id_", ["01M827HBMYXPAB2RSEB041G7GN", "..%2f..", "x"])
def test_unknown_comparison_is_not_found(served: Serving, method: str, id_: str) -> None:
    response = served.http.request(method, f"/v1/comparisons/{id_}")
    assert (response.status_code, response.json()["code"]) == (404, "NOT_FOUND")
