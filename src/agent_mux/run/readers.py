"""Delivery of a run's events: callbacks by event type, and a window in memory for asynchronous readers.

Callbacks are called synchronously and in order; an exception of one affects neither the run nor other callbacks. A
reader that falls behind the window reads from the journal. See docs/spec/run-api.md, section 3.
"""

import logging
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakSet

import anyio
from anyio import lowlevel

from agent_mux._util.logs import LOGGER
from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEvent
from agent_mux.run.derivation import JournalEvents
from agent_mux.run.event_sizes import size_in_memory
from agent_mux.run.handlers import WrongReturnError, call_handler

Handler = Callable[[Any], Any]
ANY = "*"
REQUEST_EVENTS = {"approval": "approval_request", "input": "input_required"}
"""The event that shows each kind of request."""
_SHOWS_REQUEST = frozenset(REQUEST_EVENTS.values())
WINDOW_BYTES = 16 << 20
"""Bytes of the events that a run keeps in memory, besides the batch that is being delivered."""
WINDOW_TEXTS = 4
"""So many texts of the largest size fit into a window, so that readers of a large event share it."""
UNLIMITED_WINDOW_BYTES = 128 << 20
"""The same for a run without a limit on texts, whose memory has no bound."""
BATCH_BYTES = 1 << 20
"""Bytes after which a batch for a reader ends: what a reader that stalls keeps from being dropped."""


def window_bytes(max_text_bytes: int) -> int:
    """Return the size of the window of a run with this limit on texts."""
    return max(WINDOW_BYTES, WINDOW_TEXTS * max_text_bytes) if max_text_bytes else UNLIMITED_WINDOW_BYTES


class Listeners:
    """The callbacks of one run, by event type."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self.warn = warn
        self.shown_requests: set[str] = set()
        """Ids of the requests whose events handlers have got."""
        self._handlers: dict[str, list[tuple[Handler, bool]]] = defaultdict(list)
        self._observers: list[Handler] = []
        self._is_warning = False

    def on(self, event_type: str, handler: Handler, *, once: bool = False) -> None:
        """Call `handler` for each event of this type (`*`: of every type), or only for the next one."""
        self._handlers[event_type].append((handler, once))

    def off(self, event_type: str, handler: Handler) -> None:
        """Stop calling this handler; do nothing if it is not registered."""
        self._handlers[event_type] = [entry for entry in self._handlers[event_type] if entry[0] != handler]

    def observe(self, observer: Handler) -> None:
        """Call `observer` for each event. It cannot answer requests, so that it does not count as a handler of them."""
        self._observers.append(observer)

    def has_handlers(self, event_type: str) -> bool:
        """Return whether a handler will be called for the next event of this type."""
        return any(self._handlers.get(key) for key in (event_type, ANY))

    def call(self, events: Sequence[AgentEvent]) -> None:
        """Call the observers, and the handlers of these events."""
        if not self._handlers and not self._observers:
            return
        for event in events:
            for observer in self._observers:
                self.call_safely(observer, event)
            if event.type in _SHOWS_REQUEST and self.has_handlers(event.type):
                self.shown_requests.add(getattr(event, "interaction_id", ""))
            for key in (event.type, ANY):
                for entry in tuple(self._handlers.get(key, ())):
                    if entry[1]:
                        self._handlers[key].remove(entry)
                    self.call_safely(entry[0], event)

    def call_safely(self, handler: Handler, value: Any) -> None:
        """Call one handler; if it raises or returns a coroutine, log it, emit a warning and continue."""
        try:
            call_handler(handler, value)
        except Exception as error:
            logging.getLogger(LOGGER).exception("a handler of this run failed; the run continues")
            if self._is_warning:
                return  # a handler raised on the warning about a handler
            self._is_warning = True
            try:
                is_value = isinstance(error, WrongReturnError)
                self.warn(f"a handler {f'failed: {error}' if is_value else f'raised {error!r}'}; the run continues")
            finally:
                self._is_warning = False


class OrderedDelivery:
    """Delivers batches of events to observers, one batch after the other.

    An observer may cause further events, for example when a callback raises. They are delivered after the batch that is
    being delivered, so that all observers receive all events in the same order.
    """

    def __init__(self, *observers: Callable[[Sequence[AgentEvent]], None]) -> None:
        self.observers = list(observers)
        """Called in this order with each batch."""
        self._is_delivering = False
        self._waiting: deque[Sequence[AgentEvent]] = deque()

    def deliver(self, events: Sequence[AgentEvent]) -> None:
        """Deliver these events, or leave them to the delivery in progress."""
        if self._is_delivering:
            self._waiting.append(events)
            return
        self._is_delivering = True
        try:
            for observe in self.observers:
                observe(events)
            while self._waiting:
                events = self._waiting.popleft()
                for observe in self.observers:
                    observe(events)
        finally:
            self._is_delivering = False


class EventWindow:
    """The latest `size` to 2 * `size` events, numbered, shared by all readers.

    Fewer when their texts take more than `max_bytes`.
    """

    def __init__(self, size: int, on_loss: Callable[[int], AgentEvent], max_bytes: int = WINDOW_BYTES) -> None:
        self._size = size
        self._max_bytes = max_bytes
        self.on_loss = on_loss
        self._events: list[AgentEvent] = []
        self._first = 0
        self._bytes = 0
        """About how much memory the events take."""
        self._closed = False
        self._news: anyio.Event | None = None
        self._readers: WeakSet[EventReader] = WeakSet()
        self._read_until = 0

    @property
    def bytes_in_memory(self) -> int:
        """About how much memory the events take."""
        return self._bytes

    @property
    def first(self) -> int:
        """Number of the oldest event in the window."""
        return self._first

    @property
    def end(self) -> int:
        """Number of events so far."""
        return self._first + len(self._events)

    def append(self, events: Sequence[AgentEvent]) -> None:
        """Add the next events. An event stays in the window for at least one round of the event loop."""
        surplus = len(self._events) - self._size
        if surplus > self._size:  # not one by one: each removal moves all others
            self._drop(surplus)
        elif self._bytes > self._max_bytes:
            self._drop(self._surplus_of_bytes())
        self._events.extend(events)
        self._bytes += sum(map(size_in_memory, events))
        self._wake()

    def _drop(self, count: int) -> None:
        self._bytes -= sum(map(size_in_memory, self._events[:count]))
        del self._events[:count]
        self._first += count

    def _surplus_of_bytes(self) -> int:
        """Return how many of the oldest events to drop, so that the others take half of the memory."""
        kept = 0
        for count, event in enumerate(reversed(self._events)):
            kept += size_in_memory(event)
            if kept > self._max_bytes // 2:
                return len(self._events) - count
        return 0

    def close(self) -> None:
        """Mark the stream as complete."""
        self._closed = True
        self._wake()

    def read(
        self, open_journal: Callable[[], JournalEvents | None], start: int = 0, *, is_internal: bool = False
    ) -> "EventReader":
        """Return a reader of every event from number `start`, in order, until the run is over.

        Args:
            open_journal: Called once, when this reader falls behind for the first time.
            start: Number of the first event.
            is_internal: Whether the reader belongs to nobody who could answer requests.
        """
        reader = EventReader(self, open_journal, start, is_internal=is_internal)
        if not is_internal:
            self._readers.add(reader)
        return reader

    @property
    def has_readers(self) -> bool:
        """Whether somebody reads the events, or is about to: a reader exists, and was not dropped."""
        return len(self._readers) > 0

    @property
    def read_until(self) -> int:
        """Number of the first event that no reader has consumed."""
        return max((self._read_until, *(reader.position for reader in self._readers)))

    def note_read(self, position: int) -> None:
        """Remember how far a reader got that is dropped."""
        self._read_until = max(self._read_until, position)

    def number_of(self, interaction_id: str) -> int:
        """Return the number of the event that shows a new request."""
        for offset, event in enumerate(reversed(self._events), 1):
            if event.type in _SHOWS_REQUEST and getattr(event, "interaction_id", "") == interaction_id:
                return self.end - offset
        return self.end  # it is not delivered yet

    def since(self, position: int) -> Sequence[AgentEvent]:
        """Return available events from a number on, which must not be older than the window: at most one large batch.

        The list belongs to the caller.
        """
        start = position - self._first
        if self._bytes <= BATCH_BYTES:
            return self._events[start:]
        size = 0
        for end in range(start, len(self._events)):
            size += size_in_memory(self._events[end])
            if size >= BATCH_BYTES:
                return self._events[start : end + 1]
        return self._events[start:]

    @property
    def is_closed(self) -> bool:
        """Whether the stream is complete."""
        return self._closed

    @property
    def news(self) -> anyio.Event:
        """Event that is set when more events arrive or the stream is complete."""
        if self._news is None:
            self._news = anyio.Event()
        return self._news

    def _wake(self) -> None:
        news, self._news = self._news, None
        if news is not None:
            news.set()


class EventReader:
    """One reader's position in the stream. An iterator, not a generator, so that it can be dropped at any point."""

    def __init__(
        self,
        window: EventWindow,
        open_journal: Callable[[], JournalEvents | None],
        start: int,
        *,
        is_internal: bool = False,
    ) -> None:
        self._window = window
        self._is_internal = is_internal
        self._open_journal = open_journal
        self._journal: JournalEvents | None = None
        self._position = start
        self._batch: Sequence[AgentEvent] = ()
        self._next = 0

    def __aiter__(self) -> "EventReader":
        return self

    def __del__(self) -> None:
        if not self._is_internal:
            self._window.note_read(self.position)

    @property
    def position(self) -> int:
        """Number of the next event that this reader returns."""
        return self._position - len(self._batch) + self._next

    async def __anext__(self) -> AgentEvent:
        if self._next == len(self._batch):
            numbered = await self.batch()
            if numbered is None:
                raise StopAsyncIteration
            self._batch, self._next = numbered[1], 0
        event = self._batch[self._next]
        self._next += 1
        return event

    @property
    def has_more(self) -> bool:
        """Whether `batch` returns without waiting."""
        return self._position < self._window.end or self._window.is_closed

    async def batch(self) -> tuple[int, Sequence[AgentEvent]] | None:
        """Return the number of the next event, and events available from there; None when the run is over.

        For readers that need numbers; do not mix it with `anext`.
        """
        while True:
            if self._position < self._window.first:
                events = await self._read_missed()
            else:
                events = self._window.since(self._position)
                if not events and self._window.is_closed:
                    return None
            if events:
                first = self._position
                self._position += len(events)
                return first, events
            await self._window.news.wait()

    async def _read_missed(self) -> Sequence[AgentEvent]:
        """Return the next events from the journal, because they are no longer in the window."""
        await lowlevel.checkpoint()
        try:
            journal = self._journal = self._journal or self._open_journal()
            while journal is not None and (batch := journal.next_batch()) is not None:
                if journal.position > self._position:
                    return batch[self._position - journal.position :]
        except (OSError, AgentMuxError):  # the journal was removed or damaged: continue without it
            self._journal = None
        return self._report_loss()

    def _report_loss(self) -> Sequence[AgentEvent]:
        """Return one event that reports how many events are no longer available."""
        lost = self._window.first - self._position
        self._position = self._window.first - 1
        return (self._window.on_loss(lost),)
