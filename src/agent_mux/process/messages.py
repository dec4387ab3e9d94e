"""Programs that exchange JSON messages with us until we have what we asked for. Calls block and are bounded."""

import contextlib
import os
import selectors
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import msgspec

from agent_mux.errors import AgentMuxError
from agent_mux.process.command import KILL_AFTER, kill_group, last_line, signal_group, spawn_blocking
from agent_mux.sdk.framing import Framing, frame_message, new_framer

EXIT_TIMEOUT = 10.0  # seconds from the end of its input to SIGTERM: some programs write their files then
_CHUNK = 1 << 16


class MessageProgram:
    """A running program with JSON messages on standard input and output. Leaving the context ends it."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environ: Mapping[str, str],
        cwd: str | os.PathLike[str] | None,
        framing: Framing,
        deadline: float,
    ) -> None:
        """Start the program in its own process group.

        `deadline` is a time of `time.monotonic`, after which `receive` fails. Raises SPAWN_ERROR.
        """
        self._name = Path(argv[0]).name
        self._deadline = deadline
        self._framing: Framing = framing
        self._framer = new_framer(framing)
        self._received: deque[bytes] = deque()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `__exit__`
        try:
            self._process = spawn_blocking(argv, environ, cwd, (subprocess.PIPE, subprocess.PIPE, self._errors))
        except BaseException:
            self._errors.close()
            raise

    def send(self, message: Mapping[str, Any]) -> None:
        """Write one message. Raises AGENT_CRASH if the program has ended."""
        assert self._process.stdin is not None  # noqa: S101  # it is a pipe
        try:
            self._process.stdin.write(frame_message(self._framing, msgspec.json.encode(message)))
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None

    def receive(self) -> dict[str, Any]:
        """Return the next message that is a JSON object. Raises TIMEOUT, and AGENT_CRASH at the end of the output."""
        while True:
            while self._received:
                with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    message = msgspec.json.decode(self._received.popleft())
                    if isinstance(message, dict):
                        return message
            chunk = self._read_chunk()
            self._received += self._framer.feed(chunk) if chunk else self._framer.finish()
            if not chunk and not self._received:
                raise self._ended()

    def _read_chunk(self) -> bytes:
        """Return the next bytes; empty at the end of the output."""
        assert self._process.stdout is not None  # noqa: S101  # it is a pipe
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(max(0.0, self._deadline - time.monotonic())):
                raise AgentMuxError("TIMEOUT", f"`{self._name}` did not answer in time; it was stopped")
        return os.read(self._process.stdout.fileno(), _CHUNK)

    def _ended(self) -> AgentMuxError:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(KILL_AFTER)
        self._errors.seek(0)
        reason = last_line(self._errors.read().decode("utf-8", "replace"))
        return AgentMuxError("AGENT_CRASH", f"`{self._name}` ended before it answered: {reason}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        process = self._process
        try:
            with contextlib.suppress(BrokenPipeError):
                assert process.stdin is not None  # noqa: S101
                process.stdin.close()
            # The program may block in writing while nobody reads.
            end = time.monotonic() + EXIT_TIMEOUT
            self._deadline = end
            with contextlib.suppress(AgentMuxError):
                while self._read_chunk():
                    pass
            process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            signal_group(process)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(KILL_AFTER)
        finally:
            kill_group(process)
            assert process.stdout is not None  # noqa: S101
            process.stdout.close()
            self._errors.close()
