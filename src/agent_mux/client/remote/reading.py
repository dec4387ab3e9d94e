"""Events for whoever reads a remote run: from memory, or, late and slow, from the service by a stream of their own."""

from collections.abc import Callable, Sequence
from contextlib import suppress

import anyio

from agent_mux.client.remote.stream import News, Stream
from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEvent
from agent_mux.run.readers import EventReader, EventWindow

LOOK_EVERY = 1.0  # seconds between looks whether the reader is still there
Asides = Sequence[tuple[int, AgentEvent]]
"""Events of our own among those of the service: behind how many of them, and which."""


class _GoneError(Exception):
    """Nobody reads any more."""


class Catching:
    """A stream from the first event on, one batch at a time: the next is read when this one was taken."""

    def __init__(self, stream: Stream, asides: Asides) -> None:
        self._stream = stream
        self._asides = asides
        self._noted = 0
        """How many of the asides were given."""
        self._told = 0
        """How many events of the service were given."""
        self._position = 0
        self._batch: list[AgentEvent] = []
        self._changed = anyio.Event()
        self._is_over = False
        self.is_wanted = True
        """Set to False, in whatever thread, when nobody reads any more."""

    async def run(self) -> None:
        """Read, until the run is over or the reader is gone."""
        try:
            with suppress(_GoneError, AgentMuxError):
                await self._stream.follow(self._put)
        finally:
            self._is_over = True
            self._change()

    def _change(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def _put(self, news: News) -> None:
        if not isinstance(news, list):
            return
        for event in news:
            while self._noted < len(self._asides) and self._asides[self._noted][0] <= self._told:
                self._batch.append(self._asides[self._noted][1])
                self._noted += 1
            self._batch.append(event)
            self._told += 1
        self._change()
        while self._batch:
            if not self.is_wanted:
                raise _GoneError
            changed = self._changed
            with anyio.move_on_after(LOOK_EVERY):
                await changed.wait()

    async def since(self, position: int, end: int) -> Sequence[AgentEvent]:
        """Events from a number on, and before another; none when there are no more."""
        while True:
            skipped = min(position - self._position, len(self._batch))
            wanted = self._batch[skipped : end - self._position]
            taken = skipped + len(wanted)
            self._position += taken
            del self._batch[:taken]
            if wanted or self._is_over:
                if not self._batch:
                    self._change()
                return wanted
            changed = self._changed
            if not self._batch and taken:
                self._change()
                changed = self._changed
            await changed.wait()


class RemoteReader(EventReader):
    """One reader's position in the stream. It may be dropped at any point."""

    def __init__(self, window: EventWindow, catch_up: Callable[[], Catching | None], start: int) -> None:
        """`catch_up` is called once, when this reader falls behind for the first time; None: it cannot."""
        super().__init__(window, lambda: None, start)
        self._catch_up = catch_up
        self._catching: Catching | None = None

    def __del__(self) -> None:
        if self._catching is not None:
            self._catching.is_wanted = False

    async def _read_missed(self) -> Sequence[AgentEvent]:
        self._catching = self._catching or self._catch_up()
        events = None if self._catching is None else await self._catching.since(self._position, self._window.end)
        return events or self._report_loss()
