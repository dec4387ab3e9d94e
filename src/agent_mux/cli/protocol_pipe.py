"""Standard input and output as the two ends of a protocol: nothing else may be read from the one or reach the other."""

import os
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from anyio import to_thread

from agent_mux.cli.output import until_reader_is_gone, write_all
from agent_mux.cli.talk.lines import lines_from


@dataclass(frozen=True, slots=True)
class ProtocolPipe:
    """Descriptors that only the protocol has."""

    incoming: int
    outgoing: int

    def lines(self) -> AsyncGenerator[bytes | None, None]:
        """What the other side says; None in place of a line that is too long."""
        return lines_from(self.incoming)

    async def write(self, data: bytes) -> None:
        """All of it, however slowly it is read. Raises `OSError` when nobody reads it any more."""
        await to_thread.run_sync(write_all, self.outgoing, data, abandon_on_cancel=True)

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
        os.close(nothing)
        # Not closed: a thread that nothing can wake may still write.
