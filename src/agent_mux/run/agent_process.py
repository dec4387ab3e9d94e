"""What is on its way to the agent's standard input: written in order, however slowly the agent reads.

What one process of the agent prints, on its way to the records: secrets hidden, silence noticed.


Ending the processes of a run: politely, then firmly, then all of them. Every wait is bounded.
"""

import signal
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from agent_mux.journal.records import Kind
from agent_mux.process.child import Child
from agent_mux.redaction import RedactedStream, Redactor
from agent_mux.sdk.codec import CloseStdin, WriteStdin


class StdinWriter:
    """A queue without a limit: an agent that does not read must not stop the one who sends."""

    def __init__(
        self, on_written: Callable[[bytes], None], on_lost: Callable[[bytes], None], unmask: Callable[[bytes], bytes]
    ) -> None:
        """`on_lost`: the agent did not take this; it reads no more.

        `unmask` makes what the codec wrote into what the agent gets: with its secrets.
        """
        self._on_written = on_written
        self._on_lost = on_lost
        self._unmask = unmask
        self.is_closed = False
        """Nothing more can be sent."""
        self._waiting: deque[WriteStdin | CloseStdin] = deque()
        self._news = anyio.Event()

    def put(self, effect: WriteStdin | CloseStdin) -> None:
        """Send this after all that waits."""
        self.is_closed = self.is_closed or isinstance(effect, CloseStdin)
        self._waiting.append(effect)
        self._news.set()

    async def deliver(self, child: Child) -> None:
        """Write what comes, until cancelled."""
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            while self._waiting:
                match self._waiting.popleft():
                    case WriteStdin(data):
                        await self._write(child, data)
                    case CloseStdin():
                        child.close_stdin()

    async def _write(self, child: Child, data: bytes) -> None:
        if not child.is_stdin_open:
            self._on_lost(data)
            return
        try:
            await child.write(self._unmask(data))
        except OSError:
            # The agent reads no more. What that means shows in how it ends; the journal has what it did read.
            self.is_closed = True
            child.close_stdin()
            self._on_lost(data)
        else:
            self._on_written(data)


QUIET_LOOK = 0.02  # seconds between two looks whether the agent is quiet
LONGEST_HOLD = 0.05  # seconds that the possible beginning of a secret waits for its rest, where there are no lines
_STREAMS = (Kind.STDOUT, Kind.STDERR)


class OutputReader:
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


DRAIN_TIMEOUT = 1.0  # seconds for the rest of the output after the agent exits: a grandchild can hold the pipe open
LEFTOVER_GRACE = 0.5  # seconds between SIGTERM and SIGKILL for what the agent left running
PROTOCOL_GRACE = 1.0  # seconds at most for the agent to leave after it was told in its own protocol
LOOK_EVERY = 0.02  # seconds between two looks at /proc


async def finishes_within(seconds: float, wait: Awaitable[Any]) -> bool:
    """Wait, but not longer than this."""
    with anyio.move_on_after(seconds) as scope:
        await wait
    return not scope.cancelled_caught


async def terminate_agent(child: Child, *, grace: float, was_told: bool) -> None:
    """The agent was asked to leave, in its own protocol (`was_told`) or not. See that it does, within `grace` seconds.

    All of it together takes one grace period: SIGTERM comes half way at the latest.
    """
    told = min(PROTOCOL_GRACE, grace / 2) if was_told else 0.0
    if was_told and await finishes_within(told, child.wait()):
        return
    child.signal_group(signal.SIGTERM)
    if not await finishes_within(grace - told, child.wait()):
        child.signal_all(signal.SIGKILL)


async def drain_output(child: Child, output_complete: anyio.Event) -> None:
    """The agent is gone: wait a moment for the rest of its output, and end what it left running."""
    await finishes_within(DRAIN_TIMEOUT, output_complete.wait())
    if child.has_survivors() or not output_complete.is_set():
        await _end_leftovers(child)
        await finishes_within(DRAIN_TIMEOUT, output_complete.wait())


async def _end_leftovers(child: Child) -> None:
    child.signal_all(signal.SIGTERM)
    deadline = time.monotonic() + LEFTOVER_GRACE
    while child.has_survivors() and time.monotonic() < deadline:  # noqa: ASYNC110  # nobody tells when a stranger ends
        await anyio.sleep(LOOK_EVERY)
    child.signal_all(signal.SIGKILL)
