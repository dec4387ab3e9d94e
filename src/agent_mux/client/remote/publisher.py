"""Passes the events of a remote run to local consumers: readers, callbacks, and the builder of the result.

Recent events are served from memory. A reader that falls behind gets the events from the service again, by a stream of
its own.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import anyio

from agent_mux._util.logs import LOGGER
from agent_mux.client.remote.stream import EventStream, StreamItem
from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEvent, DebugEvent, ErrorEvent, SessionEndEvent
from agent_mux.run.readers import EventReader, EventWindow, Listeners, OrderedDelivery
from agent_mux.run.result import RunResult
from agent_mux.run.result_builder import ResultBuilder

MAX_LOCAL_EVENTS = 100
"""The number of events of the client that are inserted among the events of a run; further ones are only logged."""
ABANDONED_CHECK_INTERVAL = 1.0  # seconds between checks whether a reader still exists
LocalEvents = Sequence[tuple[int, AgentEvent]]
"""Events of the client itself, each with the number of events of the service that precede it."""


class _ReaderAbandonedError(Exception):
    """The reader of a catch-up stream has been garbage-collected."""


class CatchUpStream:
    """A stream from the first event of a run, for one reader. The next batch is read when one has been consumed."""

    def __init__(self, stream: EventStream, local_events: LocalEvents) -> None:
        self._stream = stream
        self._local_events = local_events
        self._local_count = 0
        """The number of local events that were inserted."""
        self._service_count = 0
        """The number of events of the service that were received."""
        self._position = 0
        self._batch: list[AgentEvent] = []
        self._changed = anyio.Event()
        self._is_over = False
        self.is_wanted = True
        """Set to False, in any thread, when the reader no longer exists."""

    async def run(self) -> None:
        """Receive events until the run is over or the reader no longer exists."""
        try:
            with suppress(_ReaderAbandonedError, AgentMuxError):
                await self._stream.follow(self._receive)
        finally:
            self._is_over = True
            self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def _receive(self, item: StreamItem) -> None:
        """Add events to the batch and wait until the reader has consumed all of them."""
        if not isinstance(item, list):
            return
        local_events = self._local_events
        for event in item:
            while self._local_count < len(local_events) and local_events[self._local_count][0] <= self._service_count:
                self._batch.append(local_events[self._local_count][1])
                self._local_count += 1
            self._batch.append(event)
            self._service_count += 1
        self._wake()
        while self._batch:
            if not self.is_wanted:
                raise _ReaderAbandonedError
            changed = self._changed
            with anyio.move_on_after(ABANDONED_CHECK_INTERVAL):
                await changed.wait()

    async def take(self, position: int, end: int) -> Sequence[AgentEvent]:
        """Wait for events numbered from `position` to before `end` and return them; none when the stream has ended."""
        while True:
            skipped = min(position - self._position, len(self._batch))
            wanted = self._batch[skipped : end - self._position]
            consumed = skipped + len(wanted)
            self._position += consumed
            del self._batch[:consumed]
            if wanted or self._is_over:
                if not self._batch:
                    self._wake()
                return wanted
            changed = self._changed
            if not self._batch and consumed:
                self._wake()
                changed = self._changed
            await changed.wait()


class RemoteReader(EventReader):
    """An iterator over the events of a remote run. It may be dropped at any point."""

    def __init__(self, window: EventWindow, catch_up: Callable[[], CatchUpStream | None], start: int) -> None:
        """Start at event number `start`.

        `catch_up` is called once, when this reader falls behind for the first time; it returns None if the client is
        closed.
        """
        super().__init__(window, lambda: None, start)
        self._catch_up = catch_up
        self._stream: CatchUpStream | None = None

    def __del__(self) -> None:
        if self._stream is not None:
            self._stream.is_wanted = False

    async def _read_missed(self) -> Sequence[AgentEvent]:
        self._stream = self._stream or self._catch_up()
        events = None if self._stream is None else await self._stream.take(self._position, self._window.end)
        return events or self._report_loss()


class EventPublisher:
    """The events of one remote run so far, and their consumers."""

    def __init__(self, run_id: str, agent: str, *, size: int, collect: bool) -> None:
        """Keep the last `size` events for readers. `collect`: keep all events for the result."""
        self._run_id, self._agent = run_id, agent
        self._window = EventWindow(size, self._loss_event)
        self._builder = ResultBuilder(collect=collect, bounded=True)
        self._last_timestamp = time.time_ns() // 1_000_000
        """The time of the last event, in milliseconds since the epoch by the clock of the service."""
        self._service_count = 0
        self._early_notes: list[tuple[Callable[[str], AgentEvent], str]] = []
        """Local events from before the first event of the service: how to create each, and its message."""
        self._is_ended = False
        self.local_events: list[tuple[int, AgentEvent]] = []
        """The events of the client that were inserted among the events of the service. See `LocalEvents`."""
        self.listeners = Listeners(self.warn)
        """The callbacks of consumers."""
        self._publish = OrderedDelivery(self._builder.observe, self._window.append, self.listeners.call).deliver

    @property
    def count(self) -> int:
        """The number of events so far, those of the client included."""
        return self._window.end

    def read(self, start: int, catch_up: Callable[[], CatchUpStream | None]) -> RemoteReader:
        """Return a reader from event number `start`. See `RemoteReader` for `catch_up`."""
        return RemoteReader(self._window, catch_up, start)

    def publish(self, events: Sequence[AgentEvent]) -> None:
        """Pass on the next events of the service."""
        if self._early_notes:  # no local event may precede the first event
            self._publish_service_events(events[:1])
            notes, self._early_notes, events = self._early_notes, [], events[1:]
            for create, message in notes:
                self._insert(create, message)
        self._publish_service_events(events)

    def _publish_service_events(self, events: Sequence[AgentEvent]) -> None:
        if events:
            self._service_count += len(events)
            self._last_timestamp = events[-1].timestamp
            self._is_ended = self._is_ended or isinstance(events[-1], SessionEndEvent)
            self._publish(events)

    def warn(self, message: str) -> None:
        """Insert a warning of the client among the events. The service does not receive it.

        After the end of the session, and after `MAX_LOCAL_EVENTS` events of the client, it is logged instead.
        """
        self._insert(self._warning_event, message)

    def report_error(self, message: str) -> None:
        """Insert a recoverable error of the consumer's code among the events, as `warn` does."""
        self._insert(self._error_event, message)

    def _insert(self, create: Callable[[str], AgentEvent], message: str) -> None:
        if self._is_ended or len(self.local_events) >= MAX_LOCAL_EVENTS:
            logging.getLogger(LOGGER).warning("run %s: %s", self._run_id, message)
            return
        if not self._service_count:
            self._early_notes.append((create, message))
            return
        event = create(message)
        self.local_events.append((self._service_count, event))
        self._publish([event])

    def _loss_event(self, count: int) -> AgentEvent:
        return self._warning_event(
            f"{count} events were lost: this reader was too slow, and the service is unreachable"
        )

    def _warning_event(self, message: str) -> DebugEvent:
        return DebugEvent(self._run_id, self._agent, self._last_timestamp, "warn", message)

    def _error_event(self, message: str) -> ErrorEvent:
        return ErrorEvent(self._run_id, self._agent, self._last_timestamp, "VALIDATION_ERROR", message, True)

    def close(self) -> None:
        """End the stream of events for all readers."""
        if self._early_notes:  # the service sent no event at all
            self._publish([create(message) for create, message in self._early_notes])
        self._window.close()

    def build_result(self, fields: Mapping[str, Any], derive: Callable[[], Sequence[AgentEvent]]) -> RunResult:
        """Return the result of the run.

        Args:
            fields: The result as the service sends it, without messages and events.
            derive: Fetches the messages from the service again, when they were too long to keep.
        """
        return RunResult.from_dict(fields, texts=self._builder.texts(derive), events=self._builder.events)
