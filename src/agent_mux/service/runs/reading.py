"""The events of a run from any number on: of one that this process has, and of one that only its journal tells."""

from collections.abc import AsyncGenerator, Iterator, Sequence
from pathlib import Path

from anyio import to_thread

from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEvent
from agent_mux.run.derivation import DerivedRun, MakeCodec
from agent_mux.run.handle import RunHandle

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
    derived = await to_thread.run_sync(opened, path, make_codec)
    batches = derived.batches()
    while chunk := await to_thread.run_sync(_chunk, batches, start):
        for batch in chunk:
            yield batch


def opened(path: Path, make_codec: MakeCodec) -> DerivedRun:
    """Ready to be read. Raises RUN_NOT_FOUND when it cannot be."""
    try:
        return DerivedRun(path, make_codec)
    except OSError as error:
        gone = f"the journal {path} cannot be read: {error.strerror or error}"
        raise AgentMuxError("RUN_NOT_FOUND", gone) from error


def _chunk(batches: Iterator[Batch], start: int) -> list[Batch]:
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
