"""The database goes away in the middle of runs, and comes back."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.service.durable.postgres import Cluster, started
from tests.service.durable.processes import ServerProcess, events_of, until

from agent_mux import validate

TALKS_UNTIL = """
read(); emit(session="s")
number = 0
while not os.path.exists({flag!r}):
    emit(text=f"{{number}} "); number += 1; time.sleep(0.01)
emit(over=True); emit(done=True); drain()
"""


@pytest.fixture
def own_cluster() -> Iterator[Cluster]:
    """A server that may be stopped: others use the shared one."""
    with started() as cluster:
        yield cluster


def refused(answer: httpx.Response) -> None:
    assert answer.status_code == 503, answer.text
    problem = answer.json()
    assert (problem["code"], problem["recoverable"]) == ("UNAVAILABLE", True)
    assert int(answer.headers["retry-after"]) >= 1
    assert "trust" not in answer.text


FULL = os.environ.get("AMUX_DURABILITY") == "full"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["fast", "immediate"] if FULL else ["immediate"])
def test_runs_go_on_while_postgresql_is_restarted(own_cluster: Cluster, tmp_path: Path, mode: str) -> None:
    flag = tmp_path / "flag"
    body = TALKS_UNTIL.format(flag=str(flag))
    url = own_cluster.url()
    with ServerProcess(tmp_path / "config", body, database=url, max_concurrent_runs=3) as server:
        runs = [server.create() for _ in range(4)]  # one of them waits
        readers = [server.watch(run) for run in runs]
        until(lambda: all(len(reader.seen) > 20 for reader in readers[:3]))
        assert server.http.get("/ready").status_code == 200
        own_cluster.stop(mode)

        until(lambda: server.http.get("/ready").status_code == 503, 10)  # it is checked at most once a second
        refused(server.http.get("/ready"))
        assert server.http.get("/health").status_code == 200
        refused(server.http.get("/v1/runs"))
        for key in (None, "again"):
            headers = {} if key is None else {"idempotency-key": key}
            refused(server.http.post("/v1/runs", json={"agent": "scripted", "prompt": "hi"}, headers=headers))
        assert [server.run(run)["state"] for run in runs] == ["running"] * 3 + ["spawned"]
        seen = len(readers[0].seen)
        until(lambda: len(readers[0].seen) > seen + 20)  # events flow
        flag.touch()
        for reader in readers:  # to the end, the one that waited included
            reader.thread.join(60)
            assert validate(events_of(reader.seen)) == []
            assert json.loads(list(reader.seen.values())[-1])["exitReason"] == "completed"

        own_cluster.start()
        until(lambda: server.http.get("/ready").status_code == 200, 10)
        for _ in range(20):  # each of the connections that the server had
            assert server.http.get("/v1/runs").status_code == 200
        until(lambda: len(server.runs(state="completed")) == 4, 15)
        assert {run["runId"] for run in server.runs()} == set(runs)
        data = {"agent": "scripted", "prompt": "hi"}
        answer = server.http.post("/v1/runs", json=data, headers={"idempotency-key": "again"})
        assert answer.status_code == 201
        shown = [{**server.run(run), "revision": None} for run in runs]
        server.end(signal.SIGTERM)
    with ServerProcess(tmp_path / "config", body, database=url) as server:
        assert [{**server.run(run), "revision": None} for run in runs] == shown
        assert [server.stream(run) for run in runs] == [reader.seen for reader in readers]


@pytest.mark.slow
def test_a_server_stops_soon_and_loses_nothing_while_the_database_is_unavailable(
    own_cluster: Cluster, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    body = TALKS_UNTIL.format(flag=str(flag))
    url = own_cluster.url()
    with ServerProcess(tmp_path / "config", body, database=url, max_concurrent_runs=1) as server:
        runs = [server.create() for _ in range(2)]
        reader = server.watch(runs[0])
        until(lambda: len(reader.seen) > 5)
        own_cluster.stop("immediate")
        server.end(signal.SIGTERM)  # within its patience
        reader.thread.join(60)
    own_cluster.start()
    flag.touch()
    with ServerProcess(tmp_path / "config", body, database=url) as server:
        assert server.run(runs[0])["state"] == "aborted"
        assert server.stream(runs[0]) == reader.seen
        until(lambda: server.run(runs[1])["state"] == "completed")


@pytest.mark.skipif(not FULL, reason="it takes a while: make durability")
def test_a_database_that_hangs_is_away(own_cluster: Cluster, tmp_path: Path) -> None:
    body = TALKS_UNTIL.format(flag=str(tmp_path))
    with ServerProcess(tmp_path / "config", body, database=own_cluster.url()) as server:
        run = server.create()
        until(lambda: server.run(run)["state"] == "completed")
        own_cluster.freeze(frozen=True)
        try:
            refused(server.http.get("/v1/runs"))
            assert server.run(run)["state"] == "completed"
        finally:
            own_cluster.freeze(frozen=False)
        until(lambda: server.http.get("/v1/runs").status_code == 200, 20)
