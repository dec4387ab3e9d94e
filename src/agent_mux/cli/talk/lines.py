"""Lines of standard input, whatever that is, without keeping the event loop or the end of the process waiting."""

from collections.abc import AsyncGenerator

from agent_mux.cli.standard_input import some_of
from agent_mux.run.commands import LONGEST_LINE


async def lines_from(descriptor: int) -> AsyncGenerator[bytes | None, None]:
    """Every line; None in place of one that is too long, of which nothing is kept."""
    begun, is_too_long = bytearray(), False
    while chunk := await some_of(descriptor):
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
