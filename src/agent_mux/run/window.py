"""The latest events of a run, in memory for its live readers. Readers that fall behind are served from the journal."""

from collections.abc import Callable, Sequence

import anyio
from anyio import lowlevel

from agent_mux.events import AgentEvent
from agent_mux.run.derive import JournalEvents


class EventWindow:
    """Numbered events, the last `size` of them at hand. Memory does not grow with the number of readers or events."""

    def __init__(self, size: int, on_loss: Callable[[int], AgentEvent]) -> None:
        self._size = size
        self.on_loss = on_loss
        self._events: list[AgentEvent] = []
        self._first = 0
        self._closed = False
        self._news = anyio.Event()

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
        if surplus > 0:
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

    async def batch_from(self, position: int) -> Sequence[AgentEvent] | None:
        """The events from a number on. Waits for one; empty when the run is over, None when they fell out meanwhile."""
        while position >= self._first:
            batch = self._events[position - self._first :]
            if batch or self._closed:
                return batch
            await self._news.wait()
        return None

    def _wake(self) -> None:
        news, self._news = self._news, anyio.Event()
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
            self._batch, self._next = await self._more(), 0
            if not self._batch:
                raise StopAsyncIteration
        event = self._batch[self._next]
        self._next += 1
        return event

    async def _more(self) -> Sequence[AgentEvent]:
        batch = await self._window.batch_from(self._position)
        if batch is None:
            await lowlevel.checkpoint()
            batch = self._derived()
        self._position += len(batch)
        return batch

    def _derived(self) -> Sequence[AgentEvent]:
        """The next events out of the journal: this reader fell out of the window."""
        journal = self._journal = self._journal or self._open_journal()
        while journal is not None and (batch := journal.next_batch()) is not None:
            if journal.position > self._position:
                return batch[self._position - journal.position :]
        lost = self._window.first - self._position
        self._position = self._window.first - 1
        return (self._window.on_loss(lost),)
