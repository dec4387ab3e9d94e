"""Hide secrets in a stream of chunks, where a secret may begin in one chunk and end in a later one."""

import re

from agent_mux.redaction.assignments import LITERAL, OPEN_SEPARATOR
from agent_mux.redaction.redactor import Redactor, Span

MAX_HELD = 4096
"""Bytes held back at most, unless a value to hide is longer. Every pattern can be recognized within fewer."""
_SECRET_BYTES = bytes(byte for byte in range(0x21, 0x100) if byte not in b"\"'{}[]<>(),;\x7f")
"""The bytes of which secrets consist; values with other bytes (`_unusual_values`) are treated separately.

A chunk that ends with any other byte does not end inside of a secret.
"""
_SECRET_AT_START = re.compile(rb"[%b]+" % re.escape(_SECRET_BYTES))
_LEADER = re.compile(
    rb"(?:[Bb]earer|[Bb]asic|Private-Lines:|(?:BEGIN|END)[A-Za-z0-9 ]{0,40}|"
    rb"uthorization[\\\"']*\s*[:=][\\\"' ]*(?:[A-Za-z]+)?)[ ]+\Z"
    rb"|(?i:uthorization|ecret_?access_?key)[\\\"' ]*(?:[:=][\\\"' ]*)?\Z"
)
"""Words at the end of the data after which a secret follows: `Bearer `, `Authorization: "`."""
_MAX_LEADER = 96
_CONTEXT = re.compile(
    rb"(?:%b%b[\\\"']{0,8}[^\s\"'\\`]{0,400}"
    rb"|(?:-u|-user)[ =\\\"']{1,8}[^\s\"'\\]{0,300}"
    rb"|login (?:[^\s\"'\\]{1,80}(?:(?:[ \t]|\\+[nrtu0-9a-f]){1,8}(?:password {0,4})?)?)?"
    rb"|_?auth[\\\"']{0,8} {0,4}[:=]? {0,4}[\\\"']{0,8}"
    rb"|ookie[\\\"']{0,8}:[^\r\n\"'\\]{0,600}"
    rb"|BEGIN [A-Z0-9 ]{0,40}KEY[^\"\r\n]{0,600}"
    rb"|(?:Version|Comment|Charset|Hash|MessageID|Subject|Proc-Type|DEK-Info): [^\r\n\\\"]{0,300})\Z"
    % (LITERAL.encode(), OPEN_SEPARATOR.encode())
)
"""The same for secrets whose name precedes them, with the first bytes of a secret that has unusual ones."""
_MAX_CONTEXT = 768


class RedactedStream:
    """Returns the chunks of a stream with secrets hidden. Holds back the end of a chunk while it may begin a secret.

    Nothing is held back after the end of a line or of a JSON value.
    """

    __slots__ = ("_held", "_inside_key", "_inside_secret", "_is_clear", "_max_held", "_redactor", "_unusual_values")

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = b""
        self._is_clear = True
        """Whether no state remains from earlier chunks."""
        self._inside_key = False
        self._inside_secret = False
        """Whether the held bytes continue a secret whose beginning was already returned."""
        self._unusual_values = tuple(value for value in redactor.values if value.strip(_SECRET_BYTES))
        self._max_held = max(MAX_HELD, *(len(value) for value in redactor.values), 0)

    @property
    def is_holding(self) -> bool:
        """Whether bytes are held back."""
        return bool(self._held)

    def feed(self, chunk: bytes) -> bytes:
        """Add a chunk; return the bytes that need not be held back."""
        if self._is_clear and chunk.endswith(b"\n") and not self._redactor.may_contain_secret(chunk):  # nearly always
            return chunk
        return self._process(chunk, is_end=False)

    def flush(self) -> bytes:
        """Return all bytes that are held back, at the end of the stream or when they can wait no longer."""
        return self._process(b"", is_end=True) if self._held else b""

    def _process(self, chunk: bytes, *, is_end: bool) -> bytes:
        data = self._held + chunk if self._held else chunk
        if not data:
            return b""
        spans, inside_key = self._redactor.find_secrets(data, inside_key=self._inside_key)
        if self._inside_secret:
            spans = self._with_rest_of_secret(data, spans)
            self._inside_secret = False
        held = 0 if is_end or data.endswith(b"\n") else self._count_bytes_to_hold(data)
        cut, spans = self._cut(spans, len(data) - held, len(data))
        if cut == len(data):
            self._inside_key = inside_key
        elif (
            self._inside_key or inside_key or _begins_key(data[-_MAX_CONTEXT:])
        ):  # search again once the rest has arrived
            self._inside_key = self._redactor.find_secrets(data[:cut], inside_key=self._inside_key)[1]
        self._held = data[cut:]
        self._is_clear = not (self._held or self._inside_key or self._inside_secret)
        if not spans:
            return data if cut == len(data) else data[:cut]
        return self._redactor.hide(data[:cut], spans)

    @staticmethod
    def _with_rest_of_secret(data: bytes, spans: list[Span]) -> list[Span]:
        rest = _SECRET_AT_START.match(data)
        if rest is None:
            return spans
        return [(0, rest.end()), *(span for span in spans if span[0] >= rest.end())]

    def _cut(self, spans: list[Span], cut: int, size: int) -> tuple[int, list[Span]]:
        """Move the cut so that it splits no secret; return it with the secrets before it."""
        for start, end in spans:
            if start < cut < end < size:
                cut = end
            elif start < cut < end and size - start <= self._max_held:
                cut = start
            elif start < cut < end:  # too long to hold back
                self._inside_secret = True
        return cut, [(start, min(end, cut)) for start, end in spans if start < cut]

    def _count_bytes_to_hold(self, data: bytes) -> int:
        """Return the number of bytes at the end that may begin a secret."""
        window = data[-self._max_held :]
        head = window.rstrip(_SECRET_BYTES)
        held = len(window) - len(head)
        leader = _LEADER.search(head[-_MAX_LEADER:])
        if leader is not None:
            held += len(leader[0])
        context = head[-_MAX_CONTEXT:]
        if self._inside_key or b"oken" in context[-24:] or self._redactor.may_contain_secret(context):
            found = _CONTEXT.search(context)
            if found is not None:  # with the whole word, which decides whether it is the name of a secret
                start = len(head) - len(context) + len(context[: found.start()].rstrip(_SECRET_BYTES))
                held = max(held, len(window) - start)
        before = window[: len(window) - held]  # a backslash shows whether the next character belongs to an escape
        held += len(before) - len(before.rstrip(b"\\"))
        for value in self._unusual_values:
            for length in range(min(len(value) - 1, len(window)), held, -1):
                if window.endswith(value[:length]):
                    held = length
                    break
        return held


def _begins_key(data: bytes) -> bool:
    return b"PRIVATE KEY" in data or b"Static key" in data or b"Private-Lines" in data
