"""Callbacks by event type: called synchronously, in order; one that raises harms nobody. Run API, section 3.

The latest events of a run, in memory for its live readers. Readers that fall behind are served from the journal.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import anyio
from anyio import lowlevel

from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEvent
from agent_mux.run.derivation import JournalEvents

Handler = Callable[[Any], Any]
ANY = "*"


class Listeners:
    """Who wants to be called for which events."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self.warn = warn
        self._handlers: dict[str, list[tuple[Handler, bool]]] = defaultdict(list)
        self._warning = False

    def on(self, event_type: str, handler: Handler, *, once: bool = False) -> None:
        """Call `handler` for each event of this type (`*`: of every type), or only for the next one."""
        self._handlers[event_type].append((handler, once))

    def off(self, event_type: str, handler: Handler) -> None:
        """Call it no more. Nothing happens when it was not registered."""
        self._handlers[event_type] = [entry for entry in self._handlers[event_type] if entry[0] != handler]

    def call(self, events: Sequence[AgentEvent]) -> None:
        """Tell everybody."""
        if not self._handlers:
            return
        for event in events:
            for key in (event.type, ANY):
                for entry in tuple(self._handlers.get(key, ())):
                    if entry[1]:
                        self._handlers[key].remove(entry)
                    self.call_safely(entry[0], event)

    def call_safely(self, handler: Handler, value: Any) -> None:
        """Call one handler; if it raises, say so and go on."""
        try:
            handler(value)
        except Exception as error:  # noqa: BLE001  # a handler of the consumer's may raise anything
            if self._warning:
                return  # the handler raised on the warning about itself
            self._warning = True
            try:
                self.warn(f"a handler raised {error!r}; the run goes on")
            finally:
                self._warning = False


class EventWindow:
    """Numbered events, the last `size` of them (or up to twice as many) at hand, however many readers there are."""

    def __init__(self, size: int, on_loss: Callable[[int], AgentEvent]) -> None:
        self._size = size
        self.on_loss = on_loss
        self._events: list[AgentEvent] = []
        self._first = 0
        self._closed = False
        self._news: anyio.Event | None = None

    @property
    def first(self) -> int:
        """The number of the oldest event in the window."""
        return self._first

    @property
    def end(self) -> int:
        """The number of events so far."""
        return self._first + len(self._events)

    def append(self, events: Sequence[AgentEvent]) -> None:
        """The next events. What falls out of the window was in it for at least one round of the event loop."""
        surplus = len(self._events) - self._size
        if surplus > self._size:  # not one by one: each removal moves the rest
            del self._events[:surplus]
            self._first += surplus
        self._events.extend(events)
        self._wake()

    def close(self) -> None:
        """No more events."""
        self._closed = True
        self._wake()

    def read(self, open_journal: Callable[[], JournalEvents | None], start: int = 0) -> "EventReader":
        """Every event from number `start`, each once and in order, until the run is over.

        `open_journal` is called once, when this reader falls behind for the first time.
        """
        return EventReader(self, open_journal, start)

    def since(self, position: int) -> Sequence[AgentEvent]:
        """The events from a number on, as far as there are any. The number must not have fallen out of the window."""
        return self._events[position - self._first :]

    @property
    def is_closed(self) -> bool:
        """No more events will come."""
        return self._closed

    @property
    def news(self) -> anyio.Event:
        """Set when there are more events, or when there will be no more."""
        if self._news is None:
            self._news = anyio.Event()
        return self._news

    def _wake(self) -> None:
        news, self._news = self._news, None
        if news is not None:
            news.set()


class EventReader:
    """One reader's position in the stream. An iterator and not a generator: it may be dropped at any point."""

    def __init__(self, window: EventWindow, open_journal: Callable[[], JournalEvents | None], start: int) -> None:
        self._window = window
        self._open_journal = open_journal
        self._journal: JournalEvents | None = None
        self._position = start
        self._batch: Sequence[AgentEvent] = ()
        self._next = 0

    def __aiter__(self) -> "EventReader":
        return self

    async def __anext__(self) -> AgentEvent:
        if self._next == len(self._batch):
            read = await self.batch()
            if read is None:
                raise StopAsyncIteration
            self._batch, self._next = read[1], 0
        event = self._batch[self._next]
        self._next += 1
        return event

    @property
    def has_more(self) -> bool:
        """`batch` has something to say at once."""
        return self._position < self._window.end or self._window.is_closed

    async def batch(self) -> tuple[int, Sequence[AgentEvent]] | None:
        """The next events, all that are at hand, and the number of the first; None when the run is over.

        For whoever wants numbers: do not mix it with `anext`.
        """
        while True:
            if self._position < self._window.first:
                events = await self._behind()
            else:
                events = self._window.since(self._position)
                if not events and self._window.is_closed:
                    return None
            if events:
                first = self._position
                self._position += len(events)
                return first, events
            await self._window.news.wait()

    async def _behind(self) -> Sequence[AgentEvent]:
        """The next events out of the journal: this reader fell out of the window."""
        await lowlevel.checkpoint()
        try:
            journal = self._journal = self._journal or self._open_journal()
            while journal is not None and (batch := journal.next_batch()) is not None:
                if journal.position > self._position:
                    return batch[self._position - journal.position :]
        except (OSError, AgentMuxError):  # somebody removed or damaged it: then it is as if there were none
            self._journal = None
        return self._lost()

    def _lost(self) -> Sequence[AgentEvent]:
        """Nobody has them any more."""
        lost = self._window.first - self._position
        self._position = self._window.first - 1
        return (self._window.on_loss(lost),)
