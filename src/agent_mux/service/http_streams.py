"""Streams of events to one reader: chunks of what is available, at the reader's own speed.

Nothing is queued for a reader: it has a position, and the run has the events. A stalled reader costs one chunk and the
socket's buffer, and delays no other reader. A large event is encoded once for all readers and sent in pieces. The
events of a stored session are derived in threads while they are sent.
"""

from collections.abc import AsyncGenerator, Callable, Collection, Generator
from contextlib import aclosing
from dataclasses import dataclass
from itertools import islice

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agent_mux._util.sanitize import to_json_bytes
from agent_mux.events import AgentEvent, encode_event
from agent_mux.service.pieces import pieces_of
from agent_mux.service.runs.event_cache import EncodedEventCache
from agent_mux.service.runs.streaming import LARGEST_BATCH_BYTES, Batch, consumed
from agent_mux.service.service import Service, in_thread
from agent_mux.sessions.client import Sessions
from agent_mux.sessions.summary import SessionFilter

PING_INTERVAL = 15.0  # seconds without an event; proxies and clients drop silent connections
PING = b": ping\n\n"
LARGEST_CHUNK = 1 << 16  # bytes of a chunk, unless one event is larger, which is sent in pieces
Frame = Callable[[int], tuple[bytes, bytes]]
"""Return what precedes and what follows the JSON of the event with this number."""
EVENTS_PER_CHUNK = 256
"""Events of a stored session that are derived at once, in a thread."""


def as_sse(number: int) -> tuple[bytes, bytes]:
    """Frame a Server-Sent Event. JSON has no line breaks, so a single `data` field holds it."""
    return b"id: %d\ndata: " % number, b"\n\n"


def as_json_line(_: int) -> tuple[bytes, bytes]:
    """Frame a line of JSON lines."""
    return b"", b"\n"


def framed(frame: Frame, number: int, line: bytes) -> bytes:
    """Return a line that is sent at once."""
    before, after = frame(number)
    return b"".join((before, line, after))


def as_snapshot(line: bytes) -> bytes:
    """Encode a Server-Sent Event of type `run`. It has no id, since it is not an event of the run."""
    return b"event: run\ndata: %b\n\n" % line


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSelection:
    """Which events to send, and whether with accumulated text."""

    start: int = 0
    types: Collection[str] | None = None
    """Event types to send; None: all."""
    accumulated: bool = False
    """Whether delta events carry the accumulated text, whose total size grows with the square of their number."""


def batch_chunks(
    event_cache: EncodedEventCache, run_id: str, batch: Batch, selection: EventSelection, frame: Frame
) -> Generator[bytes, None, None]:
    """Encode the selected events of a batch, joined into chunks."""
    chunk: list[bytes] = []
    size = 0
    for number, event in consumed(batch):
        if selection.types is not None and event.type not in selection.types:
            continue
        encoded = event_cache.encoded(run_id, number, event, accumulated=selection.accumulated)
        del event  # the encoded one is shared by all readers, this one may be the reader's own
        before, after = frame(number)
        if len(encoded.line) > LARGEST_CHUNK:
            yield from pieces_of(b"".join((*chunk, before)), encoded.line, after)
            chunk, size = [], 0
            continue
        chunk += (before, encoded.line, after)
        size += len(encoded.line)
        if size >= LARGEST_CHUNK:
            yield b"".join(chunk)
            chunk, size = [], 0
    if chunk:
        yield b"".join(chunk)


async def event_stream(
    service: Service, run_id: str, selection: EventSelection, frame: Frame
) -> AsyncGenerator[bytes, None]:
    """Yield the encoded events of a run, and its result at the end, numbered one above the last event."""
    end = selection.start
    async with aclosing(service.streams.batches(run_id, selection.start)) as batches:
        async for batch in batches:
            end = batch[0] + len(batch[1])
            for chunk in batch_chunks(service.event_cache, run_id, batch, selection, frame):
                yield chunk
    result = await service.streams.result(run_id)
    if result is not None:
        for piece in pieces_of(framed(frame, end, result)):
            yield piece


async def event_stream_with_snapshots(
    service: Service, run_id: str, selection: EventSelection
) -> AsyncGenerator[bytes, None]:
    """Yield the same as Server-Sent Events, with a snapshot of the run before the events that changed it."""
    end = selection.start
    async with aclosing(service.streams.updates(run_id, selection.start)) as updates:
        async for view, batch in updates:
            if view is not None:
                yield as_snapshot(to_json_bytes(view))
            end = max(end, batch[0] + len(batch[1]))
            for chunk in batch_chunks(service.event_cache, run_id, batch, selection, as_sse):
                yield chunk
    result = await service.streams.result(run_id)
    if result is not None:
        for piece in pieces_of(framed(as_sse, end, result)):
            yield piece


class ChunkStream(Response):
    """A response that is sent chunk by chunk until there are no more or the reader disconnects."""

    def __init__(self, chunks: AsyncGenerator[bytes, None], *, media_type: str, ping: bytes = b"") -> None:
        """`ping`: sent after each silent `PING_INTERVAL`; empty: none."""
        self._chunks = chunks
        self._ping = ping
        self._is_silent = True
        self.status_code, self.media_type, self.background = 200, media_type, None
        self.init_headers({"cache-control": "no-store", "x-accel-buffering": "no"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  # the ASGI signature
        """Send all chunks, and pings while there are none."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._cancel_on_disconnect, receive, tasks.cancel_scope)
            if self._ping:
                tasks.start_soon(self._send_pings, send)
            async with aclosing(self._chunks) as chunks:
                async for chunk in chunks:
                    await self._send(send, chunk)
            tasks.cancel_scope.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _send(self, send: Send, chunk: bytes) -> None:
        # No lock against the pings: the server writes each message as a whole, in any order.
        self._is_silent = False
        await send({"type": "http.response.body", "body": chunk, "more_body": True})

    async def _send_pings(self, send: Send) -> None:
        while True:
            await anyio.sleep(PING_INTERVAL)
            if self._is_silent:
                await self._send(send, self._ping)
            self._is_silent = True

    @staticmethod
    async def _cancel_on_disconnect(receive: Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        scope.cancel()


def open_session_events(sessions: Sessions, session: str, session_filter: SessionFilter) -> Generator[AgentEvent]:
    """Find a session and return its events, which are read lazily. Raises as `Sessions.find` does."""
    known = sessions.find(session, session_filter)
    return (event for event in sessions.events_of(known))


async def session_event_stream(
    service: Service, events: Generator[AgentEvent], frame: Frame, *, accumulated: bool
) -> AsyncGenerator[bytes, None]:
    """Yield the encoded events of a stored session, without secrets."""
    start = 0
    try:
        while lines := await in_thread(service, _next_lines, service, events, accumulated=accumulated):
            yield b"".join(framed(frame, number, line) for number, line in enumerate(lines, start))
            start += len(lines)
    finally:
        with anyio.CancelScope(shield=True):  # a file is open in it
            await in_thread(service, events.close)


def _next_lines(service: Service, events: Generator[AgentEvent], *, accumulated: bool) -> list[bytes]:
    lines: list[bytes] = []
    size = 0
    for event in islice(events, EVENTS_PER_CHUNK):
        lines.append(service.secrets.mask(encode_event(event, accumulated=accumulated)))
        size += len(lines[-1])
        if size >= LARGEST_BATCH_BYTES:
            break
    return lines
