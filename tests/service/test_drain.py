"""The first signal drains a server, the second aborts its runs: real processes, from outside."""

import json
import signal
from pathlib import Path

import httpx
import pytest
from tests.service.commanding import PATIENCE, serve
from tests.service.durable.processes import ServerProcess, events_of, until

from agent_mux import validate

UNTIL_FLAG = """
read(); emit(session="s"); emit(ask="rm")
emit(text=json.dumps(read()))
while not os.path.exists({flag!r}): time.sleep(0.01)
emit(over=True); emit(done=True); drain()
"""
FOR_EVER = 'read(); emit(session="s"); emit(text="hello"); time.sleep(1000)'
BODY = {"agent": "scripted", "prompt": "hi"}


def refusal(server: ServerProcess) -> httpx.Response:
    """Return the answer to a request for a run, once the server has received its signal."""
    found: httpx.Response = until(
        lambda: (answer := server.http.post("/v1/runs", json=BODY)).is_server_error and [answer]
    )[0]
    return found


@pytest.mark.slow
def test_a_draining_server_refuses_new_runs_and_serves_the_active_ones(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    body = UNTIL_FLAG.format(flag=str(flag))
    with ServerProcess(tmp_path / "config", body, drain=600, max_concurrent_runs=1) as server:
        keyed = server.http.post("/v1/runs", json=BODY, headers={"idempotency-key": "first"}).json()["runId"]
        waiting = server.create()
        early = server.watch(keyed)
        until(lambda: server.run(keyed).get("pending"))
        server.process.send_signal(signal.SIGTERM)

        answer = refusal(server)
        assert answer.json()["code"] == "UNAVAILABLE"
        assert "draining" in answer.json()["detail"]
        assert 1 < int(answer.headers["retry-after"]) <= 600
        ready = server.http.get("/ready")
        assert (ready.status_code, "retry-after" in ready.headers) == (503, True)
        assert server.http.get("/health").status_code == 200
        again = server.http.post("/v1/runs", json=BODY, headers={"idempotency-key": "first"})
        assert (again.status_code, again.json()["runId"]) == (200, keyed), "a repeated request starts nothing"
        late = server.watch(keyed)
        assert server.http.post(f"/v1/runs/{keyed}/approve", json={}).status_code == 200
        flag.touch()
        for reader in (early, late):
            reader.thread.join(PATIENCE)
            assert validate(events_of(reader.seen)) == []
            assert json.loads(list(reader.seen.values())[-1])["exitReason"] == "completed"
        assert server.process.wait(PATIENCE) == 0
    with ServerProcess(tmp_path / "config", body, max_concurrent_runs=1) as server:
        assert server.run(keyed)["state"] == "completed"
        until(lambda: server.run(waiting).get("pending"))  # it was kept, and starts now


@pytest.mark.slow
def test_runs_that_outlast_the_drain_are_aborted(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "config", FOR_EVER, drain=0.5) as server:
        reader = server.watch(server.create())
        until(lambda: len(reader.seen) > 1)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE) == 0
        reader.thread.join(PATIENCE)
        assert json.loads(list(reader.seen.values())[-1])["exitReason"] == "aborted"


@pytest.mark.slow
def test_the_second_signal_aborts_at_once(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "config", FOR_EVER, drain=3600) as server:
        reader = server.watch(server.create())
        until(lambda: len(reader.seen) > 1)
        server.process.send_signal(signal.SIGINT)
        assert refusal(server).status_code == 503
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE) == 0
        reader.thread.join(PATIENCE)
        assert json.loads(list(reader.seen.values())[-1])["exitReason"] == "aborted"


@pytest.mark.slow
def test_a_drained_server_that_is_killed_recovers_its_runs(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "config", FOR_EVER, drain=3600) as server:
        run = server.create()
        until(lambda: server.run(run)["state"] == "running")
        server.process.send_signal(signal.SIGTERM)
        assert refusal(server).status_code == 503
        server.end(signal.SIGKILL)
    with ServerProcess(tmp_path / "config", FOR_EVER) as server:
        assert server.run(run)["state"] == "lost"


@pytest.mark.slow
def test_amux_serve_lets_a_run_end_by_default(tmp_path: Path) -> None:
    body = {"agent": "replay", "prompt": "demo", "env": {"AMUX_REPLAY_SPEED": "10"}}
    with serve(tmp_path) as served:
        run_id = httpx.post(f"{served.url}/v1/runs", json=body, timeout=PATIENCE).json()["runId"]
        path = f"{served.url}/v1/runs/{run_id}/events?types=session_start"
        with httpx.stream("GET", path, headers={"accept": "application/jsonl"}, timeout=PATIENCE) as stream:
            lines = stream.iter_lines()
            assert json.loads(next(lines))["type"] == "session_start"
            code, log = served.stop(signal.SIGTERM)
            assert json.loads(list(lines)[-1])["exitReason"] == "completed"
    assert code == 0
    assert "draining: waiting up to 20 s for 1 run to end; another signal aborts" in log
