"""Read and write the standard streams without blocking the event loop or the end of the process."""

import os
import select
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager, suppress

import anyio
import msgspec
from anyio import lowlevel

from agent_mux.cli.output import wait_until_reader_closes

_READ_SIZE = 1 << 16


async def read_some(descriptor: int) -> bytes:
    """Wait for input and return it; empty at the end."""
    while True:
        try:
            await anyio.wait_readable(descriptor)
        except OSError:
            await lowlevel.checkpoint()  # a regular file: event loops cannot wait for it, and it is always readable
        try:
            return os.read(descriptor, _READ_SIZE)
        except BlockingIOError:
            continue  # another process has read the input
        except OSError:
            return b""  # the terminal is gone, or there is no standard input


async def read_lines(descriptor: int, longest: int) -> AsyncGenerator[bytes | None, None]:
    """Yield every line; None for a line longer than `longest` bytes, which is discarded."""
    begun, is_too_long = bytearray(), False
    while chunk := await read_some(descriptor):
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            begun += end
            yield None if is_too_long or len(begun) > longest else bytes(begun)
            begun, is_too_long = bytearray(), False
        begun += rest
        if len(begun) > longest:
            begun, is_too_long = bytearray(), True
    if begun or is_too_long:
        yield None if is_too_long else bytes(begun)


class TypedLines:
    """Lines that a person types at a terminal."""

    def __init__(self) -> None:
        self._partial = b""

    def discard(self) -> None:
        """Discard typed input, so that a key pressed before a question appears does not answer it."""
        import termios  # not on every platform

        self._partial = b""
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    async def next(self) -> str | None:
        """Return the next line, or None at the end of input. Can be cancelled, unlike `input()`."""
        while b"\n" not in self._partial:
            chunk = await read_some(sys.stdin.fileno())
            if not chunk:
                return None
            self._partial += chunk
        line, _, self._partial = self._partial.partition(b"\n")
        return line.decode("utf-8", "replace")


class ProtocolPipe(msgspec.Struct, frozen=True):
    """The descriptors of a protocol on standard input and output."""

    incoming: int
    outgoing: int

    def lines(self) -> AsyncGenerator[bytes | None, None]:
        """Return the incoming lines; None for a line that is too long."""
        from agent_mux.run.commands import LONGEST_LINE  # few runs read typed lines

        return read_lines(self.incoming, LONGEST_LINE)

    async def write(self, data: bytes) -> None:
        """Write all data, waiting for a slow reader. Raise `OSError` if the reader is gone."""
        # No thread: a thread that waits for a stalled reader would keep this process alive. A writable pipe accepts
        # PIPE_BUF bytes at once, so this never blocks either.
        rest = memoryview(data)
        while rest:
            try:
                await anyio.wait_writable(self.outgoing)
            except OSError:
                await lowlevel.checkpoint()  # a regular file: event loops cannot wait for it, and it is always writable
            with suppress(BlockingIOError):
                rest = rest[os.write(self.outgoing, rest[: select.PIPE_BUF]) :]

    async def until_gone(self) -> None:
        """Return when the reader has closed the pipe; never, if the platform cannot detect that."""
        await wait_until_reader_closes(self.outgoing)


@contextmanager
def protocol_pipe() -> Iterator[ProtocolPipe]:
    """Reserve standard input and output for a protocol, and restore them afterwards.

    Meanwhile standard input is empty, and everything printed goes to standard error.
    """
    sys.stdout.flush()
    theirs = (sys.stdin.fileno(), sys.stdout.fileno())
    pipe = ProtocolPipe(*(os.dup(descriptor) for descriptor in theirs))
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nothing, theirs[0])
        os.dup2(sys.stderr.fileno(), theirs[1])
        yield pipe
    finally:
        sys.stdout.flush()
        os.dup2(pipe.incoming, theirs[0])
        os.dup2(pipe.outgoing, theirs[1])
        for descriptor in (nothing, pipe.incoming, pipe.outgoing):
            os.close(descriptor)
