"""The played process: writes the recorded output at its times, and waits for the recorded input."""

import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from . import lines
from .expectations import Expectations, MismatchError
from .recording import STDERR, STDIN, STDOUT, RecordedItem, ReplayRecording, load

BATCH = 1 << 16  # bytes; the capacity of a pipe
READ_SIZE = 1 << 16
HANDSHAKE_PATIENCE = 2.0  # seconds to wait for a line that the present codec may never send
EXIT_USAGE = 2
EXIT_MISMATCH = 3
_DESCRIPTORS = {STDOUT: 1, STDERR: 2}


class StdinReader:
    """The lines on stdin, read by a thread."""

    def __init__(self, framing: str) -> None:
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._closed = False
        self._framing = framing
        threading.Thread(target=self._read, daemon=True).start()

    def next(self, seconds: float) -> bytes | None:
        """Return the next line; None if none came within so many seconds, `b""` when stdin is closed."""
        if self._closed:
            return b""
        try:
            line = self._lines.get(timeout=seconds) if seconds > 0 else self._lines.get_nowait()
        except queue.Empty:
            return None
        self._closed = line == b""
        return line

    def _read(self) -> None:
        rest: list[bytes] = []
        unwrapper = lines.MessageUnwrapper() if self._framing == lines.CONTENT_LENGTH else None
        while chunk := os.read(0, READ_SIZE):
            chunk = chunk if unwrapper is None else b"".join(unwrapper.feed(chunk))  # as lines
            first, *more = chunk.split(b"\n")
            rest.append(first)
            for piece in more:
                self._lines.put(b"".join(rest) + b"\n")
                rest = [piece]
        if any(rest):
            self._lines.put(b"".join(rest))
        self._lines.put(b"")


class PlayedProcess:
    """The playback of one recording by the current process."""

    def __init__(self, recording: ReplayRecording, *, speed: float, patience: float) -> None:
        self._recording = recording
        self._speed = speed
        self._patience = patience
        self._expected = Expectations([lines.parse_sent(i.data) for i in recording.items if i.stream == STDIN])
        self._input = StdinReader(recording.framing) if recording.is_two_way else None
        self._batch: list[bytes] = []
        self._batch_size = 0
        self._origin = time.monotonic()

    def play(self) -> None:
        """Write the output and wait for the input, up to the exit. Raises `MismatchError`."""
        stdin_count = 0
        for item in self._recording.items:
            if item.stream == STDIN:
                self._flush()
                self._await_item(stdin_count, item)
                stdin_count += 1
            else:
                self._wait_until(item.at)
                self._write_item(item)
        self._wait_until(self._recording.end)
        self._flush()

    # -- output

    def _write_item(self, item: RecordedItem) -> None:
        if item.stream == STDERR:
            self._flush()
            _write(_DESCRIPTORS[STDERR], item.data)
            return
        data = self._to_this_run(item.data)
        self._batch.append(lines.wrap_message(data) if self._recording.framing == lines.CONTENT_LENGTH else data)
        self._batch_size += len(item.data)
        if self._batch_size >= BATCH:
            self._flush()

    def _to_this_run(self, data: bytes) -> bytes:
        if self._expected.renamed:
            line = lines.parse_printed(data)
            if line.kind == lines.RESPONSE and line.key in self._expected.renamed:
                return lines.with_key(data, self._expected.renamed[line.key])
        return data

    def _flush(self) -> None:
        if self._batch:
            batch, self._batch, self._batch_size = b"".join(self._batch), [], 0
            _write(_DESCRIPTORS[STDOUT], batch)

    # -- input

    def _wait_until(self, at: float) -> None:
        due = self._origin + at / self._speed if self._speed else 0.0
        left = due - time.monotonic()
        if left > 0:
            self._flush()
        while self._input is not None and (line := self._input.next(left)):
            self._expected.match(line)
            left = due - time.monotonic()
        left = due - time.monotonic()
        if left > 0:
            time.sleep(left)

    def _await_item(self, index: int, item: RecordedItem) -> None:
        if self._input is None:
            return
        needed = self._expected.is_needed(index)
        deadline = time.monotonic() + (self._patience if needed else min(HANDSHAKE_PATIENCE, self._patience))
        while not self._expected.is_satisfied(index):
            line = self._input.next(deadline - time.monotonic())
            if line:
                self._expected.match(line)
            elif needed:
                why = f"no input within {self._patience:g} s" if line is None else "standard input was closed"
                raise MismatchError(f"{why}; the recording expects {self._expected.describe(index)}")
            else:
                break
        if self._speed:  # shift the remaining times by the time spent waiting
            self._origin = max(self._origin, time.monotonic() - item.at / self._speed)


def exit_as_recorded(code: int | None, number: int | None) -> NoReturn:
    """End with the recorded exit code or signal; does not return."""
    if number is not None:
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(code if code is not None else 1)  # do not wait for the thread that reads stdin


def restore_default_signals(numbers: Sequence[int] = (signal.SIGINT, signal.SIGPIPE)) -> None:
    """Let signals end the process, for which Python raises exceptions."""
    for number in numbers:
        signal.signal(number, signal.SIG_DFL)


def _write(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def run(arguments: Sequence[str]) -> int:
    """Play the recording in the arguments; return an exit code only if it could not end as recorded."""
    restore_default_signals()
    try:
        path, speed, patience = arguments
        recording = load(Path(path))
        PlayedProcess(recording, speed=float(speed), patience=float(patience)).play()
    except ValueError as error:
        sys.stderr.write(f"replay: {error}\n")
        return EXIT_USAGE
    except MismatchError as mismatch:
        sys.stderr.write(f"replay: {mismatch}\n")
        return EXIT_MISMATCH
    return exit_as_recorded(recording.code, recording.signal)
