"""Reading the events of a run from any number on: live ones from the run's handle, ended ones from the journal.

Snapshots precede the events that they result from: a reader that has an event has its effect, too. Encoded events are
cached, so that several readers of a run encode each event once.
"""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path

from anyio import to_thread

from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEvent, encode_event
from agent_mux.run.derivation import CodecFactory, DerivedRun
from agent_mux.run.handle import RunHandle
from agent_mux.service.runs.live import LiveRun
from agent_mux.service.views import RunView

Batch = tuple[int, Sequence[AgentEvent]]
"""The number of the first event, and the events."""
LARGEST_CHUNK = 256
"""Events that are derived at once, in a thread."""
RunUpdate = tuple[RunView | None, Batch]
"""The view of the run if it changed, and the events after it."""
MAX_CACHE_BYTES = 32 << 20
"""Total size of cached encoded events."""


async def live_batches(handle: RunHandle, start: int) -> AsyncGenerator[Batch, None]:
    """Yield events as they happen, until the run has ended."""
    reader = handle.events(start)
    while (batch := await reader.batch()) is not None:
        yield batch


async def stored_batches(path: Path, make_codec: CodecFactory, start: int) -> AsyncGenerator[Batch, None]:
    """Yield the events of an ended run from its journal. Raises RUN_NOT_FOUND when it is unreadable."""
    derived = await to_thread.run_sync(open_journal, path, make_codec)
    batches = derived.batches()
    while chunk := await to_thread.run_sync(_next_chunk, batches, start):
        for batch in chunk:
            yield batch


def open_journal(path: Path, make_codec: CodecFactory) -> DerivedRun:
    """Open a journal for derivation. Raises RUN_NOT_FOUND when it is unreadable."""
    try:
        return DerivedRun(path, make_codec)
    except OSError as error:
        gone = f"cannot read the journal {path}: {error.strerror or error}"
        raise AgentMuxError("RUN_NOT_FOUND", gone) from error


def _next_chunk(batches: Iterator[Batch], start: int) -> list[Batch]:
    """Return the next events from a number on; none at the end."""
    chunk: list[Batch] = []
    size = 0
    for first, events in batches:
        if first + len(events) > start:
            selected = events[max(start - first, 0) :]
            chunk.append((max(first, start), selected))
            size += len(selected)
            if size >= LARGEST_CHUNK:
                break
    return chunk


async def live_updates(live: LiveRun, start: int) -> AsyncGenerator[RunUpdate, None]:
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


async def stored_updates(view: RunView, batches: AsyncGenerator[Batch, None]) -> AsyncGenerator[RunUpdate, None]:
    """Yield the view of an ended run, then its events."""
    yield view, (0, ())
    async with aclosing(batches):
        async for batch in batches:
            yield None, batch


class EncodedEventCache:
    """A cache of encoded events by run and number. The oldest entries are evicted first."""

    def __init__(self, most: int = MAX_CACHE_BYTES) -> None:
        self._most = most
        self._size = 0
        self._lines: OrderedDict[tuple[str, int, bool], bytes] = OrderedDict()

    def line(self, run_id: str, number: int, event: AgentEvent, *, accumulated: bool) -> bytes:
        """Return the event as a JSON line without the newline, as `amux run --json` or `--compact` prints it."""
        key = (run_id, number, accumulated)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = encode_event(event, accumulated=accumulated)
            self._size += len(line)
            while self._size > self._most:
                self._size -= len(self._lines.popitem(last=False)[1])
        return line
