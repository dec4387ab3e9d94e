"""Lines of standard input, whatever that is, without keeping the event loop or the end of the program waiting."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from agent_loop.cli.commands import LONGEST_LINE
from agent_mux.cli import streams


async def lines_from(descriptor: int, longest: int = LONGEST_LINE) -> AsyncGenerator[bytes | None, None]:
    """Every line that is not blank; None in place of one that is too long, of which nothing is kept."""
    async with aclosing(streams.read_lines(descriptor, longest)) as lines:
        async for line in lines:
            if line is None or line.strip():
                yield line


async def read_all(descriptor: int, most: int = LONGEST_LINE) -> bytes:
    """Everything until the end, up to `most` bytes and one more: whoever gets more was given too much."""
    whole = bytearray()
    while len(whole) <= most and (chunk := await streams.read_some(descriptor)):
        whole += chunk
    return bytes(whole)
