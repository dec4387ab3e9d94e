"""Events of runs for readers, from any number on: live ones from the run's handle, ended ones from the journal.

Snapshots precede the events that they result from: a reader that has an event has its effect, too.
"""

from collections import deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from itertools import count
from pathlib import Path

from anyio import to_thread

from agent_mux._util.sanitize import to_json_bytes
from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEvent
from agent_mux.run.derivation import CodecFactory, DerivedRun
from agent_mux.run.event_sizes import size_in_memory
from agent_mux.run.handle import RunHandle
from agent_mux.run.whole_text import whole_text
from agent_mux.service.runs.incomplete import recorded_batches
from agent_mux.service.runs.live import LiveRun, view_of
from agent_mux.service.runs.registry import RunRegistry
from agent_mux.service.store.runs import RunRow
from agent_mux.service.views import RunView

Batch = tuple[int, Sequence[AgentEvent]]
"""The number of the first event, and the events."""
LARGEST_CHUNK = 256
"""Events that are derived at once, in a thread."""
LARGEST_BATCH_BYTES = 1 << 20
"""Bytes of events after which fewer are derived at once."""
RunUpdate = tuple[RunView | None, Batch]
"""The view of the run if it changed, and the events after it."""


class RunStreams:
    """The events and the result of each run."""

    def __init__(self, registry: RunRegistry, make_codec: CodecFactory) -> None:
        self._registry = registry
        self._make_codec = make_codec

    async def batches(self, run_id: str, start: int) -> AsyncGenerator[Batch, None]:
        """Yield the events from a number on, until the run has ended. Raises RUN_NOT_FOUND."""
        live = await self._registry.find_created(run_id)
        if live is not None:
            source = _live_batches(live.handle, start)
        else:
            row, path = await self._registry.row_of(run_id), self._registry.journal_of(run_id)
            source = (
                _incomplete_batches(row, path, self._make_codec, start)
                if row.journal is None
                else stored_batches(path, self._make_codec, start)
            )
        async with aclosing(source) as batches:
            async for batch in batches:
                yield batch

    async def updates(self, run_id: str, start: int) -> AsyncGenerator[RunUpdate, None]:
        """Yield the events with a view of the run at the start and after each change. Raises RUN_NOT_FOUND."""
        live = await self._registry.find_created(run_id)
        if live is not None:
            source = _live_updates(live, start)
        else:
            row = await self._registry.row_of(run_id)
            source = _stored_updates(view_of(row, full=False), self.batches(run_id, start))
        async with aclosing(source) as updates:
            async for update in updates:
                yield update

    async def check_readable(self, run: RunView) -> None:
        """Check that the events of a run can be read. `run`: a current view of it. Raises RUN_NOT_FOUND."""
        if self._registry.find(run.run_id) is None and isinstance(run.journal, str):
            await to_thread.run_sync(_open_journal, self._registry.journal_of(run.run_id), self._make_codec)

    def text(self, run_id: str, offset: int, limit: int) -> tuple[bytes, int]:
        """Return a part of the whole text of a run, and the size of the text. Blocking. Raises RUN_NOT_FOUND."""
        text = whole_text(self._registry.journal_of(run_id), self._make_codec, run_id)
        return text.read(offset, limit), text.size

    async def result(self, run_id: str) -> bytes | None:
        """Return the `run_result` after the end; None for a deleted run, or one that the next server starts again.

        The outcome of the run is recorded by then.
        """
        live = await self._registry.find_created(run_id)
        if live is not None and not live.handle.is_withdrawn:
            try:
                result = await live.handle.result()
            except AgentMuxError:  # withdrawn meanwhile, or an internal error, whose outcome is being stored
                await self._registry.wait_released(run_id)
            else:
                await self._registry.wait_released(run_id)
                return to_json_bytes(result.to_dict())
        return await self._registry.stored_result(run_id)


async def _live_batches(handle: RunHandle, start: int) -> AsyncGenerator[Batch, None]:
    """Yield events as they happen, until the run has ended."""
    reader = handle.events(start)
    while (batch := await reader.batch()) is not None:
        yield batch


async def stored_batches(path: Path, make_codec: CodecFactory, start: int) -> AsyncGenerator[Batch, None]:
    """Yield the events of an ended run from its journal. Raises RUN_NOT_FOUND when it is unreadable."""
    derived = await to_thread.run_sync(_open_journal, path, make_codec)
    batches = derived.batches()
    while chunk := await to_thread.run_sync(_next_chunk, batches, start):
        while chunk:
            yield chunk.popleft()


async def _incomplete_batches(
    row: RunRow, path: Path, make_codec: CodecFactory, start: int
) -> AsyncGenerator[Batch, None]:
    """Yield the events of a run whose journal ended before the run did. A run that never started has none."""
    batches = recorded_batches(row.run_id, path, make_codec) if row.event_count else iter(())
    while chunk := await to_thread.run_sync(_next_chunk, batches, start):
        while chunk:
            yield chunk.popleft()


def _open_journal(path: Path, make_codec: CodecFactory) -> DerivedRun:
    """Open a journal for derivation. Raises RUN_NOT_FOUND when it is unreadable."""
    try:
        return DerivedRun(path, make_codec)
    except OSError as error:
        gone = f"cannot read the journal {path}: {error.strerror or error}; restore it, or delete the run"
        raise AgentMuxError("RUN_NOT_FOUND", gone) from error


def _next_chunk(batches: Iterator[Batch], start: int) -> deque[Batch]:
    """Return the next events from a number on; none at the end."""
    chunk: deque[Batch] = deque()
    number = size = 0
    for first, events in batches:
        if first + len(events) > start:
            selected = events if first >= start else events[start - first :]
            chunk.append((max(first, start), selected))
            number += len(selected)
            size += sum(map(size_in_memory, selected))
            if number >= LARGEST_CHUNK or size >= LARGEST_BATCH_BYTES:
                break
    return chunk


def consumed(batch: Batch) -> Iterator[tuple[int, AgentEvent]]:
    """Yield the numbered events of a batch, and keep none that was yielded: the batch belongs to its reader."""
    first, events = batch
    waiting = deque(events)
    if isinstance(events, list):
        events.clear()
    for number in count(first):
        if not waiting:
            return
        yield number, waiting.popleft()


async def _live_updates(live: LiveRun, start: int) -> AsyncGenerator[RunUpdate, None]:
    """Yield updates as they happen, until the run has ended."""
    reader = live.handle.events(start)
    last_revision: object = None
    while True:
        changed = live.changed
        batch = await reader.batch() if reader.has_more else (0, ())
        if batch is None:
            return
        view = live.view(full=False)
        is_changed = last_revision != (last_revision := view.revision)
        if is_changed or batch[1]:
            yield view if is_changed else None, batch
        else:
            await changed.wait()


async def _stored_updates(view: RunView, batches: AsyncGenerator[Batch, None]) -> AsyncGenerator[RunUpdate, None]:
    """Yield the view of an ended run, then its events."""
    yield view, (0, ())
    async with aclosing(batches):
        async for batch in batches:
            yield None, batch
