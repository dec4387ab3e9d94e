"""Output of a command: its beginning and end, the whole of it in a file, and updates while the command runs."""

import os
from collections import deque
from contextlib import suppress
from pathlib import Path

import anyio

from agent_loop.private_directories import make_private_directory
from agent_loop.tools.effects import OutputStream
from agent_loop.tools.tool import OutputCallback

MAX_KEPT = 16 << 20
"""The most bytes that are kept of each stream if there is no other limit."""
EFFECT_BYTES = 32_768
"""The bytes of each stream in the effect `CommandRan`."""
NEWLINE = "\n"
HEAD_SHARE = 4
"""The part of a long output that is shown from its beginning: a fourth. The rest of the limit is its end."""
MAX_FILE_BYTES = 256 << 20
"""The most bytes of output that are written to a file."""
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


class OutputHead:
    """The first `limit` bytes of a text. Characters are never split."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()
        self._is_full = False

    def add(self, text: str) -> None:
        """Append text; beyond the limit, ignore it."""
        if self._is_full:
            return
        self._data += text[: self._limit + 1].encode(errors="replace")
        if len(self._data) > self._limit:
            self._is_full = True
            del self._data[self._limit :]

    @property
    def text(self) -> str:
        """The beginning of the text."""
        return self._data.decode(errors="ignore")


class OutputFile:
    """A private file with the whole output, created once the output exceeds `threshold` bytes."""

    def __init__(self, path: Path, threshold: int) -> None:
        self.path = path
        self._threshold = threshold
        self._waiting: list[bytes] = []
        self._size = 0
        self._descriptor: int | None = None
        self.problem = ""
        """Why the file is missing or incomplete; empty otherwise."""

    @property
    def exists(self) -> bool:
        """Whether the output exceeded the threshold, and a file has it."""
        return self._descriptor is not None

    def add(self, text: str) -> None:
        """Append text. A file that cannot be written is left incomplete, and `problem` states the reason."""
        data = text.encode(errors="replace")
        self._size += len(data)
        if self.problem:
            return
        if self._size > MAX_FILE_BYTES:
            self.problem = f"the file ends after {MAX_FILE_BYTES >> 20} MiB"
            return
        self._waiting.append(data)
        if self._size > self._threshold:
            try:
                self._write()
            except OSError as error:
                self.problem = f"it could not be written: {error.strerror}"

    def _write(self) -> None:
        if self._descriptor is None:
            make_private_directory(self.path.parent)
            self._descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        data = b"".join(self._waiting)
        self._waiting.clear()
        while data:
            data = data[os.write(self._descriptor, data) :]

    def close(self) -> None:
        """Close the file. `exists` keeps its value."""
        if self._descriptor is not None and self._descriptor >= 0:
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = -1


class CapturedOutput:
    """The output of one command, within limits."""

    def __init__(self, max_output_bytes: int, file: Path | None = None) -> None:
        """`max_output_bytes` is the limit of the result; 0 means `MAX_KEPT`. A longer output is written to `file`."""
        self.limit = max_output_bytes or MAX_KEPT
        self.heads: dict[OutputStream, OutputHead] = {
            "stdout": OutputHead(self.limit // HEAD_SHARE),
            "stderr": OutputHead(self.limit // HEAD_SHARE),
        }
        """The beginning of each stream."""
        self.file = None if file is None else OutputFile(file, self.limit)
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
            self.heads[stream].add(text)
            if self.file is not None:
                self.file.add(text)
            self._pending[stream].add(text)
            self._changed.set()

    def finish(self) -> None:
        """Mark the output as complete, which ends `send_updates`."""
        self._finished.set()
        self._changed.set()

    def close(self) -> None:
        """Close the file with the complete output, if one was created."""
        if self.file is not None:
            self.file.close()

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


def shortened(captured: CapturedOutput, output: str, dropped: int) -> str:
    """Return the output if it fits the limit; otherwise its beginning, a note on where the rest is, and its end.

    `dropped` is the number of bytes that are missing at the beginning of `output`.
    """
    size = len(output.encode(errors="replace"))
    if not dropped and size <= captured.limit:
        return output
    head = captured.heads["stdout" if captured.stdout else "stderr"].text
    end, cut = last_bytes(output, captured.limit - captured.limit // HEAD_SHARE)
    missing = max(0, dropped + cut - len(head.encode()))
    beginning = f"{head.removesuffix(NEWLINE)}\n" if head else ""
    return f"{beginning}[... {missing} bytes are left out{_place_of(captured.file)} ...]\n{end}"


def _place_of(file: OutputFile | None) -> str:
    if file is None or not file.exists:
        return f"; the whole output is in no file: {file.problem}" if file is not None and file.problem else ""
    note = f" ({file.problem})" if file.problem else ""
    return f"; the whole output is in {file.path}{note}: read it in pages or search it with grep"


def _from_character(data: bytes, start: int) -> bytes:
    """Return the data from the first complete character at or behind `start`."""
    while start < len(data) and data[start] in _CONTINUATION:
        start += 1
    return data[start:]
