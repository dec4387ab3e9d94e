"""Streams."""

import os
import select
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import anyio
from anyio import lowlevel

from agent_mux.cli.output import wait_until_reader_closes
from agent_mux.run.commands import LONGEST_LINE

_READ_SIZE = 1 << 16


async def read_some(descriptor: int) -> bytes:
    """What there is, once there is something; empty at the end."""
    while True:
        try:
            await anyio.wait_readable(descriptor)
        except OSError:
            await lowlevel.checkpoint()  # a file: no event loop can wait for it, and it is always readable
        try:
            return os.read(descriptor, _READ_SIZE)
        except BlockingIOError:
            continue  # somebody else has read it
        except OSError:
            return b""  # a terminal that is gone, or no standard input at all


async def read_lines(descriptor: int, longest: int) -> AsyncGenerator[bytes | None, None]:
    """Every line; None in place of one that has more than `longest` bytes, of which nothing is kept."""
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
    """What a person types at a terminal, line by line."""

    def __init__(self) -> None:
        self._partial = b""

    def discard(self) -> None:
        """A key pressed before the question was there must not answer it."""
        import termios  # not on every platform

        self._partial = b""
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    async def next(self) -> str | None:
        """One line; None at the end of the input. Can be cancelled, unlike `input()`."""
        while b"\n" not in self._partial:
            chunk = await read_some(sys.stdin.fileno())
            if not chunk:
                return None
            self._partial += chunk
        line, _, self._partial = self._partial.partition(b"\n")
        return line.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class ProtocolPipe:
    """Descriptors that only the protocol has."""

    incoming: int
    outgoing: int

    def lines(self) -> AsyncGenerator[bytes | None, None]:
        """What the other side says; None in place of a line that is too long."""
        return read_lines(self.incoming, LONGEST_LINE)

    async def write(self, data: bytes) -> None:
        """All of it, however slowly it is read. Raises `OSError` when nobody reads it any more."""
        # No thread: one that waits for a reader who never reads would keep this process alive. A pipe that can be
        # written takes this much at once, so that nothing waits here either.
        rest = memoryview(data)
        while rest:
            try:
                await anyio.wait_writable(self.outgoing)
            except OSError:
                await lowlevel.checkpoint()  # a file: no event loop can wait for it, and it can always be written
            with suppress(BlockingIOError):
                rest = rest[os.write(self.outgoing, rest[: select.PIPE_BUF]) :]

    async def until_gone(self) -> None:
        """Return when nobody can read any more; where that cannot be known, never."""
        await wait_until_reader_closes(self.outgoing)


@contextmanager
def protocol_pipe() -> Iterator[ProtocolPipe]:
    """Take standard input and output for a protocol, and give them back.

    Meanwhile nothing is to be read on standard input, and what is printed goes to standard error.
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
