"""Recovery from each state in which a killed server may leave a run."""

import shutil
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec import UNSET, structs
from tests.process.scripted import ScriptedCodec
from tests.service.durable.opened import FOR_EVER, HI, events_of, finished, opened

from agent_mux import validate
from agent_mux.errors import AgentMuxError
from agent_mux.journal.file import JournalReader
from agent_mux.process.marker import marker_variable, processes_of
from agent_mux.run.derivation import JournalEvents
from agent_mux.run.environment import temp_dir_of
from agent_mux.service.runs import recovery as module
from agent_mux.service.service import Service
from agent_mux.service.store.runs import RowChange, RunFilter
from agent_mux.service.views import RunView

pytestmark = pytest.mark.anyio
LONG = """
read(); emit(session="s")
for number in range(60):
    emit(text=f"{number} "); emit(ran=f"tool {number}")
    time.sleep(0.003)  # so that there are many records
emit(over=True); emit(done=True); drain()
"""
ALIVE = {
    "state": "running",
    "exit_reason": None,
    "ended_at": None,
    "result": None,
    "event_count": None,
    "journal": None,
}


async def shown(service: Service, run_id: str) -> RunView:
    """A run, but for what is different each time that somebody looks."""
    return structs.replace(await service.runs.get(run_id), revision=UNSET)


class Left:
    """A run as a killed server leaves it: its row has what was written last, its journal has what was emitted."""

    def __init__(self, directory: Path, run_id: str, events: list[Any], view: RunView) -> None:
        self.directory, self.run_id, self.events, self.view = directory, run_id, events, view
        self.journal = directory / "runs" / f"{run_id}.journal"

    async def found(self, body: str = LONG) -> tuple[RunView, list[Any]]:
        """By the next server, and by the one after that."""
        seen = []
        for _ in range(2):
            async with opened(self.directory, body) as service:
                seen.append((await shown(service, self.run_id), await events_of(service, self.run_id)))
                assert [one.run_id for one in await service.runs.page(RunFilter(), limit=9)] == [self.run_id]
        assert seen[0] == seen[1]
        return seen[0]


@pytest.fixture(autouse=True)
async def _patience() -> Any:
    with anyio.fail_after(60):
        yield


async def leave(directory: Path, **values: Any) -> Left:
    """A finished run whose row was not written to the end."""
    async with opened(directory, LONG) as service:
        view, _ = await service.starter.create(HI)
        await finished(service, view.run_id)
        left = Left(directory, view.run_id, await events_of(service, view.run_id), await shown(service, view.run_id))
        await service.runs._store.write({view.run_id: RowChange({**ALIVE, **values})})
    return left


@pytest.mark.slow
async def test_a_run_with_an_unwritten_end_is_recovered_with_its_outcome(tmp_path: Path) -> None:
    left = await leave(tmp_path)
    view, events = await left.found()
    assert view == left.view
    assert events == left.events


def emitted_by(journal: Path) -> list[Any]:
    """What somebody can have seen who watched while this much was written."""
    written, emitted = JournalEvents(journal, ScriptedCodec), []
    with suppress(AgentMuxError):
        while (batch := written.next_batch()) is not None:
            emitted += batch
    return emitted


@pytest.mark.slow
@pytest.mark.parametrize("kept", [0.1, 0.5, 0.93])
async def test_an_interrupted_run_is_lost_and_keeps_its_events(tmp_path: Path, kept: float) -> None:
    left = await leave(tmp_path)
    full = left.journal.read_bytes()
    begin = JournalReader(left.journal).position  # behind the header
    left.journal.write_bytes(full[: begin + int((len(full) - begin) * kept)])  # in the middle of a record
    emitted = emitted_by(left.journal)
    view, events = await left.found()
    assert (view.state, view.exit_reason, view.event_count) == ("lost", "lost", len(events))
    assert emitted == left.events[: len(emitted)] == events[: len(emitted)]
    assert validate(events) == []
    assert len(events) - len(emitted) < 20  # what closes the stream
    assert events[-1].type == "session_end"


def _overwrite(journal: Path) -> None:
    full = journal.read_bytes()
    middle = full.index(b"\nO ", len(full) // 2)
    journal.write_bytes(full[: middle + 1] + b"\0" * 80 + full[middle + 81 :])


@pytest.mark.slow
async def test_a_journal_damaged_in_the_middle_is_read_up_to_the_damage(tmp_path: Path) -> None:
    left = await leave(tmp_path)
    _overwrite(left.journal)
    emitted = emitted_by(left.journal)
    view, events = await left.found()
    assert view.state == "lost"
    assert b"is damaged at byte" in bytes(view.result)
    assert validate(events) == []
    assert 20 < len(emitted) < len(left.events)
    assert emitted == left.events[: len(emitted)] == events[: len(emitted)]


def _header_gone(journal: Path) -> None:
    journal.write_bytes(b"\0" * 1000)


def _header_torn(journal: Path) -> None:
    journal.write_bytes(journal.read_bytes()[:20])


def _of_another(journal: Path) -> None:
    run_id = journal.stem.encode()
    journal.write_bytes(journal.read_bytes().replace(run_id, run_id[::-1]))


def _directory_gone(journal: Path) -> None:
    shutil.rmtree(journal.parent)


def _not_readable(journal: Path) -> None:
    journal.unlink()
    journal.mkdir()


@pytest.mark.slow
@pytest.mark.parametrize("harm", [_header_gone, _header_torn, _of_another, _directory_gone, _not_readable])
async def test_a_run_without_its_journal_is_lost_with_an_error(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    left = await leave(tmp_path)
    harm(left.journal)
    view, events = await left.found()
    assert (view.state, view.exit_reason, view.event_count, view.error_code) == ("lost", "lost", 0, "RUN_LOST")
    assert events == []
    assert b"the server was killed, and its journal" in bytes(view.result)


@pytest.mark.slow
async def test_a_run_that_never_began_begins_once(tmp_path: Path) -> None:
    left = await leave(tmp_path, state="spawned", started_at=None)
    left.journal.write_bytes(b"")  # killed between making the file and writing into it
    async with opened(tmp_path, LONG) as service:
        await finished(service, left.run_id)
        view, events = await shown(service, left.run_id), await events_of(service, left.run_id)
    assert view.state == "completed"
    assert await left.found() == (view, events)


@pytest.mark.slow
async def test_a_run_that_waited_with_secrets_cannot_begin_again(tmp_path: Path) -> None:
    left = await leave(tmp_path, state="spawned", is_complete=False)
    left.journal.unlink()
    view, _ = await left.found()
    assert view.state == "lost"
    assert b"secrets of the request are not stored" in bytes(view.result)


@pytest.mark.slow
async def test_a_queued_run_that_cannot_start_again_has_an_error(tmp_path: Path) -> None:
    left = await leave(tmp_path, state="spawned", request='{"agent":"gone","prompt":"hi"}')
    left.journal.unlink()
    view, _ = await left.found()
    assert view.state == "lost"
    assert b"it cannot be started again" in bytes(view.result)
    assert b"gone" in bytes(view.result)


@pytest.mark.slow
async def test_nothing_of_a_run_is_left_when_the_reaper_was_killed_too(tmp_path: Path) -> None:
    left = await leave(tmp_path)
    temp_dir_of(left.run_id).mkdir()
    (temp_dir_of(left.run_id) / "secret").write_text("s")
    child = subprocess.Popen(  # noqa: ASYNC220  # it takes no time
        ["sleep", "1000"], env={marker_variable(left.run_id): "1", "PATH": "/usr/bin:/bin"}
    )
    try:
        async with opened(tmp_path, LONG):  # before anything is asked
            assert processes_of(left.run_id) == []
            assert not temp_dir_of(left.run_id).exists()
    finally:
        child.kill()
        child.wait(5)


class SlowReading:
    """Reads journals once released."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.go_on = threading.Event()
        real = module.recovered_values

        def slow(*arguments: Any) -> Any:
            from anyio import from_thread

            while not self.go_on.wait(0.01):
                from_thread.check_cancelled()
            return real(*arguments)

        monkeypatch.setattr(module, "recovered_values", slow)


async def told(ask: Callable[[], Any]) -> str:
    with pytest.raises(AgentMuxError) as caught:
        await ask()
    return caught.value.code


@pytest.mark.slow
async def test_huge_journals_delay_no_start_and_show_no_outdated_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = await leave(tmp_path)
    slow = SlowReading(monkeypatch)
    monkeypatch.setattr(module, "RECOVERY_TIMEOUT", 0.05)
    async with opened(tmp_path, LONG) as service:
        other, _ = await service.starter.create(HI)
        await finished(service, other.run_id)
        assert await told(lambda: service.runs.get(left.run_id)) == "UNAVAILABLE"
        assert await told(lambda: service.runs.delete(left.run_id)) == "UNAVAILABLE"
        assert await told(lambda: events_of(service, left.run_id)) == "UNAVAILABLE"
        assert await told(lambda: service.runs.page(RunFilter(), limit=9)) == "UNAVAILABLE"
        assert [one.run_id for one in await service.runs.page(RunFilter(), limit=1)] == [other.run_id]
        monkeypatch.setattr(module, "RECOVERY_TIMEOUT", 30.0)
        slow.go_on.set()
        assert await shown(service, left.run_id) == left.view


@pytest.mark.slow
async def test_a_server_may_stop_while_it_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = await leave(tmp_path)
    with monkeypatch.context() as patched:
        SlowReading(patched)
        with anyio.fail_after(60):
            async with opened(tmp_path, LONG):
                pass
    view, events = await left.found()
    assert (view, events) == (left.view, left.events)


@pytest.mark.slow
async def test_a_codec_that_raises_does_not_keep_the_server_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    left = await leave(tmp_path)
    monkeypatch.setattr(module, "DerivedRun", lambda *_: 1 // 0)
    async with opened(tmp_path, LONG) as service:
        view = await shown(service, left.run_id)
    assert (view.state, view.error_code) == ("lost", "INTERNAL")
    assert "ZeroDivisionError" in caplog.text


async def waiting(service: Service) -> tuple[str, list[str]]:
    first, _ = await service.starter.create(HI)
    others = [await service.starter.create(HI, owner=owner) for owner in ("a", "b", "a")]
    return first.run_id, [view.run_id for view, _ in others]


@pytest.mark.slow
async def test_runs_that_wait_when_the_server_stops_begin_with_the_next_one_in_order(tmp_path: Path) -> None:
    async with opened(tmp_path, FOR_EVER, max_concurrent_runs=1) as service:
        first, others = await waiting(service)
        messages: list[Any] = []

        async def watch() -> None:
            messages.extend(await events_of(service, others[0]))
            messages.append(await service.streams.result(others[0]))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            await anyio.lowlevel.checkpoint()
            await service.starter.close()
        assert messages == [None]  # its reader comes again, to the next server
    assert sorted(path.stem for path in (tmp_path / "runs").glob("*.journal")) == [first]
    began: list[str] = []
    async with opened(tmp_path, max_concurrent_runs=1) as service:
        assert (await shown(service, first)).state == "aborted"
        places = [(await shown(service, run_id)).queue_position for run_id in others]
        for run_id in others:
            await finished(service, run_id)
        views = [await shown(service, run_id) for run_id in others]
        began = [view.run_id for view in sorted(views, key=lambda view: view.started_at)]
        assert {view.state for view in views} == {"completed"}
        assert [view.owner for view in views] == ["a", "b", "a"]
    assert places[1:] == [1, 2]
    assert began == others


async def test_a_run_that_waits_with_secrets_is_aborted_when_the_server_stops(tmp_path: Path) -> None:
    async with opened(tmp_path, FOR_EVER, max_concurrent_runs=1) as service:
        await service.starter.create(HI)
        view, _ = await service.starter.create({**HI, "env": {"TOKEN": "a secret of its own"}})
    async with opened(tmp_path) as service:
        assert (await shown(service, view.run_id)).state == "aborted"
        assert validate(await events_of(service, view.run_id)) == []
