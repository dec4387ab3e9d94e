"""Input, output and termination of an agent's process.

Standard input is written in order without blocking the sender. Output is redacted and passed to the recorder. Processes
are ended through the agent's protocol, then with SIGTERM, then with SIGKILL; every wait is bounded.
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

QUIET_POLL_INTERVAL = 0.02  # seconds between two checks whether the agent is quiet
MAX_HOLD = 0.05  # seconds to hold back a possible start of a secret, in protocols without lines
DRAIN_TIMEOUT = 1.0  # seconds for the rest of the output after the agent exits: a grandchild can hold the pipe open
LEFTOVER_GRACE = 0.5  # seconds from SIGTERM to SIGKILL for processes that the agent left running
PROTOCOL_GRACE = 1.0  # seconds for the agent to exit after the cancellation in its own protocol
POLL_INTERVAL = 0.02  # seconds between two scans of /proc
_STREAMS = (Kind.STDOUT, Kind.STDERR)


class StdinWriter:
    """An unbounded queue for standard input: an agent that does not read must not block the sender."""

    def __init__(
        self, on_written: Callable[[bytes], None], on_lost: Callable[[bytes], None], unmask: Callable[[bytes], bytes]
    ) -> None:
        """Create an empty queue.

        Args:
            on_written: Called with data after it was written, with placeholders for secrets.
            on_lost: Called with data that could not be written, because the agent no longer reads.
            unmask: Returns data with the secrets in place of the placeholders.
        """
        self._on_written = on_written
        self._on_lost = on_lost
        self._unmask = unmask
        self.is_closed = False
        """Whether nothing more can be sent."""
        self._queue: deque[WriteStdin | CloseStdin] = deque()
        self._changed = anyio.Event()

    def enqueue(self, effect: WriteStdin | CloseStdin) -> None:
        """Send this after everything that waits."""
        self.is_closed = self.is_closed or isinstance(effect, CloseStdin)
        self._queue.append(effect)
        self._changed.set()

    async def write_queue(self, child: Child) -> None:
        """Write what is enqueued, until cancelled."""
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            while self._queue:
                match self._queue.popleft():
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
            # The agent reads no more input. Its exit shows the consequence; the journal has what it did read.
            self.is_closed = True
            child.close_stdin()
            self._on_lost(data)
        else:
            self._on_written(data)


class OutputReader:
    """Reads both output streams of a process to their ends."""

    def __init__(self, redactor: Redactor, record: Callable[[Kind, bytes], object]) -> None:
        self._record = record
        self._streams = {kind: RedactedStream(redactor) for kind in _STREAMS}
        self._open_streams = len(_STREAMS)
        self._holding = anyio.Event()
        self._last_output_at = time.monotonic()
        """Time of the last output, or of the start of the wait for it."""
        self.complete = anyio.Event()

    async def read_stdout(self, child: Child) -> None:
        """Read standard output to its end."""
        await self._read(Kind.STDOUT, child.read_stdout)

    async def read_stderr(self, child: Child) -> None:
        """Read standard error to its end."""
        await self._read(Kind.STDERR, child.read_stderr)

    async def _read(self, kind: Kind, stream: Callable[[Callable[[bytes], None]], Awaitable[None]]) -> None:
        redacted = self._streams[kind]

        def receive(chunk: bytes) -> None:
            self._last_output_at = time.monotonic()
            clean = redacted.feed(chunk)
            if clean:
                self._record(kind, clean)
            if clean is not chunk and redacted.is_holding:
                self._holding.set()

        await stream(receive)
        self.flush_held(kind)
        self._open_streams -= 1
        if not self._open_streams:
            self.complete.set()

    def flush_held(self, *kinds: Kind) -> None:
        """Record output of these streams, or of both, that was held back as the possible start of a secret."""
        for kind in kinds or _STREAMS:
            rest = self._streams[kind].flush()
            if rest:
                self._record(kind, rest)

    async def flush_held_soon(self) -> None:
        """Flush output that is held back after a short time, until cancelled.

        For protocols without lines: an agent may wait for a response to the part that is held back.
        """
        while True:
            await self._holding.wait()
            self._holding = anyio.Event()
            await anyio.sleep(MAX_HOLD)
            self.flush_held(Kind.STDOUT)

    async def wait_for_silence(self, seconds: float, is_excused: Callable[[], bool]) -> None:
        """Return after so many seconds without output. Time for which the agent `is_excused` does not count."""
        while True:
            silent = time.monotonic() - self._last_output_at
            if is_excused():
                self._last_output_at = time.monotonic()
            elif silent >= seconds:
                return
            await anyio.sleep(max(min(seconds - silent, seconds), 0.001))

    async def watch_for_quiet(self, seconds: float, on_quiet: Callable[[], None]) -> None:
        """Call `on_quiet` each time that output was followed by so many seconds without output, until cancelled."""
        reported = 0.0
        while True:
            last = self._last_output_at
            silent = time.monotonic() - last
            if silent >= seconds and last > reported:
                reported = last
                self.flush_held()
                on_quiet()
            await anyio.sleep(max(seconds - silent, QUIET_POLL_INTERVAL) if last > reported else QUIET_POLL_INTERVAL)


async def finishes_within(seconds: float, wait: Awaitable[Any]) -> bool:
    """Wait, but not longer than `seconds`. Returns False if the time was exceeded."""
    with anyio.move_on_after(seconds) as scope:
        await wait
    return not scope.cancelled_caught


async def terminate_agent(child: Child, *, grace: float, was_cancelled: bool) -> None:
    """Wait for the agent to exit, and terminate it if it does not, within `grace` seconds in total.

    `was_cancelled`: the agent received a cancellation in its own protocol. SIGTERM follows after half of the time at
    the
    latest.
    """
    spent = min(PROTOCOL_GRACE, grace / 2) if was_cancelled else 0.0
    if was_cancelled and await finishes_within(spent, child.wait()):
        return
    child.signal_group(signal.SIGTERM)
    if not await finishes_within(grace - spent, child.wait()):
        child.signal_all(signal.SIGKILL)


async def drain_output(child: Child, output_complete: anyio.Event) -> list[str]:
    """Wait briefly for the rest of an exited agent's output, and terminate what it left running.

    Returns the command lines of the processes that it left running.
    """
    left: list[str] = []
    await finishes_within(DRAIN_TIMEOUT, output_complete.wait())
    if child.has_survivors() or not output_complete.is_set():
        left = child.survivors()
        await _terminate_leftovers(child)
        await finishes_within(DRAIN_TIMEOUT, output_complete.wait())
    while child.has_unread_file and not output_complete.is_set():  # it grows no more, and its rest may be long
        await finishes_within(DRAIN_TIMEOUT, output_complete.wait())
    return left


async def _terminate_leftovers(child: Child) -> None:
    child.signal_all(signal.SIGTERM)
    deadline = time.monotonic() + LEFTOVER_GRACE
    while child.has_survivors() and time.monotonic() < deadline:  # noqa: ASYNC110  # the end of a process that is not our child is not reported
        await anyio.sleep(POLL_INTERVAL)
    child.signal_all(signal.SIGKILL)
