"""The launcher's stdout: the lines of `openclaw acp`, and between them the gateway's records, in the order of events.

`openclaw acp` drops most text before a tool call, all thinking, the reason of a failed model call, and usage. The
gateway records all of it: text and thinking in its raw stream, failures in its log, usage in its database. The relay
prints these records as notifications whose methods begin with `_agent_mux/`.
"""

import sys
import threading
import time
from collections import deque
from pathlib import Path
from typing import IO

from .sources import ANSWER_END, RawStream, UsageDatabases

ANSWER = b"_agent_mux/answer"
LOG = b"_agent_mux/log"
LISTENING = b"_agent_mux/listening"
USED = b"_agent_mux/used"
_TOOL_CALL = b'"sessionUpdate":"tool_call",'
_TEXT_CHUNK = b'"sessionUpdate":"agent_message_chunk"'
_TOOL_UPDATE = b'"sessionUpdate":"tool_call_update"'
_ENDED = (b'"status":"completed"', b'"status":"failed"')
_PROMPT_OVER = b'"result":{"stopReason"'
POLL_INTERVAL = 0.02  # seconds
_RECORD_TIMEOUT = 2.0  # seconds; the raw stream is 1 ms late on an idle machine, 1 s on a busy one
_SHORT_RECORD_TIMEOUT = 1.0  # where there may be no new record: the calls of one answer arrive one by one
_USAGE_TIMEOUT = 1.0  # a prompt that failed early has no usage
_BRIDGE_SILENCE = 2.0  # seconds without output of either side after which all records are printed
_RELEVANT_LOG = (b'"embedded_run_agent_end"', b"Embedded agent failed before reply", b"transient same-model retry")
"""Parts of the log lines that are about failed model calls."""


class Relay:
    """Merges the lines of `openclaw acp` and the records of the gateway on our stdout."""

    def __init__(self, raw_stream: Path, usage: UsageDatabases) -> None:
        self.is_closed = False
        """Whether the reader of our stdout has closed it."""
        self._raw_stream = RawStream(raw_stream)
        self._usage = usage
        self._records: deque[bytes] = deque()
        """Records that are not printed yet, because the bridge has not reached them."""
        self._last_output = time.monotonic()
        """The time of the last line of the bridge or record of the gateway."""
        self._is_answered = False
        """Whether the bridge is still printing an answer whose record has been printed."""
        self._lock = threading.Lock()

    def copy_bridge(self, stream: IO[bytes]) -> None:
        """Print the lines of `openclaw acp` until it ends, each after the records that precede it."""
        for line in stream:
            with self._lock:
                self._print_preceding(line)
                if _PROMPT_OVER in line:
                    self._print_records(everything=True)
                    self._print_usage()
                if _PROMPT_OVER in line or (_TOOL_UPDATE in line and any(status in line for status in _ENDED)):
                    self._is_answered = False
                self._write(line)

    def copy_log(self, log: IO[bytes]) -> None:
        """Copy the log of the gateway to our stderr, and its lines about failed model calls to stdout."""
        for line in log:
            sys.stderr.buffer.write(line)
            sys.stderr.buffer.flush()
            if line.startswith(b"{") and any(mark in line for mark in _RELEVANT_LOG):
                self.notify(LOG, line)

    def notify(self, method: bytes, params: bytes) -> None:
        """Print a notification after all records."""
        with self._lock:
            self._read_records()
            self._print_records(everything=True)
            self._write(_notification(method, params))

    def print_overdue(self) -> None:
        """Print all records once both sides have been silent so long that the bridge will not reach them."""
        with self._lock:
            self._read_records()
            if time.monotonic() - self._last_output > _BRIDGE_SILENCE:
                self._print_records(everything=True)

    def _print_preceding(self, line: bytes) -> None:
        """Print the records that belong before this line: thinking, and one answer until its calls have results.

        Either side may be behind. Where the raw stream is, wait for it, but not longer than the line's timeout.
        """
        began = self._last_output = time.monotonic()
        self._read_records()
        self._print_records()
        while time.monotonic() - began < self._timeout(line):
            time.sleep(POLL_INTERVAL)
            self._read_records()
            self._print_records()

    def _print_usage(self) -> None:
        began = time.monotonic()
        while not (usages := self._usage.read_new()) and time.monotonic() - began < _USAGE_TIMEOUT:
            time.sleep(POLL_INTERVAL)
        self._write(*(_notification(USED, usage) for usage in usages))

    def _timeout(self, line: bytes) -> float:
        """Return how many seconds to wait for a record that belongs before this line."""
        if self._is_answered:
            return 0.0
        if _TEXT_CHUNK in line:
            return 0.0 if self._raw_stream.is_in_text else _RECORD_TIMEOUT
        if _TOOL_CALL in line:  # it belongs to the answer in progress, or to an older one
            return _RECORD_TIMEOUT if self._raw_stream.is_answering else _SHORT_RECORD_TIMEOUT
        return 0.0

    def _read_records(self) -> None:
        records = self._raw_stream.read_new()
        self._records += records
        if records:
            self._last_output = time.monotonic()

    def _print_records(self, *, everything: bool = False) -> None:
        while self._records and (everything or not self._is_answered):
            record = self._records.popleft()
            self._is_answered = self._is_answered or ANSWER_END in record
            self._write(_notification(ANSWER, record))

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
