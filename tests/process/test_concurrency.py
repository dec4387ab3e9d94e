"""Concurrent runs of one client: limits and start order."""

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import anyio
import pytest
from anyio import lowlevel
from tests.process.local_and_remote import LocalOnly, local_only
from tests.process.scripted import MakeClient, ScriptedCodec, scripted_adapter

from agent_mux import AgentMux, AgentMuxError, RunHandle, ValidationError, encode_event, validate
from agent_mux.journal.file import JournalReader
from agent_mux.run import recorder
from agent_mux.run.derivation import derive_events
from agent_mux.sdk.registry import AdapterRegistry

pytestmark = [pytest.mark.anyio, pytest.mark.local_and_remote]

WAITS = """
import pathlib
read(); emit(session="S"); emit(text=os.environ["NAME"])
while not pathlib.Path("go").exists(): time.sleep(0.01)
emit(done=True); drain()
"""

HOUR = 3600


async def wait_for_text(run: RunHandle) -> None:
    async for event in run:
        if event.type == "text_delta":
            return
    raise AssertionError("no text arrived")


def start_runs(mux: AgentMux, place: Path, *names: str, **fields: object) -> list[RunHandle]:
    return [mux.run(prompt="hi", cwd=place, env={"NAME": name}, **fields) for name in names]


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def journals(place: Path) -> list[Path]:
    return list((place / "config" / "runs").iterdir())


@pytest.mark.slow
async def test_runs_wait_for_a_slot_and_start_in_order(make_client: MakeClient, tmp_path: Path) -> None:
    begun: list[str] = []
    with anyio.fail_after(30):
        async with make_client(WAITS, max_concurrent_runs=2) as mux:
            runs = [mux.run(prompt="hi", cwd=tmp_path, env={"NAME": f"{number}"}) for number in range(6)]
            for run in runs:
                run.on("text_delta", lambda event: begun.append(event.delta))
            async for event in runs[1]:
                if event.type == "text_delta":
                    break
            async for event in runs[0]:
                if event.type == "text_delta":
                    break
            assert [run.state for run in runs] == ["running"] * 2 + ["spawned"] * 4
            (tmp_path / "go").touch()
            results = [await run for run in runs]
    assert {result.exit_reason for result in results} == {"completed"}
    assert [result.text for result in results] == ["0", "1", "2", "3", "4", "5"]
    assert sorted(begun[:2]) == ["0", "1"]
    assert sorted(begun) == ["0", "1", "2", "3", "4", "5"]


@pytest.mark.slow
async def test_queued_run_can_be_aborted(make_client: MakeClient, tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with make_client(WAITS, max_concurrent_runs=1) as mux:
            first = mux.run(prompt="hi", cwd=tmp_path, env={"NAME": "first"})
            async for event in first:
                if event.type == "text_delta":
                    break
            waiting = mux.run(prompt="hi", cwd=tmp_path, env={"NAME": "waiting"})
            last = mux.run(prompt="hi", cwd=tmp_path, env={"NAME": "last"})
            await waiting.abort()
            result = await waiting
            (tmp_path / "go").touch()
            assert (await first).exit_reason == "completed"
            assert (await last).text == "last"
    assert (result.exit_reason, result.exit_code, result.turn_count) == ("aborted", None, 0)


@pytest.mark.slow
async def test_failed_start_frees_its_slot(make_client: MakeClient) -> None:
    with anyio.fail_after(30):
        async with make_client("", argv=("/does/not/exist",), max_concurrent_runs=1) as mux:
            results = [await mux.run(prompt="hi") for _ in range(3)]
    assert [result.exit_reason for result in results] == ["crashed"] * 3


@pytest.mark.parametrize("most", [0, -1, True, 1.5, "2"])
@local_only(LocalOnly.SETTINGS)
def test_run_limit_must_be_a_positive_integer(make_client: MakeClient, most: object) -> None:
    with pytest.raises(ValidationError, match="max_concurrent_runs"):
        make_client("", max_concurrent_runs=most)


@pytest.mark.promise("owners-in-turn")
@local_only(LocalOnly.OWNER)
async def test_owners_alternate_and_queue_positions_show_the_order(make_client: MakeClient, tmp_path: Path) -> None:
    begun: list[str] = []
    with anyio.fail_after(30):
        async with make_client(WAITS, max_concurrent_runs=1) as mux:
            runs = start_runs(mux, tmp_path, "a0", "a1", "a2", owner="ann")
            changed = mux.concurrency.changed
            runs += start_runs(mux, tmp_path, "b0", "b1", owner="bob")
            for run in runs:
                run.once("text_delta", lambda event: begun.append(event.delta))
            await wait_for_text(runs[0])
            assert changed.is_set()
            assert [run.queue_position for run in runs] == [None, 1, 3, 2, 4]
            assert (mux.concurrency.working, mux.concurrency.waiting) == (1, 4)
            changed = mux.concurrency.changed
            await runs[1].abort()
            assert changed.is_set()
            assert [run.queue_position for run in runs] == [None, None, 1, 2, 3]
            (tmp_path / "go").touch()
            for run in runs:
                await run
            assert [run.queue_position for run in runs] == [None] * 5
    assert begun == ["a0", "a2", "b0", "b1"]
    assert (mux.concurrency.working, mux.concurrency.waiting) == (0, 0)


async def test_run_of_an_agent_at_its_limit_is_skipped(tmp_path: Path) -> None:
    adapters = AdapterRegistry()
    one = scripted_adapter(WAITS)
    adapters.register(one)
    adapters.register(replace(one, agent="other", aliases=("another",)))
    with anyio.fail_after(30):
        async with AgentMux(
            adapters=adapters, config_dir=tmp_path / "config", max_concurrent_runs_per_agent={"another": 1}
        ) as mux:
            others = start_runs(mux, tmp_path, "o0", "o1", agent="another")
            free = start_runs(mux, tmp_path, "f0", "f1", agent="scripted")
            for run in (others[0], *free):
                await wait_for_text(run)
            assert (others[1].state, others[1].queue_position) == ("spawned", 1)
            (tmp_path / "go").touch()
            assert [(await run).text for run in (*others, *free)] == ["o0", "o1", "f0", "f1"]


@pytest.mark.promise("full-queue")
async def test_full_queue_refuses_a_run_without_side_effects(make_client: MakeClient, tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with make_client(WAITS, max_concurrent_runs=1, queue_limit=1) as mux:
            runs = start_runs(mux, tmp_path, "0", "1")
            seen: list[RunHandle] = []
            mux.on_run(lambda run: seen.append(run) or (lambda: None))  # type: ignore[func-returns-value]
            with pytest.raises(AgentMuxError, match="1 runs are active and 1 wait") as caught:
                start_runs(mux, tmp_path, "2")
            assert (caught.value.code, caught.value.recoverable, seen) == ("LIMIT_EXCEEDED", True, [])
            (tmp_path / "go").touch()
            assert [(await run).text for run in runs] == ["0", "1"]
            assert (await start_runs(mux, tmp_path, "2")[0]).text == "2"


@contextmanager
def few_descriptors(more: int) -> Iterator[None]:
    """Allow this process to open only this many more descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(entry.name) for entry in Path("/proc/self/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1 + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
@local_only(LocalOnly.CONNECTIONS)
async def test_queued_runs_need_no_descriptors_or_files_even_when_all_end_at_once(
    make_client: MakeClient, tmp_path: Path
) -> None:
    with anyio.fail_after(60):
        async with make_client(WAITS, max_concurrent_runs=1) as mux:
            await wait_for_text(start_runs(mux, tmp_path, "first")[0])
            before = descriptors()
            runs = start_runs(mux, tmp_path, *map(str, range(100)))
            for _ in range(5):
                await lowlevel.checkpoint()
            assert descriptors() == before
            assert len(journals(tmp_path)) == 1
            with few_descriptors(20):
                for run in runs:
                    run.kill()
                results = [await run for run in runs]
    assert {result.exit_reason for result in results} == {"aborted"}
    for result in results:
        assert result.journal is not None
        assert validate(derive_events(Path(result.journal), ScriptedCodec)) == []


@local_only(LocalOnly.NOTES)
async def test_notes_about_a_queued_run_are_emitted_when_it_starts(make_client: MakeClient, tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with make_client(WAITS, max_concurrent_runs=1) as mux:
            await wait_for_text(start_runs(mux, tmp_path, "first")[0])
            mux.on_run(lambda _: 1 // 0)  # type: ignore[arg-type, return-value]
            [run] = start_runs(mux, tmp_path, "second")
            assert len(journals(tmp_path)) == 1
            (tmp_path / "go").touch()
            events = [event async for event in run]
            result = await run
    assert validate(events) == []
    assert [event.message for event in events if event.type == "debug"] == [
        "an observer raised ZeroDivisionError('integer division or modulo by zero'); the run continues"
    ]
    derived = derive_events(Path(result.journal or ""), ScriptedCodec)
    assert [encode_event(event) for event in derived] == [encode_event(event) for event in events]


async def test_run_time_starts_when_the_run_gets_its_slot(
    make_client: MakeClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = 0
    clock = SimpleNamespace(
        monotonic_ns=lambda: time.monotonic_ns() + passed * 10**9, time_ns=lambda: time.time_ns() + passed * 10**9
    )
    monkeypatch.setattr(recorder, "time", clock)
    with anyio.fail_after(30):
        async with make_client(WAITS, max_concurrent_runs=1) as mux:
            first = start_runs(mux, tmp_path, "first")[0]
            await wait_for_text(first)
            [run] = start_runs(mux, tmp_path, "second", timeout=HOUR / 2)
            await lowlevel.checkpoint()
            passed = HOUR
            admitted = clock.time_ns() // 10**6
            (tmp_path / "go").touch()
            result = await run
            events = [event async for event in run]
            whole = await first
    assert (result.exit_reason, result.duration_ms < HOUR * 1000 / 2) == ("completed", True)
    assert whole.duration_ms >= HOUR * 1000
    header = JournalReader(Path(result.journal or "")).header
    assert not isinstance(run, RunHandle) or header == run.header
    assert admitted <= header.started_at <= events[0].timestamp
    times = [event.timestamp for event in events]
    assert times == sorted(times)


@pytest.mark.slow
@pytest.mark.promise("waiting-run")
async def test_run_that_never_started_has_no_duration(
    make_client: MakeClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passed = 0
    clock = SimpleNamespace(monotonic_ns=lambda: time.monotonic_ns() + passed * 10**9, time_ns=time.time_ns)
    monkeypatch.setattr(recorder, "time", clock)
    with anyio.fail_after(30):
        async with make_client(WAITS, max_concurrent_runs=1) as mux:
            await wait_for_text(start_runs(mux, tmp_path, "first")[0])
            [run] = start_runs(mux, tmp_path, "second")
            await lowlevel.checkpoint()
            passed = HOUR
            await run.abort()
            result = await run
    assert (result.exit_reason, result.duration_ms < HOUR * 1000) == ("aborted", True)
