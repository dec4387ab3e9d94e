"""Standard input, whatever that is, without keeping the event loop or the end of the process waiting."""

import os
import sys
from collections.abc import AsyncGenerator

import anyio
from anyio import lowlevel

_READ_SIZE = 1 << 16


async def some_of(descriptor: int) -> bytes:
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


async def lines_from(descriptor: int, longest: int) -> AsyncGenerator[bytes | None, None]:
    """Every line; None in place of one that has more than `longest` bytes, of which nothing is kept."""
    begun, is_too_long = bytearray(), False
    while chunk := await some_of(descriptor):
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
        self._begun = b""

    def forget(self) -> None:
        """A key pressed before the question was there must not answer it."""
        import termios  # not on every platform

        self._begun = b""
        termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    async def next(self) -> str | None:
        """One line; None at the end of the input. Can be cancelled, unlike `input()`."""
        while b"\n" not in self._begun:
            chunk = await some_of(sys.stdin.fileno())
            if not chunk:
                return None
            self._begun += chunk
        line, _, self._begun = self._begun.partition(b"\n")
        return line.decode("utf-8", "replace")
