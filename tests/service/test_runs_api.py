"""Runs over HTTP, on the recording that is built in: no agent, no key."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec import convert
from tests.service.serving import Serving, serving

from agent_mux import BlockingRemoteMux, RemoteMux, validate
from agent_mux.client.remote.run_queries import RunSummary
from agent_mux.errors import ValidationError
from agent_mux.redaction import HIDDEN
from agent_mux.run.lifecycle import RunLifecycle


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with serving(tmp_path_factory.mktemp("served")) as server:
        yield server


def demo(served: Serving, **fields: Any) -> dict[str, Any]:
    body = {"agent": "replay", "prompt": "demo", "env": {"AMUX_REPLAY_SPEED": "0"}, **fields}
    answer = served.http.post("/v1/runs", json=body)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def sse(text: str) -> list[tuple[int, dict[str, Any]]]:
    messages = []
    for block in text.split("\n\n"):
        if block.startswith("id: "):
            head, _, data = block.partition("\ndata: ")
            messages.append((int(head.removeprefix("id: ")), json.loads(data)))
    return messages


@pytest.mark.slow
def test_a_run_is_started_watched_and_remembered(served: Serving) -> None:
    run = demo(served, tags=["review"])
    messages = sse(served.http.get(f"/v1/runs/{run['runId']}/events").text)
    assert [number for number, _ in messages] == list(range(len(messages)))
    *events, result = [event for _, event in messages]
    assert validate(events) == []
    assert result["type"] == "run_result"
    assert result["exitReason"] == "completed"
    shown = served.http.get(f"/v1/runs/{run['runId']}").json()
    assert (shown["state"], shown["eventCount"], shown["tags"]) == ("completed", len(events), ["review"])
    assert shown["result"] == result
    assert shown["request"]["env"] == {"AMUX_REPLAY_SPEED": HIDDEN}


def test_the_lines_are_those_of_the_command(served: Serving) -> None:
    run = demo(served)
    path = f"/v1/runs/{run['runId']}/events"
    lines = served.http.get(path, headers={"accept": "application/jsonl"}).text.splitlines()
    assert [json.loads(line) for line in lines] == [event for _, event in sse(served.http.get(path).text)]


@pytest.mark.slow
@pytest.mark.parametrize("seen", [0, 1, 57, 160])
def test_a_reader_resumes_after_its_last_event(served: Serving, seen: int) -> None:
    run = demo(served)
    path = f"/v1/runs/{run['runId']}/events"
    whole = sse(served.http.get(path).text)
    rest = sse(served.http.get(path, headers={"last-event-id": str(seen)}).text)
    assert rest == whole[seen + 1 :]
    assert served.http.get(path, headers={"last-event-id": str(whole[-1][0])}).status_code == 204


def test_a_key_makes_one_run_of_the_same_request(served: Serving) -> None:
    body = {"agent": "replay", "prompt": "demo"}
    first = served.http.post("/v1/runs", json=body, headers={"idempotency-key": "k"})
    again = served.http.post("/v1/runs", json=body, headers={"idempotency-key": "k"})
    other = served.http.post("/v1/runs", json={**body, "tags": ["x"]}, headers={"idempotency-key": "k"})
    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 422)
    assert first.json()["runId"] == again.json()["runId"]
    served.http.post(f"/v1/runs/{first.json()['runId']}/abort").raise_for_status()


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"agent": "nobody", "prompt": "hi"}, 404, "AGENT_NOT_FOUND"),
        ({"agent": "replay", "prompt": ""}, 422, "VALIDATION_ERROR"),
        ({"agent": "replay", "prompt": "demo", "timeout": -1}, 422, "VALIDATION_ERROR"),
        ({"agent": "replay", "prompt": "demo", "journal": "/tmp/x"}, 422, "VALIDATION_ERROR"),
        ({"agent": "replay", "prompt": "demo", "nonsense": 1}, 422, "VALIDATION_ERROR"),
        ({"agent": "replay", "prompt": "demo", "outputSchema": {}}, 422, "CAPABILITY_ERROR"),
        ([], 422, "VALIDATION_ERROR"),
    ],
)
def test_what_cannot_be_is_a_problem_and_no_run(served: Serving, body: Any, status: int, code: str) -> None:
    before = served.http.get("/v1/runs", params={"limit": 200}).json()["runs"]
    answer = served.http.post("/v1/runs", json=body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert served.http.get("/v1/runs", params={"limit": 200}).json()["runs"] == before


@pytest.mark.parametrize(
    ("field", "path"),
    [
        ({"policy": {"timeout": -1}}, "policy.timeout"),
        ({"tags": ["short", "x" * 257]}, "tags[1]"),
    ],
)
def test_a_bad_field_is_named(served: Serving, field: dict[str, Any], path: str) -> None:
    answer = served.http.post("/v1/runs", json={"agent": "replay", "prompt": "demo", **field})
    assert (answer.status_code, [one["path"] for one in answer.json()["fields"]]) == (422, [path])


def test_the_longest_tag_finds_its_run(served: Serving) -> None:
    run = demo(served, tags=["\N{GRINNING FACE}" * 256])
    found = served.http.get("/v1/runs", params={"tag": run["tags"][0]}).json()["runs"]
    assert [one["runId"] for one in found] == [run["runId"]]


@pytest.mark.slow
def test_pages_have_every_run_once(served: Serving) -> None:
    wanted = {demo(served, tags=["paged"])["runId"] for _ in range(5)}
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = served.http.get("/v1/runs", params={"tag": "paged", "limit": 2, **cursor}).json()
        found += [run["runId"] for run in page["runs"]]
        if "next" not in page:
            break
        cursor = {"cursor": page["next"]}
    assert len(found) == 5
    assert set(found) == wanted


@pytest.fixture(scope="module")
def three(served: Serving) -> list[str]:
    """Of one project, the latest first; they are over."""
    runs = [demo(served, projectId="listed", tags=["red", f"n{number}"])["runId"] for number in range(3)]
    for run in runs:
        served.http.get(f"/v1/runs/{run}/events")
    return runs[::-1]


@pytest.mark.slow
@pytest.mark.parametrize("limit", [0, 1, 2, 3, 4, None])
def test_a_client_lists_runs_page_by_page(
    served: Serving, three: list[str], monkeypatch: pytest.MonkeyPatch, limit: int | None
) -> None:
    monkeypatch.setattr("agent_mux.client.remote.connection.MAX_PAGE_SIZE", 2)
    listed = RemoteMux(served.url).runs.list(project_id="listed", limit=limit)
    assert [run.run_id for run in listed] == three[:limit]


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        ({"state": "over"}, 3),
        ({"state": ["completed", "alive"], "exit_reason": "completed"}, 3),
        ({"state": "alive"}, 0),
        ({"agent": "replay", "tags": ["red", "n1"]}, 1),
        ({"tags": ["blue"]}, 0),
        ({"until": 1}, 0),
        ({"since": datetime(2020, 1, 1, tzinfo=UTC)}, 3),
        ({"owner": "somebody"}, 0),
        ({"model": "none"}, 0),
        ({"session_id": "none"}, 0),
    ],
)
def test_filters_select_runs(served: Serving, three: list[str], wanted: dict[str, Any], count: int) -> None:
    found = RemoteMux(served.url).runs.list(project_id="listed", **wanted)
    assert len(found) == count
    for run in found:
        body = served.http.get(f"/v1/runs/{run.run_id}").json()
        assert run == convert(body, RunSummary)
        assert (run.state, run.cwd, run.ended_at) == ("completed", body["cwd"], body["endedAt"])


def test_an_invalid_filter_is_a_problem_that_names_the_parameter(served: Serving) -> None:
    with BlockingRemoteMux(served.url) as mux, pytest.raises(ValidationError, match="state"):
        mux.runs.list(state="finished")  # type: ignore[arg-type]


@pytest.mark.slow
def test_an_ended_run_can_be_deleted(served: Serving, tmp_path: Path) -> None:
    run = demo(served)
    path = f"/v1/runs/{run['runId']}"
    served.http.get(f"{path}/events")
    journal = Path(served.http.get(path).json()["journal"])
    assert journal.exists()
    assert served.http.delete(path).status_code == 204
    assert not journal.exists()
    assert served.http.get(path).json()["code"] == "RUN_NOT_FOUND"


@pytest.mark.slow
def test_runs_that_are_alive_when_the_server_stops_end_in_order(tmp_path: Path) -> None:
    body = {"agent": "replay", "prompt": "demo"}
    with serving(tmp_path) as first:
        run_id = first.http.post("/v1/runs", json=body).json()["runId"]
        with httpx.stream("GET", f"{first.url}/v1/runs/{run_id}/events", timeout=30) as stream:
            assert next(stream.iter_lines()).startswith("id: 0")
    with serving(tmp_path) as second:
        run = second.http.get(f"/v1/runs/{run_id}").json()
        events = [event for _, event in sse(second.http.get(f"/v1/runs/{run_id}/events").text)]
    assert (run["state"], run["exitReason"]) == ("aborted", "aborted")
    assert validate(events[:-1]) == []
    assert len(events) - 1 == run["eventCount"]


@pytest.mark.slow
def test_a_missing_journal_is_a_problem_and_no_broken_stream(tmp_path: Path) -> None:
    with serving(tmp_path) as first:
        run_id = demo(first)["runId"]
        first.http.get(f"/v1/runs/{run_id}/events")
        journal = Path(first.http.get(f"/v1/runs/{run_id}").json()["journal"])
    journal.unlink()
    with serving(tmp_path) as second:
        answer = second.http.get(f"/v1/runs/{run_id}/events")
        assert (answer.status_code, answer.json()["code"]) == (404, "RUN_NOT_FOUND")
        assert str(journal) in answer.json()["detail"]
        assert second.http.get(f"/v1/runs/{run_id}").json()["state"] == "completed"


def test_an_error_of_ours_in_one_run_ends_no_other(served: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: RunLifecycle) -> None:
        raise RuntimeError("an error of ours")

    with monkeypatch.context() as patched:
        patched.setattr(RunLifecycle, "_run_with_files", broken)
        broken_id = demo(served)["runId"]
        served.http.get(f"/v1/runs/{broken_id}/events")
        run = served.http.get(f"/v1/runs/{broken_id}").json()
    assert (run["state"], run["result"]["exitReason"]) == ("lost", "lost")
    other = served.http.get(f"/v1/runs/{demo(served)['runId']}/events")
    assert sse(other.text)[-1][1]["exitReason"] == "completed"


@pytest.mark.slow
def test_registered_hooks_are_called_for_runs_of_the_service(tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    hook = {"id": "notes", "agent": "*", "hookType": "*", "handler": "builtin", "target": f"log:{log}"}
    (tmp_path / "hooks.json").write_text(json.dumps({"hooks": [hook]}))
    with serving(tmp_path) as served:
        run = demo(served, approvalMode="yolo")
        *_, (_, result) = sse(served.http.get(f"/v1/runs/{run['runId']}/events").text)
    assert result["exitReason"] == "completed"
    called = {json.loads(line)["hookType"] for line in log.read_text().splitlines()}
    assert called >= {"session_start", "pre_tool_use", "post_tool_use"}
