"""Find secrets in a text that arrives in fragments, as a model streams it: any fragment may end inside of a secret.

Unlike `RedactedStream`, which waits for the end of each word of a program's output, a fragment is held back only while
it can still become a secret, so that text appears as it is streamed.
"""

import re
from collections import defaultdict
from typing import NamedTuple

from agent_mux.redaction.patterns import PATTERNS
from agent_mux.redaction.prefixes import compile_prefix
from agent_mux.redaction.redactor import Redactor, Span
from agent_mux.redaction.stream import MAX_HELD

_CONTEXT = max(len(literal) for pattern in PATTERNS for literal in pattern.literals) - 1
"""Bytes before a fragment in which a literal of a pattern may begin."""
_REST_OF_SECRET = re.compile(rb"[\w.~+/=-]+")
_KEY_LINE_AT_END = re.compile(rb"(?:\\+|(?:\\+[nrt])?[A-Za-z0-9+/=]+)\Z")
_REDACTED = re.compile(rb"[*\d]*\*{3}")
_PLACEHOLDER_AT_END = re.compile(rb"\*(\d+)\*+\Z")


class Cut(NamedTuple):
    """What a text may show now."""

    kept: int
    """Number of bytes of the text so far, without those shown before, that may be shown."""
    secrets: list[Span]
    """The secrets in these bytes."""


class UnfinishedSecrets:
    """Finds where the end of a text may begin a secret of a redactor. Shared by the texts of a run."""

    __slots__ = ("_by_first", "_heads", "_longest", "max_held", "redactor")

    def __init__(self, redactor: Redactor) -> None:
        self.redactor = redactor
        by_first: defaultdict[int, list[bytes]] = defaultdict(list)
        for value in redactor.values:
            by_first[value[0]].append(value)
        self._by_first = dict(by_first)
        heads = {re.escape(value[:2]) for value in redactor.values}
        heads |= {re.escape(value[:1]) + rb"\Z" for value in redactor.values}
        self._heads = re.compile(b"|".join(heads)) if heads else None
        self._longest = max(map(len, redactor.values), default=0)
        self.max_held = max(MAX_HELD, self._longest)

    def find_value(self, data: bytes) -> int:
        """Return where the beginning of a secret value begins that ends the data; the length if there is none."""
        if self._heads is not None:
            for found in self._heads.finditer(data, max(0, len(data) - self._longest + 1)):
                position = found.start()
                rest = data[position:]
                for value in self._by_first[data[position]]:
                    if value.startswith(rest):
                        return position
        return len(data)

    def find_pattern(self, data: bytes) -> int:
        """Return where a text begins that more data may turn into a secret of a known format; else the length."""
        for pattern, start in self.redactor.find_literals(data):
            if compile_prefix(pattern.expression).match(data, start) is not None:
                return start
        return len(data)


class FragmentedText:
    """One text of a run that arrives in fragments. Keeps what is held back and a few bytes before it."""

    __slots__ = ("_before", "_held", "_inside_key", "_inside_secret", "_unfinished")

    def __init__(self, unfinished: UnfinishedSecrets) -> None:
        self._unfinished = unfinished
        self._before = b""
        self._held = b""
        self._inside_key = False
        self._inside_secret = False
        """Whether the shown text ends inside of a secret whose beginning was hidden."""

    def add(self, fragment: bytes, *, is_end: bool = False) -> Cut | None:
        """Add a fragment. Returns how much of the held bytes and the fragment may be shown, and its secrets.

        None, nearly always: nothing is held back or secret. `is_end`: nothing is held back, although more fragments may
        follow.
        """
        unfinished, before = self._unfinished, self._before
        data = before + self._held + fragment
        if not (self._held or self._inside_key or self._inside_secret or data.endswith(b"*")):
            redactor = unfinished.redactor
            if not redactor.may_contain_secret(data) and (is_end or unfinished.find_value(data) == len(data)):
                self._before = data[-_CONTEXT:]
                return None
        return self._search(data, len(before), is_end=is_end)

    def _search(self, data: bytes, shown: int, *, is_end: bool) -> Cut:
        redactor, was_inside_key = self._unfinished.redactor, self._inside_key
        found, inside_key = redactor.find_secrets(data[shown:] if was_inside_key else data, inside_key=was_inside_key)
        offset = shown if was_inside_key else 0
        spans = [(max(start + offset, shown), end + offset) for start, end in found if end + offset > shown]
        held_end = shown + len(self._held)
        if self._held and _REDACTED.match(data, held_end) is not None:  # the line of the fragment has its rest
            spans = [(shown, held_end), *(span for span in spans if span[0] >= held_end)]
        if self._inside_secret:
            spans = _with_rest_of_secret(data, shown, spans)
        begun = min(self._unfinished.find_value(data), self._unfinished.find_pattern(data))
        end = len(data) if is_end else self._find_end(data, shown, spans, begun, is_inside_key=inside_key)
        spans = [(start, stop) for start, stop in spans if stop <= end]
        if end > shown:
            is_cut = bool(spans) and spans[-1][1] == end == len(data) > begun
            self._inside_secret = is_cut or _ends_with_part(redactor, data[:end])
        if end == len(data):
            self._inside_key = inside_key
        elif was_inside_key or inside_key:  # search again once the rest has arrived
            self._inside_key = redactor.find_secrets(data[offset:end], inside_key=was_inside_key)[1]
        self._held = data[end:]
        first = max(min(end - _CONTEXT, begun), end - self._unfinished.max_held, 0)
        self._before = b"" if self._inside_key else data[first:end]
        return Cut(end - shown, [(start - shown, stop - shown) for start, stop in spans])

    def _find_end(self, data: bytes, shown: int, spans: list[Span], begun: int, *, is_inside_key: bool) -> int:
        """Return where the bytes to hold back begin. A secret may begin at `begun`."""
        end, max_held = begun, self._unfinished.max_held
        if is_inside_key:
            line = _KEY_LINE_AT_END.search(data, max(shown, len(data) - max_held))
            end = end if line is None else min(end, line.start())
        if self._inside_secret and spans and spans[0][0] == shown and spans[0][1] == len(data):
            end = shown
        for start, stop in spans:
            if start < end < stop:
                end = start
        return len(data) if len(data) - max(end, shown) > max_held else max(end, shown)


def _with_rest_of_secret(data: bytes, shown: int, spans: list[Span]) -> list[Span]:
    rest = _REST_OF_SECRET.match(data, shown)
    if rest is None:
        return spans
    end = rest.end()
    if end < len(data):  # the full stop of a sentence
        end = shown + len(rest[0].rstrip(b"."))
    later = [(start, stop) for start, stop in spans if start >= end]
    overlapping = [stop for start, stop in spans if start < end]
    return [(shown, max(end, *overlapping, 0)), *later] if end > shown else spans


def _ends_with_part(redactor: Redactor, data: bytes) -> bool:
    """Return whether the data end with the placeholder of a secret that may continue.

    The line of the fragment was redacted before it was read, and the secret may continue in the next line. Only a value
    of the environment is known to be complete.
    """
    found = _PLACEHOLDER_AT_END.search(data, max(len(data) - MAX_HELD, 0))
    hidden = None if found is None else redactor.hidden_by(found[0])
    return hidden is not None and hidden not in redactor.values
