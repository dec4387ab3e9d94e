"""Retention of ended runs on both databases, with an injected clock."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.service.commanding import serve
from tests.service.durable.processes import until
from tests.service.durable.rows import ended, open_store, row
from tests.service.serving import serving

from agent_mux.errors import ValidationError
from agent_mux.service.retention import DAY, Retention
from agent_mux.service.settings import ServiceSettings
from agent_mux.service.store.runs import RunFilter, RunRow, RunStore

pytestmark = pytest.mark.anyio
RUNS = 120  # several batches


async def sweep(store: RunStore, rows: Sequence[RunRow], **limits: Any) -> tuple[int, list[int]]:
    """Gives how many went, and the numbers of those that are left, of the runs that are over."""
    for one in rows:
        assert await store.add(one)
    batches: list[int] = []

    async def forget(run_ids: Sequence[str]) -> None:
        batches.append(len(run_ids))
        await store.remove(run_ids)

    removed = await Retention(store=store, delete_runs=forget, **limits).sweep()
    assert removed == sum(batches)
    assert all(size <= 50 for size in batches)
    left = await store.page(RunFilter(), limit=1_000)
    return removed, sorted(one.created_at - 1_000 for one in left)


@pytest.mark.slow
async def test_the_number(database_url: str) -> None:
    async with open_store(database_url) as store:
        rows = [ended(number) for number in range(RUNS)]
        assert await sweep(store, rows, keep_runs=7) == (RUNS - 7, list(range(RUNS - 7, RUNS)))
        assert await sweep(store, [], keep_runs=7) == (0, list(range(RUNS - 7, RUNS)))
        assert await sweep(store, [], keep_runs=0) == (7, [])


@pytest.mark.slow
async def test_the_age_counts_from_the_end_of_a_run(database_url: str) -> None:
    async with open_store(database_url) as store:
        rows = [ended(number) for number in range(RUNS)]
        left = list(range(80, RUNS))
        assert await sweep(store, rows, keep_ms=2 * DAY, now=lambda: 2_080 + 2 * DAY) == (80, left)


@pytest.mark.slow
async def test_the_size(database_url: str) -> None:
    async with open_store(database_url) as store:
        rows = [ended(number, size=None if number % 2 else 1_000) for number in range(20)]
        assert await sweep(store, rows, keep_bytes=3_000) == (13, list(range(13, 20)))


async def test_whichever_limit_is_met_first(database_url: str) -> None:
    async with open_store(database_url) as store:
        rows = [ended(number) for number in range(10)]
        limits = {"keep_runs": 8, "keep_bytes": 500, "keep_ms": 10.0, "now": lambda: 2_013}
        assert await sweep(store, rows, **limits) == (5, [5, 6, 7, 8, 9])


async def test_runs_that_are_alive_stay_and_do_not_count(database_url: str) -> None:
    async with open_store(database_url) as store:
        rows = [row(0), row(1, state="running"), row(2, state="paused"), ended(3), ended(4)]
        limits = {"keep_runs": 1, "keep_ms": 0.0, "now": lambda: 2_004}
        assert await sweep(store, rows, **limits) == (1, [0, 1, 2, 4])


async def test_what_could_not_be_removed_is_tried_again(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path / 'service.db'}") as store:
        for number in range(3):
            await store.add(ended(number))
        asked: list[Sequence[str]] = []

        async def refuse(run_ids: Sequence[str]) -> None:
            asked.append(run_ids)
            raise OSError("refused")

        retention = Retention(store=store, delete_runs=refuse, keep_runs=1)
        for _ in range(2):
            with pytest.raises(OSError, match="refused"):
                await retention.sweep()
        assert len(asked[0]) == 2
        assert asked[0] == asked[1]


@pytest.mark.parametrize(
    ("chosen", "wanted"),
    [({}, False), ({"keep_days": 0.5}, True), ({"keep_runs": 0}, True), ({"keep_bytes": 1}, True)],
)
async def test_by_default_nothing_is_removed(tmp_path: Path, chosen: dict[str, Any], *, wanted: bool) -> None:
    async with open_store(f"sqlite:///{tmp_path / 'service.db'}") as store:
        retention = Retention.from_settings(ServiceSettings(config_dir=tmp_path, **chosen), store, store.remove)
        assert retention.is_enabled is wanted


@pytest.mark.parametrize(
    "chosen", [{"keep_days": -1}, {"keep_runs": -1}, {"keep_bytes": True}, {"keep_days": float("nan")}]
)
async def test_invalid_limits_are_refused(tmp_path: Path, chosen: dict[str, Any]) -> None:
    async with open_store(f"sqlite:///{tmp_path / 'service.db'}") as store:
        with pytest.raises(ValidationError):
            Retention.from_settings(ServiceSettings(config_dir=tmp_path, **chosen), store, store.remove)


@pytest.mark.slow
def test_a_server_removes_rows_and_journals_and_nothing_of_others(tmp_path: Path) -> None:
    body = {"agent": "replay", "prompt": "demo", "env": {"AMUX_REPLAY_SPEED": "0"}}
    with serving(tmp_path) as server:
        runs = [server.http.post("/v1/runs", json=body).json()["runId"] for _ in range(3)]
        for run in runs:
            server.http.get(f"/v1/runs/{run}/events")
    foreign = tmp_path / "runs" / "01ARZ3NDEKTSV4RRFFQ69G5FAV.journal"
    foreign.write_bytes(b"of `amux run`")
    with serving(tmp_path, keep_runs=1) as server:
        until(lambda: len(server.http.get("/v1/runs").json()["runs"]) == 1)
        left = server.http.get("/v1/runs").json()["runs"][0]["runId"]
        until(lambda: {path.stem for path in (tmp_path / "runs").iterdir()} == {left, foreign.stem})


@pytest.mark.slow
def test_the_command_has_a_flag_for_each_limit(tmp_path: Path) -> None:
    body = {"agent": "replay", "prompt": "demo", "env": {"AMUX_REPLAY_SPEED": "0"}}
    with serve(tmp_path) as served, httpx.Client(base_url=served.url, timeout=60) as http:
        runs = [http.post("/v1/runs", json=body).json()["runId"] for _ in range(3)]
        until(lambda: all(http.get(f"/v1/runs/{run}").json()["state"] == "completed" for run in runs))
    limits = ("--keep-days", "1.5", "--keep-runs", "2", "--keep-bytes", "1000000000")
    with serve(tmp_path, *limits) as served, httpx.Client(base_url=served.url, timeout=60) as http:
        until(lambda: len(http.get("/v1/runs").json()["runs"]) == 2)
    with serve(tmp_path, "--keep-bytes", "0") as served, httpx.Client(base_url=served.url, timeout=60) as http:
        until(lambda: http.get("/v1/runs").json()["runs"] == [])
    assert list((tmp_path / "runs").glob("*.journal")) == []
