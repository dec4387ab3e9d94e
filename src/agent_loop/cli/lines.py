"""Lines of standard input, whatever that is, without keeping the event loop or the end of the program waiting."""

from collections.abc import AsyncGenerator

from agent_loop.cli.commands import LONGEST_LINE
from agent_mux.cli.standard_input import some_of


async def lines_from(descriptor: int, longest: int = LONGEST_LINE) -> AsyncGenerator[bytes | None, None]:
    """Every line that is not blank; None in place of one that is too long, of which nothing is kept."""
    begun, is_too_long = bytearray(), False
    while chunk := await some_of(descriptor):
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
    while len(whole) <= most and (chunk := await some_of(descriptor)):
        whole += chunk
    return bytes(whole)
