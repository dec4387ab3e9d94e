"""The metrics, read with the parsers of the Prometheus client library."""

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from tests.service.serving import PATIENCE, Serving, serving
from tests.service.test_runs_api import demo
from tests.service.test_websocket import agents, opened

from agent_mux.service.application import make_application
from agent_mux.service.settings import ServiceSettings

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Serving]:
    with serving(tmp_path) as server:
        yield server


def metrics(served: Serving) -> Samples:
    answer = served.http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    families = parse_text(answer.text)
    return {(one.name, frozenset(one.labels.items())): one.value for family in families for one in family.samples}


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples.get((f"agent_mux_{name}", frozenset(labels.items())), 0.0)


def until(served: Serving, name: str, wanted: float, **labels: str) -> Samples:
    """The metrics, when one of them has this value."""
    deadline = time.monotonic() + PATIENCE
    while value(samples := metrics(served), name, **labels) != wanted:
        assert time.monotonic() < deadline, (name, labels, value(samples, name, **labels))
    return samples


@pytest.mark.slow
def test_runs_and_their_events_are_counted(served: Serving) -> None:
    run_id = demo(served)["runId"]
    events = served.http.get(f"/v1/runs/{run_id}/events", headers={"accept": "application/jsonl"}).text.splitlines()[
        :-1
    ]
    samples = until(served, "runs_ended_total", 1, agent="replay", exit_reason="completed")
    counted = {labels: number for (name, labels), number in samples.items() if name == "agent_mux_events_total"}
    assert sum(counted.values()) == len(events)
    assert counted[frozenset({("agent", "replay"), ("type", "session_start")})] == 1
    for histogram in ("run_duration_seconds", "queue_wait_seconds"):
        assert value(samples, f"{histogram}_count", agent="replay") == 1


@pytest.mark.slow
def test_the_counts_of_events_never_fall(served: Serving) -> None:
    run_id = demo(served, env={"AMUX_REPLAY_SPEED": "3"})["runId"]
    last = 0.0
    while served.http.get(f"/v1/runs/{run_id}").json()["state"] in {"spawned", "running"}:
        body = metrics(served)
        now = sum(number for (name, _), number in body.items() if name == "agent_mux_events_total")
        assert now >= last
        last = now
    assert last > 0


@pytest.mark.slow
def test_metrics_show_live_and_queued_runs(tmp_path: Path) -> None:
    with serving(tmp_path, agents("read(); drain()"), max_concurrent_runs=1) as served:
        body = {"agent": "scripted", "prompt": "hello"}
        ids = [served.http.post("/v1/runs", json=body).json()["runId"] for _ in range(3)]
        samples = until(served, "runs", 1, agent="scripted", state="running")
        assert value(samples, "runs", agent="scripted", state="spawned") == 2
        assert value(samples, "queue_length") == 2
        for run_id in reversed(ids):
            served.http.post(f"/v1/runs/{run_id}/abort").raise_for_status()
        samples = until(served, "runs_ended_total", 3, agent="scripted", exit_reason="aborted")
        assert value(samples, "queue_length") == 0
        assert value(samples, "queue_wait_seconds_count", agent="scripted") == 1


@pytest.mark.slow
def test_readers_are_counted_while_they_are_there(tmp_path: Path) -> None:
    with serving(tmp_path, agents("read(); drain()")) as served:
        run_id = served.http.post("/v1/runs", json={"agent": "scripted", "prompt": "hello"}).json()["runId"]
        path = f"{served.url}/v1/runs/{run_id}/events"
        jsonl = {"accept": "application/jsonl"}
        with (
            opened(served, run_id),
            httpx.stream("GET", path, timeout=PATIENCE),
            httpx.stream("GET", path, timeout=PATIENCE, headers=jsonl),
        ):
            for kind in ("sse", "jsonl", "websocket"):
                until(served, "readers", 1, kind=kind)
        for kind in ("sse", "jsonl", "websocket"):
            samples = until(served, "readers", 0, kind=kind)
        assert value(samples, "streams_total", kind="websocket") == 1
        labels = {"route": "/v1/runs/{run_id}/events", "method": "GET"}
        until(served, "http_requests_total", 2, **labels, status="200")
        assert value(metrics(served), "http_request_duration_seconds_count", **labels) == 0
        served.http.post(f"/v1/runs/{run_id}/abort")


def test_labels_of_requests_are_bounded(served: Serving) -> None:
    before = {labels for _, labels in metrics(served)}
    for number in range(20):
        served.http.get(f"/nonsense/{number}")
        served.http.get(f"/v1/runs/{number}")
        served.http.request(f"METHOD{number}", "/health")
    samples = metrics(served)
    new = {labels for name, labels in samples if name == "agent_mux_http_requests_total"} - before
    assert len(new) <= 4
    assert value(samples, "http_requests_total", route="(none)", method="GET", status="404") == 20
    assert value(samples, "http_requests_total", route="/v1/runs/{run_id}", method="GET", status="404") == 20
    assert value(samples, "http_request_duration_seconds_count", route="/v1/runs/{run_id}", method="GET") == 20


def test_openmetrics_is_there_for_who_asks(served: Serving) -> None:
    demo(served)
    answer = served.http.get("/metrics", headers={"accept": "application/openmetrics-text; version=1.0.0"})
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    names = {family.name for family in parse_openmetrics(answer.text)}
    assert {"agent_mux_runs", "agent_mux_events", "agent_mux_build", "process_resident_memory_bytes"} <= names


def test_names_follow_the_conventions(served: Serving) -> None:
    for family in parse_text(served.http.get("/metrics").text):
        if family.name.startswith("agent_mux_"):
            assert family.documentation, family.name
            assert (family.type == "histogram") == family.name.endswith("_seconds"), family.name


@pytest.mark.slow
def test_two_applications_in_one_process_count_for_themselves(tmp_path: Path) -> None:
    make_application(ServiceSettings(config_dir=tmp_path / "other"))
    with serving(tmp_path / "one") as one, serving(tmp_path / "two") as two:
        demo(one)
        until(one, "http_requests_total", 1, route="/v1/runs", method="POST", status="201")
        assert value(metrics(two), "http_requests_total", route="/v1/runs", method="POST", status="201") == 0
