"""What goes out: the lines of `openclaw acp`, and between them what the gateway wrote down, in the order of events.

`openclaw acp` drops most of what the model says before a tool call, all that it thinks, and why a model call failed.
The gateway writes all this down, the first two into a file that `OPENCLAW_RAW_STREAM_PATH` names, the last into its
log. We pass it on as notifications whose methods begin with `_agent_mux/`.
"""

import sys
import threading
import time
from pathlib import Path
from typing import IO

ANSWER = b"_agent_mux/answer"
LOG = b"_agent_mux/log"
LISTENING = b"_agent_mux/listening"
SAID = b'"event":"assistant_message_end"'
TEXT = b'"event":"assistant_text_stream"'
THOUGHT = b'"evtType":"thinking_end"'
"""Lines of the raw stream with a whole answer, or a whole thought. Fragments are written in no certain order."""
TIME = len('{"ts":1795313575366')
CALL = b'"sessionUpdate":"tool_call",'
CHUNK = b'"sessionUpdate":"agent_message_chunk"'
RESULT = b'"sessionUpdate":"tool_call_update"'
PROMPT_OVER = b'"result":{"stopReason"'
LOOK_EVERY = 0.02  # seconds
PATIENCE = 2.0  # the file is 1 ms late on an idle machine, 1 s on a busy one
SHORT_PATIENCE = 1.0  # where we cannot know that there is something to wait for: one answer's calls, one by one
TELLING = (b'"embedded_run_agent_end"', b"Embedded agent failed before reply", b"transient same-model retry")
"""Lines of the log that tell of the run."""


class RawStream:
    """The file in which the gateway writes down what the model says. Appended to line by line, in a rough order."""

    def __init__(self, path: Path) -> None:
        self.is_speaking = False
        """The model has begun an answer that is not complete yet."""
        self.is_saying = False
        """And has come to its text: it thinks no more."""
        self._path = path
        self._read = 0
        self._ended_at = b""

    def news(self) -> list[bytes]:
        """Whole answers and thoughts since the last call."""
        try:
            if self._path.stat().st_size == self._read:
                return []
            with self._path.open("rb") as file:
                file.seek(self._read)
                data = file.read()
        except FileNotFoundError:
            return []
        lines = data.split(b"\n")[:-1]
        self._read += sum(map(len, lines)) + len(lines)
        return [line for line in lines if self._tells(line)]

    def _tells(self, line: bytes) -> bool:
        time_of_it, is_end = line[:TIME], SAID in line
        if time_of_it > self._ended_at:  # what is older belongs to the answer that is complete
            self.is_speaking = not is_end
            self.is_saying = not is_end and (self.is_saying or TEXT in line)
        if is_end:
            self._ended_at = max(time_of_it, self._ended_at)
        return is_end or THOUGHT in line


class Output:
    """Our stdout: the lines of `openclaw acp`, and between them what the gateway wrote down, in the order of events."""

    def __init__(self, raw_stream: Path) -> None:
        self.is_closed = False
        self._raw = RawStream(raw_stream)
        self._is_answered = False
        """What the bridge tells now is of an answer that is complete."""
        self._lock = threading.Lock()

    def copy(self, stream: IO[bytes]) -> None:
        """Pass on the lines of `openclaw acp`, until it ends."""
        for line in stream:
            with self._lock:
                self._catch_up(line)
                self._write(line)

    def watch(self, log: IO[bytes]) -> None:
        """Pass on the log of the gateway to our stderr, and what tells of the run."""
        for line in log:
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()
            if line.startswith(b"{") and any(mark in line for mark in TELLING):
                self.say(LOG, line)

    def say(self, method: bytes, params: bytes) -> None:
        """A notification of ours."""
        with self._lock:
            self._catch_up()
            self._write(_notification(method, params))

    def catch_up(self) -> None:
        """Tell what was written down since."""
        with self._lock:
            self._catch_up()

    def _catch_up(self, line: bytes = b"") -> None:
        """Tell what belongs before this line. The file may be slower than the bridge: then we wait for it."""
        began = time.monotonic()
        self._tell()
        while time.monotonic() - began < self._patience(line):
            time.sleep(LOOK_EVERY)
            self._tell()
        if RESULT in line or PROMPT_OVER in line:
            self._is_answered = False

    def _patience(self, line: bytes) -> float:
        if self._is_answered:
            return 0.0
        if CHUNK in line:
            return 0.0 if self._raw.is_saying else PATIENCE
        if CALL in line:  # the answer that makes this call, or an older one made it
            return PATIENCE if self._raw.is_speaking else SHORT_PATIENCE
        return 0.0

    def _tell(self) -> None:
        news = self._raw.news()
        self._is_answered = self._is_answered or any(SAID in line for line in news)
        self._write(*(_notification(ANSWER, line) for line in news))

    def _write(self, *lines: bytes) -> None:
        if not lines or self.is_closed:
            return
        try:
            sys.stdout.buffer.write(b"".join(lines))
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            self.is_closed = True


def _notification(method: bytes, params: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","method":"%b","params":%b}\n' % (method, params.strip())
