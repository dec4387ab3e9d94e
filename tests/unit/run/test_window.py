"""Readers of a run: each gets every event once and in order, however late or slow it is."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from tests.process.scripted import ScriptedCodec
from tests.unit.run.scripted_run import DONE, RUN_ID, feed, header, line, normalizer, printed

from agent_mux.events import AgentEvent, DebugEvent, ShellStdoutDeltaEvent, encode_event
from agent_mux.journal.file import JournalWriter
from agent_mux.journal.records import Record
from agent_mux.run.derivation import JournalEvents
from agent_mux.run.readers import BATCH_BYTES, EventWindow

pytestmark = pytest.mark.anyio
SIZE = 5


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def loss(count: int) -> AgentEvent:
    return DebugEvent(RUN_ID, "scripted", 1, "warn", f"lost {count}")


def new_window() -> EventWindow:
    return EventWindow(SIZE, loss)


def events_of(count: int) -> list[AgentEvent]:
    return feed(normalizer(), [*printed(*(line(text=f"{number} ") for number in range(count))), DONE])


def no_journal() -> None:
    return None


async def read_all(
    window: EventWindow, *, start: int = 0, slow: bool = False, journal: Callable[[], JournalEvents | None] = no_journal
) -> list[AgentEvent]:
    found = []
    async for event in window.read(journal, start):
        found.append(event)
        if slow:
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
    return found


def wires(events: list[AgentEvent]) -> list[bytes]:
    return [encode_event(event) for event in events]


async def test_several_readers_get_the_same() -> None:
    window, events = new_window(), events_of(30)
    found: dict[int, list[AgentEvent]] = {}

    async def read(number: int, start: int) -> None:
        found[number] = await read_all(window, start=start)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read, 0, 0)
            tasks.start_soon(read, 1, 0)
            tasks.start_soon(read, 2, 7)
            await anyio.wait_all_tasks_blocked()
            for event in events:
                window.append([event])
                await anyio.wait_all_tasks_blocked()
            window.close()
    assert found == {0: events, 1: events, 2: events[7:]}


async def test_a_reader_that_comes_after_the_end_gets_what_is_in_the_window() -> None:
    window, events = new_window(), events_of(0)
    window.append(events)
    window.close()
    with anyio.fail_after(10):
        assert await read_all(window) == events
        assert await read_all(window, start=len(events)) == []


async def test_a_batch_that_is_larger_than_the_window_is_not_lost_on_a_live_reader() -> None:
    window, events = new_window(), events_of(50)
    assert len(events) > 10 * SIZE
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            found: list[AgentEvent] = []

            async def read() -> None:
                found.extend(await read_all(window))

            tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            window.append(events)
            window.close()
    assert found == events


class Journaled:
    """A run that is recorded to a journal while its events are published."""

    def __init__(self, path: Path) -> None:
        self.window = new_window()
        self._normalizer = normalizer()
        self._writer = JournalWriter(path, header())
        self.opened = 0
        self.events: list[AgentEvent] = []

    def feed(self, record: Record) -> None:
        self._writer.append(record)
        events = self._normalizer.feed(record)
        self.events += events
        self.window.append(events)

    def open_journal(self) -> JournalEvents:
        self.opened += 1
        return JournalEvents(self._writer.path, ScriptedCodec)

    def close(self) -> None:
        self._writer.close()
        self.window.close()


RECORDS = [*printed(*(line(text=f"{number} ") for number in range(40))), DONE]


async def test_a_late_reader_gets_all_events_from_the_journal(tmp_path: Path) -> None:
    run = Journaled(tmp_path / "run.journal")
    for record in RECORDS:
        run.feed(record)
    run.close()
    with anyio.fail_after(10):
        found = await read_all(run.window, journal=run.open_journal)
        in_the_middle = await read_all(run.window, start=17, journal=run.open_journal)
    assert wires(found) == wires(run.events)
    assert wires(in_the_middle) == wires(run.events[17:])
    assert run.opened == 2


async def test_a_slow_reader_with_a_journal_loses_nothing(tmp_path: Path) -> None:
    run = Journaled(tmp_path / "run.journal")
    found: list[AgentEvent] = []

    async def read() -> None:
        found.extend(await read_all(run.window, slow=True, journal=run.open_journal))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            for record in RECORDS:
                run.feed(record)
                await anyio.lowlevel.checkpoint()
            run.close()
    assert wires(found) == wires(run.events)
    assert run.opened == 1


async def test_a_reader_that_fell_behind_returns_to_live_events(tmp_path: Path) -> None:
    run = Journaled(tmp_path / "run.journal")
    for record in RECORDS[:20]:
        run.feed(record)
    found: list[AgentEvent] = []

    async def read() -> None:
        found.extend(await read_all(run.window, journal=run.open_journal))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            await anyio.wait_all_tasks_blocked()
            assert wires(found) == []  # it is still reading
            for record in RECORDS[20:]:
                run.feed(record)
                await anyio.wait_all_tasks_blocked()
            run.close()
    assert wires(found) == wires(run.events)


async def test_without_a_journal_a_slow_reader_gets_the_number_of_lost_events() -> None:
    window, events = new_window(), events_of(40)
    for event in events:
        window.append([event])
    window.close()
    with anyio.fail_after(10):
        first, *rest = await read_all(window)
    assert isinstance(first, DebugEvent)
    assert first.message == f"lost {len(events) - len(rest)}"
    assert rest == events[-len(rest) :]
    assert len(rest) >= SIZE


async def test_a_reader_may_be_dropped_at_any_point() -> None:
    window = new_window()
    window.append(events_of(3))
    reader = window.read(no_journal)
    with anyio.fail_after(10):
        await anext(reader)
    del reader
    window.append(events_of(3))
    window.close()


async def test_the_window_keeps_no_more_than_twice_its_size_and_the_last_batch() -> None:
    window = new_window()
    for event in events_of(200):
        window.append([event])
        assert window.end - window.first <= 2 * SIZE + 1


def sized(number: int, size: int) -> AgentEvent:
    return ShellStdoutDeltaEvent(RUN_ID, "scripted", 1 + number, f"{number}".ljust(size))


async def test_the_window_is_bounded_by_bytes_and_keeps_the_latest_events() -> None:
    window = EventWindow(1000, loss, max_bytes=10_000)
    for number in range(100):
        window.append([sized(number, 1000)])
    assert window.bytes_in_memory <= 11_000
    assert 3 <= window.end - window.first <= 11
    window.append([sized(100, 50_000)])
    window.close()
    events = await read_all(window, start=window.first)
    assert [event.timestamp for event in events] == list(range(window.first + 1, 102))


async def test_a_batch_for_a_reader_ends_after_a_large_event() -> None:
    window = EventWindow(1000, loss)
    window.append([sized(number, BATCH_BYTES // 2) for number in range(5)])
    reader = window.read(no_journal)
    sizes = []
    for _ in range(3):
        numbered = await reader.batch()
        assert numbered is not None
        sizes.append((numbered[0], len(numbered[1])))
    assert sizes == [(0, 2), (2, 2), (4, 1)]
