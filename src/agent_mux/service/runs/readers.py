"""The events of a run from any number on: of one that this process has, and of one that only its journal tells.

A run as somebody sees it who shows it: its events, and how it is, in an order in which both fit together.

How it is comes before the events that made it so: whoever sees an event knows what has come of it.
"""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path

from anyio import to_thread

from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEvent, encode_event
from agent_mux.run.derivation import DerivedRun, MakeCodec
from agent_mux.run.handle import RunHandle
from agent_mux.service.runs.live import LiveRun
from agent_mux.service.views import RunView

Batch = tuple[int, Sequence[AgentEvent]]
"""The number of the first event, and the events."""
LARGEST_CHUNK = 256
"""Events that are derived at once, in a thread."""


async def live_batches(handle: RunHandle, start: int) -> AsyncGenerator[Batch, None]:
    """As they happen, until the run is over."""
    reader = handle.events(start)
    while (batch := await reader.batch()) is not None:
        yield batch


async def stored_batches(path: Path, make_codec: MakeCodec, start: int) -> AsyncGenerator[Batch, None]:
    """Out of the journal of a run that is over. Raises RUN_NOT_FOUND when it cannot be read any more."""
    derived = await to_thread.run_sync(open_journal, path, make_codec)
    batches = derived.batches()
    while chunk := await to_thread.run_sync(_next_chunk, batches, start):
        for batch in chunk:
            yield batch


def open_journal(path: Path, make_codec: MakeCodec) -> DerivedRun:
    """Ready to be read. Raises RUN_NOT_FOUND when it cannot be."""
    try:
        return DerivedRun(path, make_codec)
    except OSError as error:
        gone = f"the journal {path} cannot be read: {error.strerror or error}"
        raise AgentMuxError("RUN_NOT_FOUND", gone) from error


def _next_chunk(batches: Iterator[Batch], start: int) -> list[Batch]:
    """Some of the events from a number on; none at the end."""
    chunk: list[Batch] = []
    size = 0
    for first, events in batches:
        if first + len(events) > start:
            wanted = events[max(start - first, 0) :]
            chunk.append((max(first, start), wanted))
            size += len(wanted)
            if size >= LARGEST_CHUNK:
                break
    return chunk


RunUpdate = tuple[RunView | None, Batch]
"""How the run is, where that changed, and the events behind it."""


async def live_updates(live: LiveRun, start: int) -> AsyncGenerator[RunUpdate, None]:
    """As it happens, until the run is over."""
    reader = live.handle.events(start)
    shown: object = None
    while True:
        changed = live.changed
        batch = await reader.batch() if reader.has_more else (0, ())
        if batch is None:
            return
        view = live.view(full=False)
        is_other = shown != (shown := view.revision)
        if is_other or batch[1]:
            yield view if is_other else None, batch
        else:
            await changed.wait()


async def stored_updates(view: RunView, batches: AsyncGenerator[Batch, None]) -> AsyncGenerator[RunUpdate, None]:
    """Of a run that is over."""
    yield view, (0, ())
    async with aclosing(batches):
        async for batch in batches:
            yield None, batch


MAX_CACHE_BYTES = 32 << 20
"""Of encoded events that are kept for the next reader."""


class EncodedEvents:
    """JSON lines of events, by run and number. Bounded: what was made first is forgotten first."""

    def __init__(self, most: int = MAX_CACHE_BYTES) -> None:
        self._most = most
        self._size = 0
        self._lines: OrderedDict[tuple[str, int, bool], bytes] = OrderedDict()

    def line(self, run_id: str, number: int, event: AgentEvent, *, accumulated: bool) -> bytes:
        """The event as `amux run --json` prints it, or with `--compact`; without the newline."""
        key = (run_id, number, accumulated)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = encode_event(event, accumulated=accumulated)
            self._size += len(line)
            while self._size > self._most:
                self._size -= len(self._lines.popitem(last=False)[1])
        return line
