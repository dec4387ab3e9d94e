"""Standard input and output as the two ends of a protocol: nothing else may be read from the one or reach the other."""

import os
import select
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import anyio
from anyio import lowlevel

from agent_mux.cli.output import until_reader_is_gone
from agent_mux.cli.standard_input import lines_from
from agent_mux.run.commands import LONGEST_LINE


@dataclass(frozen=True, slots=True)
class ProtocolPipe:
    """Descriptors that only the protocol has."""

    incoming: int
    outgoing: int

    def lines(self) -> AsyncGenerator[bytes | None, None]:
        """What the other side says; None in place of a line that is too long."""
        return lines_from(self.incoming, LONGEST_LINE)

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
        await until_reader_is_gone(self.outgoing)


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
