"""Many runs: all at once, and one after the other. `AMUX_SOAK=full` takes as many as are promised (`make soak`).

The agent is a recording of claude that waits for a permission in its middle: so that all runs are alive at once when
what they cost is measured. The figures are printed (`pytest -s`).
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
"""Runs after which everything that is kept once is there."""
PRINTERS = 8
PER_RUN = 0.4 * 2**20
"""Bytes of memory that one more run may take."""
GROWTH = 4 * 2**20
"""Bytes that the process may grow by, through all runs in a row: what the allocator does not give back."""
BOUND = 600.0
RECORDING = Path(__file__).parents[2] / "fixtures/claude/2.1.330/perm_allow"
AT_FULL_SPEED = {"AMUX_REPLAY_SPEED": "0"}


def memory() -> int:
    """Bytes of this process that are its own."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the runs have their directories: nobody else has any there."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


def left(place: Path) -> list[Path]:
    return list(place.iterdir())


def show(figures: str) -> None:
    sys.stderr.write(figures + "\n")


def client(tmp_path: Path) -> AgentMux:
    return AgentMux(config_dir=tmp_path / "config", default_agent="replay")


def without_index(tmp_path: Path) -> None:
    """Runs of this client are written into no index."""
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.json").write_text('{"runIndex": false}', "utf-8")


def start(mux: AgentMux, **fields: object) -> RunHandle:
    return mux.run(prompt=str(RECORDING), approval_mode="prompt", env=AT_FULL_SPEED, **fields)


async def told(run: RunHandle) -> list[str]:
    """The types of all its events, having checked what must hold for them."""
    events = [event async for event in run]
    assert validate(events) == []
    return [event.type for event in events]


async def usual(mux: AgentMux) -> list[str]:
    """The events of one run that is alone."""
    run = start(mux, on_approval_request=lambda _: Approve())
    return await told(run)


async def pending(run: RunHandle) -> None:
    async for event in run:
        if event.type == "approval_request":
            return
    raise AssertionError("it asked nothing")


async def test_many_runs_at_once(tmp_path: Path) -> None:
    with anyio.fail_after(BOUND):
        async with client(tmp_path) as mux:
            expected = await usual(mux)
            before = memory()
            began = time.monotonic()
            runs = [start(mux) for _ in range(AT_ONCE)]
            for run in runs:
                await pending(run)
            alive, took = time.monotonic(), memory() - before
            first_end: list[float] = []
            for run in runs:
                run.once("session_end", lambda _: first_end.append(time.monotonic()))
                await run.approve()
            results = [await run for run in runs]
            ended = time.monotonic()
            streams = [await told(run) for run in runs]
    spread = max(first_end) - min(first_end)
    show(
        f"\n{AT_ONCE} at once: {took / AT_ONCE / 2**20:.3f} MiB each, all alive after {alive - began:.1f} s, all done"
        f" {ended - alive:.1f} s after the first was allowed to go on, the last {spread:.1f} s after the first"
    )
    assert [result.exit_reason for result in results] == ["completed"] * AT_ONCE
    assert streams == [expected] * AT_ONCE
    assert [result.ledger.unknown for result in results] == [{}] * AT_ONCE
    assert [pid for run in runs for pid in processes_of(run.run_id)] == []
    assert took / AT_ONCE <= PER_RUN


async def test_nobody_starves(make_client: MakeClient) -> None:
    """Agents that print without end share the loop: all of them are heard, and heard again."""
    heard: Counter[str] = Counter()
    with anyio.fail_after(BOUND):
        async with make_client("hear(); say(session='S')\nwhile True: say(text='x')") as mux:
            runs = [mux.run(prompt="hi", journal=False, grace_period=0.1) for _ in range(PRINTERS)]
            for run in runs:
                async for event in run:
                    if event.type == "text_delta":
                        break
            for run in runs:
                run.on("text_delta", lambda event: heard.update([event.run_id]))
            while min(heard[run.run_id] for run in runs) < 300:  # noqa: ASYNC110  # nobody tells who is the slowest
                await anyio.sleep(0.01)


async def test_many_runs_in_a_row(tmp_path: Path, temporary: Path, anyio_backend_name: str) -> None:
    without_index(tmp_path)  # it is written after a run is over, while its resources are counted
    figures: list[tuple[int, int, int, list[Path], int]] = []
    with anyio.fail_after(BOUND):
        async with client(tmp_path) as mux:
            expected = await usual(mux)
            for number in range(IN_A_ROW):
                run = start(mux, on_approval_request=lambda _: Approve())
                types = await told(run)
                assert types == expected, number
                assert (await run).exit_reason == "completed"
                if number in {WARM - 1, IN_A_ROW - 1}:
                    await anyio.lowlevel.checkpoint()
                    tasks = len(asyncio.all_tasks()) if anyio_backend_name == "asyncio" else 0
                    figures.append((descriptors(), threading.active_count(), tasks, left(temporary), memory()))
    warm, end = figures
    show(f"\n{IN_A_ROW} in a row: {end[0]} descriptors, {end[1]} threads, {end[2]} tasks, "
          f"memory {(end[4] - warm[4]) / 2**20:+.2f} MiB since run {WARM}")  # fmt: skip
    # Fewer may be left than before: threads of other tests end some time.
    assert all(after <= before for after, before in zip(end[:3], warm[:3], strict=True)), figures
    assert end[3] == []
    assert end[4] - warm[4] <= GROWTH


def test_the_events_are_those_of_the_recording() -> None:
    """What the runs are compared with is something: text, a tool and a permission."""

    async def run_one() -> list[bytes]:
        async with AgentMux(default_agent="replay") as mux:
            run = start(mux, on_approval_request=lambda _: Approve(), journal=False)
            return [encode_event(event) async for event in run]

    lines = anyio.run(run_one)
    assert sum(b'"approval_granted"' in line for line in lines) == 1
    assert sum(b'"tool_result"' in line for line in lines) == 1
