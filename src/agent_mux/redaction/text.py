"""Hiding secrets in a stream that comes in chunks: one may begin in a chunk and end in the next.

Hiding secrets in texts for people and for logs: messages of errors, lines of the command line.
"""

import os
import re
from functools import cache

from agent_mux.redaction.redactor import Redactor, Span
from agent_mux.redaction.values import secret_values

LONGEST_HELD = 4096
"""Bytes. Every shape can be recognised with fewer; longer values raise it."""
_RUN = bytes(byte for byte in range(0x21, 0x100) if byte not in b"\"'{}[]<>(),;\x7f")
"""What secrets are made of. A chunk that ends in something else ends in no secret, but for the odd values."""
_RUN_AT_START = re.compile(rb"[%b]+" % re.escape(_RUN))
_LEADER = re.compile(
    rb"(?:[Bb]earer|[Bb]asic|(?:BEGIN|END)[A-Z ]{0,30}|uthorization[\\\"']*\s*[:=][\\\"' ]*(?:[A-Za-z]+)?)[ ]+\Z"
    rb"|(?i:uthorization|ecret_?access_?key)[\\\"' ]*(?:[:=][\\\"' ]*)?\Z"
)
"""Words with a space or a quote behind them that say: what comes next is a secret."""
_LONGEST_LEADER = 96


class RedactedStream:
    """Hands on what comes, with its secrets hidden. Holds back the end of a chunk while it may begin a secret.

    Nothing is held behind the end of a line, nor behind the end of a JSON value.
    """

    __slots__ = ("_held", "_inside_key", "_inside_run", "_is_between", "_longest", "_odd", "_redactor")

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = b""
        self._is_between = True
        """Nothing is left over from the chunks before."""
        self._inside_key = False
        self._inside_run = False
        """The held bytes go on with a secret of which the beginning is out already."""
        self._odd = tuple(value for value in redactor.values if value.strip(_RUN))
        self._longest = max(LONGEST_HELD, *(len(value) for value in redactor.values), 0)

    @property
    def is_holding(self) -> bool:
        """There is more to come out."""
        return bool(self._held)

    def feed(self, chunk: bytes) -> bytes:
        """What can be handed on, now that this came."""
        if self._is_between and chunk.endswith(b"\n") and not self._redactor.may_have(chunk):  # nearly always
            return chunk
        return self._take(chunk, is_end=False)

    def flush(self) -> bytes:
        """All that is held back: nothing more comes, or nobody can wait for it."""
        return self._take(b"", is_end=True) if self._held else b""

    def _take(self, chunk: bytes, *, is_end: bool) -> bytes:
        data = self._held + chunk if self._held else chunk
        if not data:
            return b""
        spans, inside_key = self._redactor.find(data, inside_key=self._inside_key)
        if self._inside_run:
            spans = self._with_rest_of_run(data, spans)
            self._inside_run = False
        held = 0 if is_end or data.endswith(b"\n") else self._end_to_hold(data)
        cut, spans = self._cut(spans, len(data) - held, len(data))
        if cut == len(data):
            self._inside_key = inside_key
        elif self._inside_key or inside_key:  # look again with the rest
            self._inside_key = self._redactor.find(data[:cut], inside_key=self._inside_key)[1]
        self._held = data[cut:]
        self._is_between = not (self._held or self._inside_key or self._inside_run)
        if not spans:
            return data if cut == len(data) else data[:cut]
        return self._redactor.hide(data[:cut], spans)

    @staticmethod
    def _with_rest_of_run(data: bytes, spans: list[Span]) -> list[Span]:
        rest = _RUN_AT_START.match(data)
        if rest is None:
            return spans
        return [(0, rest.end()), *(span for span in spans if span[0] >= rest.end())]

    def _cut(self, spans: list[Span], cut: int, size: int) -> tuple[int, list[Span]]:
        """Where to cut, so that no secret is torn; and the secrets before."""
        for start, end in spans:
            if start < cut < end < size:
                cut = end
            elif start < cut < end and size - start <= self._longest:
                cut = start
            elif start < cut < end:  # too long to hold
                self._inside_run = True
        return cut, [(start, min(end, cut)) for start, end in spans if start < cut]

    def _end_to_hold(self, data: bytes) -> int:
        """How many bytes at the end may begin a secret."""
        window = data[-self._longest :]
        head = window.rstrip(_RUN)
        held = len(window) - len(head)
        leader = _LEADER.search(head[-_LONGEST_LEADER:])
        if leader is not None:
            held += len(leader[0])
        for value in self._odd:
            for length in range(min(len(value) - 1, len(window)), held, -1):
                if window.endswith(value[:length]):
                    held = length
                    break
        return held


def redact_text(text: str) -> str:
    """The text without keys of known shapes, and without the secrets of this process's environment."""
    return _of_this_process(secret_values(os.environ)).mask_text(text)


@cache
def _of_this_process(values: frozenset[str]) -> Redactor:
    return Redactor(values)
