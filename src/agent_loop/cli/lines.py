"""Lines of standard input, whatever that is, without keeping the event loop or the end of the program waiting."""

import os
from collections.abc import AsyncGenerator

import anyio
from anyio import lowlevel

from agent_loop.cli.commands import LONGEST_LINE

_READ_SIZE = 1 << 16


async def lines_from(descriptor: int, longest: int = LONGEST_LINE) -> AsyncGenerator[bytes | None, None]:
    """Every line that is not blank; None in place of one that is too long, of which nothing is kept."""
    begun, is_too_long = bytearray(), False
    while chunk := await _read(descriptor):
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            begun += end
            if is_too_long or len(begun) > longest:
                yield None
            elif begun.strip():
                yield bytes(begun)
            begun, is_too_long = bytearray(), False
        begun += rest
        if len(begun) > longest:
            begun, is_too_long = bytearray(), True
    if is_too_long:
        yield None
    elif begun.strip():
        yield bytes(begun)


async def read_all(descriptor: int, most: int = LONGEST_LINE) -> bytes:
    """Everything until the end, up to `most` bytes and one more: whoever gets more was given too much."""
    whole = bytearray()
    while len(whole) <= most and (chunk := await _read(descriptor)):
        whole += chunk
    return bytes(whole)


async def _read(descriptor: int) -> bytes:
    """What there is; empty at the end."""
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
