"""Output."""

import os
import select
import sys
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Literal, NamedTuple

import anyio
from anyio import to_thread

from agent_mux.cli.terminal import Palette, is_terminal, sanitize


class Chunk(NamedTuple):
    """A text and where it goes."""

    stream: Literal["out", "err"]
    text: str


class Screen(NamedTuple):
    """What is known about where the chunks go."""

    palette: Palette = Palette(enabled=False)
    """For standard error."""
    width: int = 100
    out_is_terminal: bool = False
    """Then standard output is sanitized; otherwise it is verbatim."""
    shared: bool = False
    """Both streams go to one terminal: a line of one must not begin in the middle of a line of the other."""
    verbose: bool = False
    """Show the mux's own notes, too."""
    asks: bool = False
    """A person is asked: what is asked is shown there, whole."""


class OutputBuffer:
    """Collects chunks. Text of the answer goes to `out`, lines of everything else to `line`."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self._chunks: list[Chunk] = []
        self._out_open = False
        """Standard output is in the middle of a line."""
        self._err_open = False

    def out(self, text: str) -> None:
        """A fragment of the answer."""
        if self.screen.out_is_terminal:
            text = sanitize(text)
        if not text:
            return
        if self.screen.shared:
            self.close_err()
        self._chunks.append(Chunk("out", text))
        self._out_open = not text.endswith("\n")

    def err(self, text: str) -> None:
        """A fragment of a line on standard error. The caller has sanitized it."""
        if not text:
            return
        if self._out_open and self.screen.shared:
            self._chunks.append(Chunk("err", "\n"))
            self._out_open = False
        self._chunks.append(Chunk("err", text))
        self._err_open = not text.endswith("\n")

    def line(self, text: str) -> None:
        """A whole line on standard error. The caller has sanitized it."""
        self.close_err()
        self.err(text + "\n")

    def close_out(self) -> None:
        """End the line of the answer."""
        if self._out_open:
            self._chunks.append(Chunk("out", "\n"))
            self._out_open = False

    def close_err(self) -> None:
        """End the line on standard error."""
        if self._err_open:
            self._chunks.append(Chunk("err", "\n"))
            self._err_open = False

    def take(self) -> list[Chunk]:
        """What there is to write since the last call."""
        chunks, self._chunks = self._chunks, []
        return chunks


BUFFER_LIMIT = 1 << 18  # characters; more is left where it comes from until these are written


class OutputWriter:
    """Writes chunks in order. `broken` is set when standard output cannot be written any more; `error` says why."""

    def __init__(self, encoding: str | None = None) -> None:
        """`encoding`: instead of that of the streams."""
        self._encoding = encoding
        self._queued: list[Chunk] = []
        self._size = 0
        self._writing = False
        self._has_chunks = anyio.Event()
        self._progress = anyio.Event()
        self._stderr_is_open = True
        self._redirect: Callable[[Literal["out", "err"], str], None] | None = None
        self.broken = anyio.Event()
        self.error: OSError | None = None

    def redirect_to(self, write: Callable[[Literal["out", "err"], str], None]) -> None:
        """What goes to a terminal is given to this, in a thread: it shares the terminal with what is typed there."""
        self._redirect = write

    def add(self, chunks: Iterable[Chunk]) -> None:
        """Write these soon."""
        for chunk in chunks:
            self._queued.append(chunk)
            self._size += len(chunk.text)
        if self._queued:
            self._has_chunks.set()

    async def wait_for_capacity(self) -> None:
        """Wait until not too much is waiting to be written."""
        while self._size > BUFFER_LIMIT and self.error is None:
            await self._progress.wait()

    async def drain(self) -> None:
        """Wait until everything is written."""
        while (self._queued or self._writing) and self.error is None:
            await self._progress.wait()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._has_chunks.wait()
            self._has_chunks = anyio.Event()
            batch, self._queued, self._size = self._queued, [], 0
            self._writing = True
            try:
                await to_thread.run_sync(self._write, batch, abandon_on_cancel=True)
            except OSError as error:
                self._fail(error)
            self._writing = False
            self._notify_progress()

    async def watch(self, descriptor: int) -> None:
        """Notice that nobody can read standard output any more, also while there is nothing to write."""
        await wait_until_reader_closes(descriptor)
        self._fail(BrokenPipeError())

    def _fail(self, error: OSError) -> None:
        self.error = self.error or error
        self.broken.set()
        self._notify_progress()

    def _notify_progress(self) -> None:
        progress, self._progress = self._progress, anyio.Event()
        progress.set()

    def _write(self, batch: list[Chunk]) -> None:
        for stream, chunks in groupby(batch, key=lambda chunk: chunk.stream):
            text = "".join(chunk.text for chunk in chunks)
            if self._redirect is not None and (stream == "err" or is_terminal(sys.stdout)):
                self._redirect(stream, text)
            elif stream == "out" and self.error is None:
                write_all(sys.stdout.fileno(), text.encode(self._encoding or sys.stdout.encoding, "replace"))
            elif stream == "err" and self._stderr_is_open:
                self._write_error(text)

    def _write_error(self, text: str) -> None:
        try:
            write_all(sys.stderr.fileno(), text.encode(sys.stderr.encoding, "replace"))
        except OSError:
            self._stderr_is_open = False  # the answer still has a reader


def write_all(descriptor: int, data: bytes) -> None:
    """Write everything, also where somebody made the descriptor non-blocking."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            select.select([], [descriptor], [])


async def wait_until_reader_closes(descriptor: int) -> None:
    """Return when nobody can read a pipe any more, without writing to it. Where that cannot be known, never."""
    try:
        watch = select.epoll()
        watch.register(descriptor, 0)  # errors and hang-ups are always reported
    except (AttributeError, OSError):  # not Linux, or a file
        await anyio.sleep_forever()
    with watch:
        await anyio.wait_readable(watch.fileno())
