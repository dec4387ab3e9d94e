"""Lines of standard input, whatever that is, without keeping the event loop or the end of the process waiting."""

import os
from collections.abc import AsyncGenerator

import anyio
from anyio import lowlevel

from agent_mux.run.commands import LONGEST_LINE

_READ_SIZE = 1 << 16


async def lines_from(descriptor: int) -> AsyncGenerator[bytes | None, None]:
    """Every line; None in place of one that is too long, of which nothing is kept."""
    begun, is_too_long = bytearray(), False
    while chunk := await _read(descriptor):
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            begun += end
            yield None if is_too_long or len(begun) > LONGEST_LINE else bytes(begun)
            begun, is_too_long = bytearray(), False
        begun += rest
        if len(begun) > LONGEST_LINE:
            begun, is_too_long = bytearray(), True
    if begun or is_too_long:
        yield None if is_too_long else bytes(begun)


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
            return b""  # a terminal that is gone
