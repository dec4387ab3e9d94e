"""The latest events of a run, in memory for its live readers. Readers that fall behind are served from the journal."""

from collections.abc import AsyncIterator, Callable, Sequence

import anyio
from anyio import lowlevel

from agent_mux.events import AgentEvent
from agent_mux.run.derive import JournalEvents


class EventWindow:
    """Numbered events, the last `size` of them at hand. Memory does not grow with the number of readers or events."""

    def __init__(self, size: int, on_loss: Callable[[int], AgentEvent]) -> None:
        self._size = size
        self._on_loss = on_loss
        self._events: list[AgentEvent] = []
        self._first = 0
        self._closed = False
        self._news = anyio.Event()

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

    async def read(self, open_journal: Callable[[], JournalEvents | None], start: int = 0) -> AsyncIterator[AgentEvent]:
        """Every event from number `start`, each once and in order, until the run is over.

        `open_journal` is called once, when this reader falls behind for the first time.
        """
        position = start
        journal: JournalEvents | None = None
        while True:
            if position < self._first:
                journal = journal or open_journal()
                async for event in self._catch_up(journal, position):
                    yield event
                position = max(self._first, journal.position if journal is not None else 0)
                continue
            batch = self._events[position - self._first :]
            if batch:
                position += len(batch)
                for event in batch:
                    yield event
            elif self._closed:
                return
            else:
                await self._news.wait()

    async def _catch_up(self, journal: JournalEvents | None, position: int) -> AsyncIterator[AgentEvent]:
        reached = position
        while journal is not None and reached < self._first and (batch := journal.next_batch()) is not None:
            reached = max(reached, journal.position)
            for event in batch[max(position - (journal.position - len(batch)), 0) :]:
                yield event
            await lowlevel.checkpoint()
        if reached < self._first:
            yield self._on_loss(self._first - reached)

    def _wake(self) -> None:
        news, self._news = self._news, anyio.Event()
        news.set()
