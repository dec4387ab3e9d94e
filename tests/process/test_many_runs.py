"""Many runs: all at once, and one after the other. `AMUX_SOAK=full` runs the documented maximum (`make soak`).

The agent is a replayed claude recording that waits for an approval in its middle, so that all runs are alive at once
when their cost is measured. The figures are printed (`pytest -s`).
"""

import asyncio
import gc
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import anyio
import pytest
from tests.process.scripted import MakeClient

from agent_mux import AgentMux, Approve, RunHandle, encode_event, validate
from agent_mux.process.marker import processes_of

pytestmark = pytest.mark.anyio

IS_FULL = os.environ.get("AMUX_SOAK") == "full"
AT_ONCE = 200 if IS_FULL else 20
IN_A_ROW = 1000 if IS_FULL else 30
WARM = 100 if IS_FULL else 10
"""The number of runs after which everything that is allocated once is allocated."""
PRINTERS = 8
PER_RUN = 0.4 * 2**20
"""The maximum memory of one more run, in bytes."""
GROWTH = 4 * 2**20
"""The maximum growth of the process during all runs in a row, in bytes: memory that the allocator retains."""
BOUND = 600.0
RECORDING = Path(__file__).parents[2] / "fixtures/claude/2.1.330/perm_allow"
AT_FULL_SPEED = {"AMUX_REPLAY_SPEED": "0"}


def memory() -> int:
    """Return the resident memory of this process in bytes."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set a temporary directory that only these runs use."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def entries_in(place: Path) -> list[Path]:
    return list(place.iterdir())


def show(figures: str) -> None:
    sys.stderr.write(figures + "\n")


def client(tmp_path: Path) -> AgentMux:
    return AgentMux(config_dir=tmp_path / "config", default_agent="replay")


def without_index(tmp_path: Path) -> None:
    """Disable the run index of this client."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.json").write_text('{"runIndex": false}', "utf-8")


def start(mux: AgentMux, **fields: object) -> RunHandle:
    return mux.run(prompt=str(RECORDING), approval_mode="prompt", env=AT_FULL_SPEED, **fields)


async def event_types(run: RunHandle) -> list[str]:
    """Return the types of all events, after checking that the events conform."""
    events = [event async for event in run]
    assert validate(events) == []
    return [event.type for event in events]


async def expected_types(mux: AgentMux) -> list[str]:
    """Return the event types of a single run."""
    run = start(mux, on_approval_request=lambda _: Approve())
    return await event_types(run)


async def wait_for_approval_request(run: RunHandle) -> None:
    async for event in run:
        if event.type == "approval_request":
            return
    raise AssertionError("no approval was requested")


@pytest.mark.slow
async def test_concurrent_runs_complete_within_the_memory_limit(tmp_path: Path) -> None:
    with anyio.fail_after(BOUND):
        async with client(tmp_path) as mux:
            expected = await expected_types(mux)
            before = memory()
            began = time.monotonic()
            runs = [start(mux) for _ in range(AT_ONCE)]
            for run in runs:
                run.interaction.keep_open()  # the last ones are read long after their requests
            for run in runs:
                await wait_for_approval_request(run)
            alive, took = time.monotonic(), memory() - before
            first_end: list[float] = []
            for run in runs:
                run.once("session_end", lambda _: first_end.append(time.monotonic()))
                await run.approve()
            results = [await run for run in runs]
            ended = time.monotonic()
            streams = [await event_types(run) for run in runs]
    spread = max(first_end) - min(first_end)
    show(
        f"\n{AT_ONCE} at once: {took / AT_ONCE / 2**20:.3f} MiB each, all alive after {alive - began:.1f} s, all done"
        f" {ended - alive:.1f} s after the first approval, the last {spread:.1f} s after the first"
    )
    assert [result.exit_reason for result in results] == ["completed"] * AT_ONCE
    assert streams == [expected] * AT_ONCE
    assert [result.ledger.unknown for result in results] == [{}] * AT_ONCE
    assert [pid for run in runs for pid in processes_of(run.run_id)] == []
    assert took / AT_ONCE <= PER_RUN


@pytest.mark.slow
async def test_no_run_starves(make_client: MakeClient) -> None:
    """Agents that print endlessly share the event loop: each one makes progress."""
    received: Counter[str] = Counter()
    with anyio.fail_after(BOUND):
        async with make_client("read(); emit(session='S')\nwhile True: emit(text='x')") as mux:
            runs = [mux.run(prompt="hi", journal=False, grace_period=0.1) for _ in range(PRINTERS)]
            for run in runs:
                async for event in run:
                    if event.type == "text_delta":
                        break
            for run in runs:
                run.on("text_delta", lambda event: received.update([event.run_id]))
            while min(received[run.run_id] for run in runs) < 300:  # noqa: ASYNC110  # no event reports the slowest run
                await anyio.sleep(0.01)


@pytest.mark.slow
async def test_sequential_runs_leak_no_resources(tmp_path: Path, temporary: Path, anyio_backend_name: str) -> None:
    without_index(tmp_path)  # the index is written after the end of a run, while resources are counted
    figures: list[tuple[int, int, int, list[Path], int]] = []
    with anyio.fail_after(BOUND):
        async with client(tmp_path) as mux:
            expected = await expected_types(mux)
            for number in range(IN_A_ROW):
                run = start(mux, on_approval_request=lambda _: Approve())
                types = await event_types(run)
                assert types == expected, number
                assert (await run).exit_reason == "completed"
                if number in {WARM - 1, IN_A_ROW - 1}:
                    await anyio.lowlevel.checkpoint()
                    tasks = len(asyncio.all_tasks()) if anyio_backend_name == "asyncio" else 0
                    figures.append((descriptors(), threading.active_count(), tasks, entries_in(temporary), memory()))
    warm, end = figures
    show(f"\n{IN_A_ROW} in a row: {end[0]} descriptors, {end[1]} threads, {end[2]} tasks, "
          f"memory {(end[4] - warm[4]) / 2**20:+.2f} MiB since run {WARM}")  # fmt: skip
    # The numbers may decrease: threads of other tests end at any time.
    assert all(after <= before for after, before in zip(end[:3], warm[:3], strict=True)), figures
    assert end[3] == []
    assert end[4] - warm[4] <= GROWTH


def test_recording_contains_an_approval_and_a_tool_result() -> None:
    """Check that the runs are compared with meaningful events: an approval and a tool result."""

    async def run_one() -> list[bytes]:
        async with AgentMux(default_agent="replay") as mux:
            run = start(mux, on_approval_request=lambda _: Approve(), journal=False)
            return [encode_event(event) async for event in run]

    lines = anyio.run(run_one)
    assert sum(b'"approval_granted"' in line for line in lines) == 1
    assert sum(b'"tool_result"' in line for line in lines) == 1
