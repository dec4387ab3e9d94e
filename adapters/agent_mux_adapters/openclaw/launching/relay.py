"""What goes out: the lines of `openclaw acp`, and between them what the gateway wrote down, in the order of events.

`openclaw acp` drops most of what the model says before a tool call, all that it thinks, why a model call failed, and
what they used. The gateway writes all this down: the first two into a file that `OPENCLAW_RAW_STREAM_PATH` names, the
third into its log, the last into its database. We pass it on as notifications whose methods begin with `_agent_mux/`.
"""

import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import IO

from .spending import Spending

ANSWER = b"_agent_mux/answer"
LOG = b"_agent_mux/log"
LISTENING = b"_agent_mux/listening"
USED = b"_agent_mux/used"
SAID = b'"event":"assistant_message_end"'
TEXT = b'"event":"assistant_text_stream"'
THOUGHT = b'"evtType":"thinking_end"'
"""Lines of the raw stream with a whole answer, or a whole thought. Fragments are written in no certain order."""
TIME = len('{"ts":1795313575366')
CALL = b'"sessionUpdate":"tool_call",'
CHUNK = b'"sessionUpdate":"agent_message_chunk"'
RESULT = b'"sessionUpdate":"tool_call_update"'
ENDED = (b'"status":"completed"', b'"status":"failed"')
PROMPT_OVER = b'"result":{"stopReason"'
LOOK_EVERY = 0.02  # seconds
PATIENCE = 2.0  # the file is 1 ms late on an idle machine, 1 s on a busy one
SILENCE = 2.0  # after that long, what the gateway wrote down is told, whatever the bridge still has to say
PATIENCE_FOR_USAGE = 1.0  # a prompt that failed early has none
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

    def __init__(self, raw_stream: Path, spending: Spending) -> None:
        self.is_closed = False
        self._raw = RawStream(raw_stream)
        self._spending = spending
        self._written_down: deque[bytes] = deque()
        """Not told yet: the bridge has not come to it."""
        self._spoke_at = time.monotonic()
        """When the bridge said something, or the gateway wrote something down."""
        self._is_answered = False
        """What the bridge tells now is of an answer that is complete."""
        self._lock = threading.Lock()

    def copy(self, stream: IO[bytes]) -> None:
        """Pass on the lines of `openclaw acp`, until it ends."""
        for line in stream:
            with self._lock:
                self._catch_up(line)
                if PROMPT_OVER in line:
                    self._tell(everything=True)
                    self._tell_usage()
                if PROMPT_OVER in line or (RESULT in line and any(status in line for status in ENDED)):
                    self._is_answered = False
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
            self._read()
            self._tell(everything=True)
            self._write(_notification(method, params))

    def catch_up(self) -> None:
        """Tell what was written down, once the bridge has been silent for so long that it has nothing to say of it."""
        with self._lock:
            self._read()
            if time.monotonic() - self._spoke_at > SILENCE:
                self._tell(everything=True)

    def _catch_up(self, line: bytes) -> None:
        """Tell what belongs before this line: thoughts, and one answer, until the results of its calls have come.

        The file may be slower than the bridge: then we wait for it. The bridge may be slower than the file.
        """
        began = self._spoke_at = time.monotonic()
        self._read()
        self._tell()
        while time.monotonic() - began < self._patience(line):
            time.sleep(LOOK_EVERY)
            self._read()
            self._tell()

    def _tell_usage(self) -> None:
        began = time.monotonic()
        while not (used := self._spending.news()) and time.monotonic() - began < PATIENCE_FOR_USAGE:
            time.sleep(LOOK_EVERY)
        self._write(*(_notification(USED, one) for one in used))

    def _patience(self, line: bytes) -> float:
        if self._is_answered:
            return 0.0
        if CHUNK in line:
            return 0.0 if self._raw.is_saying else PATIENCE
        if CALL in line:  # the answer that makes this call, or an older one made it
            return PATIENCE if self._raw.is_speaking else SHORT_PATIENCE
        return 0.0

    def _read(self) -> None:
        news = self._raw.news()
        self._written_down += news
        if news:
            self._spoke_at = time.monotonic()

    def _tell(self, *, everything: bool = False) -> None:
        while self._written_down and (everything or not self._is_answered):
            line = self._written_down.popleft()
            self._is_answered = self._is_answered or SAID in line
            self._write(_notification(ANSWER, line))

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
