"""What one process of the agent prints, on its way to the records: secrets hidden, silence noticed."""

import time
from collections.abc import Awaitable, Callable

import anyio

from agent_mux.journal.records import Kind
from agent_mux.process.child import Child
from agent_mux.redaction import RedactedStream, Redactor

QUIET_LOOK = 0.02  # seconds between two looks whether the agent is quiet
LONGEST_HOLD = 0.05  # seconds that the possible beginning of a secret waits for its rest, where there are no lines
_STREAMS = (Kind.STDOUT, Kind.STDERR)


class AgentOutput:
    """Reads both streams of a process to their ends."""

    def __init__(self, redactor: Redactor, record: Callable[[Kind, bytes], None]) -> None:
        self._record = record
        self._streams = {kind: RedactedStream(redactor) for kind in _STREAMS}
        self._open = len(_STREAMS)
        self._held = anyio.Event()
        self._last = time.monotonic()
        """When something was printed last, or when waiting for it began."""
        self.complete = anyio.Event()

    async def read_stdout(self, child: Child) -> None:
        """Until its end."""
        await self._read(Kind.STDOUT, child.read_stdout)

    async def read_stderr(self, child: Child) -> None:
        """Until its end."""
        await self._read(Kind.STDERR, child.read_stderr)

    async def _read(self, kind: Kind, stream: Callable[[Callable[[bytes], None]], Awaitable[None]]) -> None:
        redacted = self._streams[kind]

        def take(chunk: bytes) -> None:
            self._last = time.monotonic()
            clean = redacted.feed(chunk)
            if clean:
                self._record(kind, clean)
            if redacted.is_holding:
                self._held.set()

        await stream(take)
        self.release(kind)
        self._open -= 1
        if not self._open:
            self.complete.set()

    def release(self, *kinds: Kind) -> None:
        """What was held back because it could begin a secret goes on its way: of these streams, or of both."""
        for kind in kinds or _STREAMS:
            rest = self._streams[kind].flush()
            if rest:
                self._record(kind, rest)

    async def release_soon(self) -> None:
        """For protocols without lines: an agent may wait for an answer to what is held back. Until cancelled."""
        while True:
            await self._held.wait()
            self._held = anyio.Event()
            await anyio.sleep(LONGEST_HOLD)
            self.release(Kind.STDOUT)

    async def wait_for_silence(self, seconds: float, is_excused: Callable[[], bool]) -> None:
        """Until nothing was printed for so long. Time in which the agent `is_excused` does not count."""
        while True:
            silent = time.monotonic() - self._last
            if is_excused():
                self._last = time.monotonic()
            elif silent >= seconds:
                return
            await anyio.sleep(max(min(seconds - silent, seconds), 0.001))

    async def notice_pauses(self, seconds: float, notice: Callable[[], None]) -> None:
        """Tell whenever something was printed and then nothing more for a while. Until cancelled."""
        told = 0.0
        while True:
            last = self._last
            silent = time.monotonic() - last
            if silent >= seconds and last > told:
                told = last
                self.release()
                notice()
            await anyio.sleep(max(seconds - silent, QUIET_LOOK) if last > told else QUIET_LOOK)
