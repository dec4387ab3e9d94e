"""Writing to standard output and standard error while a run goes on.

A reader of ours that stops reading (a pager, a stopped terminal) must not stop the agent: writing happens in a
thread, and what comes meanwhile is one batch. Events wait in the run's own window and journal, not here.
"""

import os
import select
import sys
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Literal

import anyio
from anyio import to_thread

from agent_mux.cli.paper import Piece
from agent_mux.cli.terminal import is_terminal

MOST_WAITING = 1 << 18  # characters; more is left where it comes from until these are written


class Output:
    """Writes pieces in order. `broken` is set when standard output cannot be written any more; `error` says why."""

    def __init__(self, encoding: str | None = None) -> None:
        """`encoding`: instead of that of the streams."""
        self._encoding = encoding
        self._waiting: list[Piece] = []
        self._size = 0
        self._writing = False
        self._news = anyio.Event()
        self._progress = anyio.Event()
        self._has_errors = True
        self._show: Callable[[Literal["out", "err"], str], None] | None = None
        self.broken = anyio.Event()
        self.error: OSError | None = None

    def show_with(self, show: Callable[[Literal["out", "err"], str], None]) -> None:
        """What goes to a terminal is given to this, in a thread: it shares the terminal with what is typed there."""
        self._show = show

    def add(self, pieces: Iterable[Piece]) -> None:
        """Write these soon."""
        for piece in pieces:
            self._waiting.append(piece)
            self._size += len(piece.text)
        if self._waiting:
            self._news.set()

    async def room(self) -> None:
        """Wait until not too much is waiting to be written."""
        while self._size > MOST_WAITING and self.error is None:
            await self._progress.wait()

    async def drain(self) -> None:
        """Wait until everything is written."""
        while (self._waiting or self._writing) and self.error is None:
            await self._progress.wait()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            batch, self._waiting, self._size = self._waiting, [], 0
            self._writing = True
            try:
                await to_thread.run_sync(self._write, batch, abandon_on_cancel=True)
            except OSError as error:
                self._break(error)
            self._writing = False
            self._tell_progress()

    async def watch(self, descriptor: int) -> None:
        """Notice that nobody can read standard output any more, also while there is nothing to write."""
        await until_reader_is_gone(descriptor)
        self._break(BrokenPipeError())

    def _break(self, error: OSError) -> None:
        self.error = self.error or error
        self.broken.set()
        self._tell_progress()

    def _tell_progress(self) -> None:
        progress, self._progress = self._progress, anyio.Event()
        progress.set()

    def _write(self, batch: list[Piece]) -> None:
        for stream, pieces in groupby(batch, key=lambda piece: piece.stream):
            text = "".join(piece.text for piece in pieces)
            if self._show is not None and (stream == "err" or is_terminal(sys.stdout)):
                self._show(stream, text)
            elif stream == "out" and self.error is None:
                write_all(sys.stdout.fileno(), text.encode(self._encoding or sys.stdout.encoding, "replace"))
            elif stream == "err" and self._has_errors:
                self._write_error(text)

    def _write_error(self, text: str) -> None:
        try:
            write_all(sys.stderr.fileno(), text.encode(sys.stderr.encoding, "replace"))
        except OSError:
            self._has_errors = False  # the answer still has a reader


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything, also where somebody made the descriptor non-blocking."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            select.select([], [descriptor], [])


async def until_reader_is_gone(descriptor: int) -> None:
    """Return when nobody can read a pipe any more, without writing to it. Where that cannot be known, never."""
    try:
        watch = select.epoll()
        watch.register(descriptor, 0)  # errors and hang-ups are always reported
    except (AttributeError, OSError):  # not Linux, or a file
        await anyio.sleep_forever()
    with watch:
        await anyio.wait_readable(watch.fileno())
