"""Buffer the output of a run and write it to standard output and standard error.

A reader that stops reading (a pager, a suspended terminal) must not stop the agent: a thread writes, and chunks that
arrive meanwhile form one batch. Unread events wait in the run's window and journal, not here.
"""

import os
import select
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import Literal, NamedTuple, Protocol

import anyio
from anyio import to_thread

from agent_mux.cli.terminal import Palette, TerminalSize, is_terminal, sanitize, size_of


class Chunk(NamedTuple):
    """A text and the stream that it goes to."""

    stream: Literal["out", "err"]
    text: str


class Screen(NamedTuple):
    """The properties of the terminal or pipe behind the two streams."""

    palette: Palette = Palette(enabled=False)
    """Styles for standard error."""
    width: int = 100
    out_is_terminal: bool = False
    """Whether to sanitize standard output; otherwise it is written verbatim."""
    shared: bool = False
    """Whether both streams share a terminal, so that one must not write into an unfinished line of the other."""
    verbose: bool = False
    """Whether to show debug notes."""
    encoding: str | None = "utf-8"
    """The encoding of standard error; None if it is unknown."""
    asks: bool = False
    """Whether approvals and questions are shown in full by a prompt, so that the renderer skips them."""


class OutputBuffer:
    """Collects chunks for both streams and keeps their lines apart on a shared terminal."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self._chunks: list[Chunk] = []
        self._out_open = False
        """Whether standard output is in the middle of a line."""
        self._err_open = False

    def out(self, text: str) -> None:
        """Add a fragment of the answer."""
        if self.screen.out_is_terminal:
            text = sanitize(text)
        if not text:
            return
        if self.screen.shared:
            self.close_err()
        self._chunks.append(Chunk("out", text))
        self._out_open = not text.endswith("\n")

    def styled_out(self, text: str) -> None:
        """Add whole lines of the answer that are sanitized and may have styles."""
        self.close_err()
        self.close_out()
        self._chunks.append(Chunk("out", text))

    def err(self, text: str) -> None:
        """Add a sanitized fragment of a line on standard error."""
        if not text:
            return
        if self._out_open and self.screen.shared:
            self._chunks.append(Chunk("err", "\n"))
            self._out_open = False
        self._chunks.append(Chunk("err", text))
        self._err_open = not text.endswith("\n")

    def line(self, text: str) -> None:
        """Add a sanitized line on standard error."""
        self.close_err()
        self.err(text + "\n")

    def close_out(self) -> None:
        """End an unfinished line on standard output."""
        if self._out_open:
            self._chunks.append(Chunk("out", "\n"))
            self._out_open = False

    def close_err(self) -> None:
        """End an unfinished line on standard error."""
        if self._err_open:
            self._chunks.append(Chunk("err", "\n"))
            self._err_open = False

    def take(self) -> list[Chunk]:
        """Return the chunks collected since the last call."""
        chunks, self._chunks = self._chunks, []
        return chunks


class FooterArea(Protocol):
    """Lines below the output, which are erased before other output and drawn again below it."""

    def set_lines(self, lines: Sequence[str]) -> bool:
        """Set the lines. Return whether the terminal shows other ones."""
        ...

    def line_begun(self) -> None:
        """Note that the terminal is inside of a line, behind a prompt that was written before."""
        ...

    def line_ended(self) -> None:
        """Note that the terminal is at the start of a line."""
        ...

    def around(self, chunks: Iterable[Chunk], size: TerminalSize) -> list[Chunk]:
        """Return the chunks with what erases the footer before them and draws it below them."""
        ...


BUFFER_LIMIT = 1 << 18  # characters; the producer waits until fewer are queued


class OutputWriter:
    """Writes chunks in order. `broken` is set when standard output fails; `error` is the reason."""

    def __init__(self, encoding: str | None = None) -> None:
        """Initialize an empty queue. `encoding` overrides the encoding of standard output."""
        self._encoding = encoding
        self._queued: list[Chunk] = []
        self._size = 0
        self._writing = False
        self._has_chunks = anyio.Event()
        self._progress = anyio.Event()
        self._stderr_is_open = True
        self._footer: FooterArea | None = None
        self._shows_footer = True
        self._is_held = False
        self._at_line_start = True
        self._redirect: Callable[[Literal["out", "err"], str], None] | None = None
        self.broken = anyio.Event()
        self.error: OSError | None = None

    def redirect_to(self, write: Callable[[Literal["out", "err"], str], None]) -> None:
        """Send terminal output to `write`, in a thread, instead of the streams: a line editor shares the terminal."""
        self._redirect = write

    def add(self, chunks: Iterable[Chunk]) -> None:
        """Queue chunks for writing in the background."""
        for chunk in chunks:
            self._queued.append(chunk)
            self._size += len(chunk.text)
        if self._queued and not self._is_held:
            self._has_chunks.set()

    def attach_footer(self, footer: FooterArea) -> None:
        """Keep a footer below the output, also if a prompt was written before."""
        if not self._at_line_start:
            footer.line_begun()
        self._footer = footer

    @contextmanager
    def without_footer(self) -> Iterator[None]:
        """Remove the footer, and ignore changes of it meanwhile. The next change shows it again."""
        self.set_footer([])
        self._shows_footer = False
        try:
            yield
        finally:
            self._shows_footer = True

    @contextmanager
    def held(self) -> Iterator[None]:
        """Write nothing meanwhile, as a person types a line: chunks stay in the queue."""
        self._is_held = True
        try:
            yield
        finally:
            self._release()

    def _release(self) -> None:
        self._is_held = False
        if self._queued:
            self._has_chunks.set()

    def set_footer(self, lines: Sequence[str]) -> None:
        """Show these lines below the output of the terminal; no lines remove the footer."""
        if self._footer is not None and self._shows_footer and self._footer.set_lines(lines):
            self._has_chunks.set()

    def line_ended(self) -> None:
        """Note that a person pressed Enter, so that the terminal is at the start of a line."""
        self._at_line_start = True
        if self._footer is not None:
            self._footer.line_ended()

    async def wait_for_capacity(self) -> None:
        """Wait until the queue is below its limit."""
        while self._size > BUFFER_LIMIT and self.error is None:
            await self._progress.wait()

    async def drain(self) -> None:
        """Wait until everything is written, also what was held."""
        self._release()
        while (self._queued or self._writing or self._has_chunks.is_set()) and self.error is None:
            await self._progress.wait()

    async def run(self) -> None:
        """Write queued chunks until cancelled."""
        while True:
            await self._has_chunks.wait()
            self._has_chunks = anyio.Event()
            batch, self._queued, self._size = self._queued, [], 0
            self._writing = True
            if batch:
                self._at_line_start = batch[-1].text.endswith("\n")
            if self._footer is not None:
                batch = self._footer.around(batch, size_of(sys.stderr))
            try:
                await to_thread.run_sync(self._write, batch, abandon_on_cancel=True)
            except OSError as error:
                self._fail(error)
            self._writing = False
            self._notify_progress()

    async def watch(self, descriptor: int) -> None:
        """Report a closed standard output even while nothing is written."""
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
            self._stderr_is_open = False  # standard output may still have a reader


def write_all(descriptor: int, data: bytes) -> None:
    """Write all data, even if the descriptor is non-blocking."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            select.select([], [descriptor], [])


async def wait_until_reader_closes(descriptor: int) -> None:
    """Return when the reader of a pipe has closed it, without writing; never, if the platform cannot detect that."""
    try:
        watch = select.epoll()
        watch.register(descriptor, 0)  # errors and hang-ups are always reported
    except (AttributeError, OSError):  # not Linux, or a file
        await anyio.sleep_forever()
    with watch:
        await anyio.wait_readable(watch.fileno())


async def leave_without_reader() -> None:
    """Raise `BrokenPipeError` when the reader of standard output is gone, as the next write would."""
    await wait_until_reader_closes(sys.stdout.fileno())
    raise BrokenPipeError
