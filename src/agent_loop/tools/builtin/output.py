"""Output of a command: the last bytes of each stream, and updates while the command runs."""

from collections import deque

import anyio

from agent_loop.tools.effects import OutputStream
from agent_loop.tools.tool import OutputCallback

MAX_KEPT = 16 << 20
"""The most bytes that are kept of each stream if there is no other limit."""
EFFECT_BYTES = 32_768
"""The bytes of each stream in the effect `CommandRan`."""
UPDATE_BYTES = 16_384
"""The bytes of one stream in one update. Faster output is cut at its head in the update, but not in the result."""
UPDATE_EVERY = 0.1
"""The shortest time between two updates in seconds."""
_CONTINUATION = range(0x80, 0xC0)
"""The values of bytes that are not the first of a UTF-8 character."""


class OutputTail:
    """The last `limit` bytes of a text, and the number of bytes dropped before them. Characters are never split."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: deque[bytes] = deque()
        self._kept = 0
        self.dropped = 0
        """The number of dropped bytes."""

    def __bool__(self) -> bool:
        return bool(self._kept or self.dropped)

    def add(self, text: str) -> None:
        """Append text and drop the oldest bytes beyond the limit."""
        piece = text.encode(errors="replace")
        self._pieces.append(piece)
        self._kept += len(piece)
        while self._kept > self._limit:
            self._drop(self._kept - self._limit)

    def _drop(self, count: int) -> None:
        first = self._pieces.popleft()
        rest = _from_character(first, count)
        if rest:
            self._pieces.appendleft(rest)
        self._kept -= len(first) - len(rest)
        self.dropped += len(first) - len(rest)

    @property
    def text(self) -> str:
        """The kept text, without a note about dropped bytes."""
        return b"".join(self._pieces).decode()

    def take(self) -> str:
        """Return the kept text with a note about dropped bytes, and clear it."""
        text = with_truncation_note(self.text, self.dropped)
        self._pieces.clear()
        self._kept = self.dropped = 0
        return text


class CapturedOutput:
    """The output of one command, within limits."""

    def __init__(self, max_output_bytes: int) -> None:
        """`max_output_bytes` is the limit of the result; 0 means `MAX_KEPT`."""
        self.limit = max_output_bytes or MAX_KEPT
        self.stdout = OutputTail(max(self.limit, EFFECT_BYTES))
        self.stderr = OutputTail(max(self.limit, EFFECT_BYTES))
        self._pending: dict[OutputStream, OutputTail] = {
            "stdout": OutputTail(UPDATE_BYTES),
            "stderr": OutputTail(UPDATE_BYTES),
        }
        self._changed = anyio.Event()
        self._finished = anyio.Event()

    def on_stdout(self, text: str) -> None:
        """Append text to standard output."""
        self._add(self.stdout, "stdout", text)

    def on_stderr(self, text: str) -> None:
        """Append text to standard error."""
        self._add(self.stderr, "stderr", text)

    def _add(self, tail: OutputTail, stream: OutputStream, text: str) -> None:
        if text:
            tail.add(text)
            self._pending[stream].add(text)
            self._changed.set()

    def finish(self) -> None:
        """Mark the output as complete, which ends `send_updates`."""
        self._finished.set()
        self._changed.set()

    async def send_updates(self, update: OutputCallback) -> None:
        """Call `update` with new output until `finish` is called and everything was sent.

        A slow receiver misses output, but does not delay the command.
        """
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            for stream, pending in self._pending.items():
                if pending:
                    await update(pending.take(), stream)
            if self._finished.is_set() and not any(self._pending.values()):
                return
            with anyio.move_on_after(UPDATE_EVERY):
                await self._finished.wait()
            if self._finished.is_set():
                self._changed.set()

    @property
    def stdout_end(self) -> str:
        """The end of standard output, for the effect `CommandRan`."""
        return last_bytes(self.stdout.text, EFFECT_BYTES)[0]

    @property
    def stderr_end(self) -> str:
        """The end of standard error, for the effect `CommandRan`."""
        return last_bytes(self.stderr.text, EFFECT_BYTES)[0]


def last_bytes(text: str, limit: int) -> tuple[str, int]:
    """Return the end of a text with at most `limit` bytes of UTF-8, and the number of bytes dropped before it."""
    tail = OutputTail(limit)
    tail.add(text)
    return tail.text, tail.dropped


def with_truncation_note(text: str, dropped: int) -> str:
    """Return the text below a line that states how many bytes were dropped; unchanged if there are none."""
    return f"...({dropped} bytes truncated from head)...\n{text}" if dropped else text


def _from_character(data: bytes, start: int) -> bytes:
    """Return the data from the first complete character at or behind `start`."""
    while start < len(data) and data[start] in _CONTINUATION:
        start += 1
    return data[start:]
