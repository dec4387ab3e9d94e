"""Find secrets in bytes, replace them by placeholders of the same length, and restore them.

A placeholder consists of asterisks around a number that identifies the secret within a run. The same length keeps byte
counts, framing and JSON valid. The number distinguishes secrets for readers, and lets the run restore them in its input
to the agent: an approved command must run as the agent wrote it.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property, lru_cache, partial

from agent_mux.redaction.assignments import secret_of
from agent_mux.redaction.issuers import SecretPattern
from agent_mux.redaction.patterns import PATTERNS, PRIVATE_KEYS
from agent_mux.redaction.values import secret_values

Span = tuple[int, int]
"""Start and end of a secret in the data."""
Search = Callable[[bytes], list[tuple[int, int, int]]]
"""Returns the matches in the data: number of the literal, start, end."""

MAX_RESTORABLE = 10_000
"""Number of secrets of a run that can be restored. An agent that prints more of them prints noise."""
MAX_LITERALS = 50
"""Literals of one search. With 60, it may take twice as long; from 65 on, ten times."""
MIN_LONG_LITERAL = 4
"""Bytes by which a search compares. Shorter literals have a search of their own."""
USUAL_SEARCHES = 4
"""Searches for long literals, unless there are many values."""
SHARED_LITERALS = 15
"""Literals of patterns that are added to each search for values, if there are many."""
_LITERALS = tuple(dict.fromkeys(literal for pattern in PATTERNS for literal in pattern.literals))
_PATTERNS = {literal: [pattern for pattern in PATTERNS if literal in pattern.literals] for literal in _LITERALS}
_PLACEHOLDER = re.compile(rb"\*(\d+)\*")
_PLACEHOLDER_KEY = re.compile(rb"[xX.*]{8,}\Z|\*\d*\*|(?i:your[-_])")
"""Keys that documentation shows, `xxxxxxxxxxxx` and `your-key`, and our own placeholders."""
_KEY_TITLE = re.compile(rb"(?: BLOCK)?(?:-----| ----)|(?<=-----)|(?<=Lines:) \d+")
"""The rest of the line before a private key."""
_KEY_HEADER = re.compile(
    rb"(?:Version|Comment|Charset|Hash|MessageID|Subject|Proc-Type|DEK-Info|x-[\w-]+): [^\r\n\\\"]{0,300}"
)
_KEY_LINE = re.compile(rb"[A-Za-z0-9+/=]+")
_KEY_LINE_SEPARATOR = re.compile(rb"(?:\\+[nrt]|\*\d+\*|[\s*])+")
"""Between two lines of a key; also a line that is hidden already."""
_MIN_KEY_LINE = 32  # characters of the first line of a key
_ESCAPE_LETTERS = b"bfnrtu"


class Redactor:
    """Hides the given values and everything that matches a pattern of `patterns`."""

    def __init__(self, values: Iterable[str] = (), strings: Iterable[str] = ()) -> None:
        """Hide `values` everywhere, and `strings` only in input to the agent, where one is a whole JSON string."""
        spellings = {spelling for value in values for spelling in _spellings(value)}
        self.values = tuple(sorted(spellings, key=len, reverse=True))
        """The values in all their JSON spellings, longest first."""
        self._strings = tuple(json.dumps(string).encode() for string in strings)
        self._numbers: dict[bytes, int] = {}
        self._secrets: dict[int, bytes] = {}

    def mask(self, data: bytes) -> bytes:
        """Return the data with its secrets hidden."""
        spans, _ = self.find_secrets(data)
        return self.hide(data, spans) if spans else data

    def mask_text(self, text: str) -> str:
        """Return the text with its secrets hidden, also if it contains surrogates."""
        errors = "surrogateescape"
        try:
            data = text.encode("utf-8", errors)
        except UnicodeEncodeError:  # an unpaired surrogate of JSON, not one that encodes a byte of a file name
            errors = "surrogatepass"
            data = text.encode("utf-8", errors)
        masked = self.mask(data)
        return text if masked is data else masked.decode("utf-8", errors)

    def mask_sent(self, data: bytes) -> bytes:
        """Return input to the agent with its secrets and `strings` hidden, for the journal."""
        for string in self._strings:
            data = data.replace(string, b'"%b"' % (b"*" * (len(string) - 2)))
        return self.mask(data)

    def restore(self, data: bytes, *, is_json: bool = True) -> bytes:
        """Replace placeholders by the secrets that `mask` hid; decode JSON escapes in a secret unless `is_json`."""
        if not self._secrets or b"*" not in data:
            return data
        parts: list[bytes] = []
        position = 0
        while (found := _PLACEHOLDER.search(data, position)) is not None:
            secret = self._secrets.get(int(found[1])) if len(found[1]) < len(str(MAX_RESTORABLE)) + 1 else None
            if secret is None or not data.startswith(_placeholder(int(found[1]), len(secret)), found.start()):
                parts.append(data[position : found.start() + 1])
                position = found.start() + 1
                continue
            parts += (data[position : found.start()], secret if is_json else _unescaped(secret))
            position = found.start() + len(secret)
        return b"".join((*parts, data[position:]))

    # -- finding

    def may_contain_secret(self, data: bytes) -> bool:
        """Return False if the data certainly contain no secret. Much faster than `find_secrets`."""
        for search in self._compiled[0]:  # noqa: SIM110  # the hot path: a generator costs more than the search
            if search(data):
                return True
        return False

    @cached_property
    def _compiled(self) -> tuple[tuple[Search, ...], int, Search]:
        return _compile_searches(self.values)

    def find_literals(self, data: bytes) -> Iterator[tuple[SecretPattern, int]]:
        """Yield each pattern of which the data contain a literal, and where the literal begins, in order."""
        value_count = len(self.values)
        for number, start, _ in sorted(self._compiled[2](data), key=_start_of_match):
            if value_count <= number < value_count + len(_LITERALS):
                for pattern in _PATTERNS[_LITERALS[number - value_count]]:
                    yield pattern, start

    def hidden_by(self, placeholder: bytes) -> bytes | None:
        """Return the secret of this run that the placeholder stands for; None if the data are no placeholder."""
        found = _PLACEHOLDER.match(placeholder)
        if found is None or len(found[1]) > len(str(MAX_RESTORABLE)):
            return None
        secret = self._secrets.get(int(found[1]))
        return secret if secret is not None and placeholder == _placeholder(int(found[1]), len(secret)) else None

    def find_secrets(self, data: bytes, *, inside_key: bool = False) -> tuple[list[Span], bool]:
        """Return the secrets in order, without overlaps, and whether the data end inside of a private key.

        `inside_key`: whether the data begin inside of a private key.
        """
        quick, margin, find_all = self._compiled
        windows = _merge([(max(start - margin, 0), end + margin) for find in quick for _, start, end in find(data)])
        spans: list[Span] = []
        if inside_key:
            spans, inside_key = _key_lines(data, 0, is_first=False)
        value_count = len(self.values)
        for first, last in windows:
            for number, start, end in find_all(data[first:last]):
                if number < value_count:
                    spans += [] if _is_escape(data, first + start) else [(first + start, first + end)]
                elif number < value_count + len(_LITERALS):
                    spans += _match_patterns(
                        _LITERALS[number - value_count], data, first + start, spans[-1][1] if spans else 0
                    )
                elif not _is_end_of_key(data, first + start):
                    title = _KEY_TITLE.match(data, first + end)
                    if title is not None:
                        lines, inside_key = _key_lines(data, title.end(), is_first=True)
                        spans += lines
        return _merge(spans), inside_key

    # -- hiding

    def hide(self, data: bytes, spans: Iterable[Span]) -> bytes:
        """Return the data with placeholders in these spans."""
        parts: list[bytes] = []
        position = 0
        for start, end in spans:
            parts += (data[position:start], self._placeholder_for(data[start:end]))
            position = end
        return b"".join((*parts, data[position:]))

    def _placeholder_for(self, secret: bytes) -> bytes:
        number = self._numbers.get(secret)
        if number is None:
            number = len(self._numbers) + 1
            if number > MAX_RESTORABLE or len(_placeholder(number, 0)) > len(secret):
                return b"*" * len(secret)
            self._numbers[secret] = number
            self._secrets[number] = secret
        return _placeholder(number, len(secret))


@lru_cache(maxsize=64)  # shared by runs with the same environment
def _compile_searches(values: tuple[bytes, ...]) -> tuple[tuple[Search, ...], int, Search]:
    """Return the quick searches, the length of the longest literal, and the search that finds all matches.

    The quick searches are very fast but miss matches that overlap. A missed one overlaps a match of the same search, so
    that it is less than the longest literal away from it. The library examines many bytes at once only when it has few
    literals with different first letters, and short ones delay the search for long ones. They are therefore dealt to
    several searches.
    """
    from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind  # noqa: PLC0415  # loaded on first use

    small = Implementation.ContiguousNFA  # the least memory: there may be hundreds of runs
    literals = [*_LITERALS, *PRIVATE_KEYS]
    short = [literal for literal in literals if len(literal) < MIN_LONG_LITERAL]
    long = [literal for literal in literals if len(literal) >= MIN_LONG_LITERAL]
    count = -(-(len(long) + len(values)) // MAX_LITERALS)
    if count > USUAL_SEARCHES:  # many values
        size = MAX_LITERALS - SHARED_LITERALS
        parts = (values[start : start + size] for start in range(0, len(values), size))
        groups = [short, *_dealt(long, USUAL_SEARCHES - 1), *([*long[:SHARED_LITERALS], *part] for part in parts)]
    else:
        groups = [short, *_dealt([*long, *values], count)]
    quick = [BytesAhoCorasick(group, matchkind=MatchKind.LeftmostFirst, implementation=small) for group in groups]
    find_all = BytesAhoCorasick([*values, *literals], implementation=small).find_matches_as_indexes
    margin = max(map(len, (*values, *literals)))
    return tuple(search.find_matches_as_indexes for search in quick), margin, partial(find_all, overlapping=True)


def _dealt(literals: Sequence[bytes], count: int) -> list[Sequence[bytes]]:
    return [literals[number::count] for number in range(count)]


def _start_of_match(match: tuple[int, int, int]) -> int:
    return match[1]


def _placeholder(number: int, length: int) -> bytes:
    return (b"*%d*" % number).ljust(length, b"*")


def _spellings(value: str) -> set[bytes]:
    """Return the encoded value, and its spellings inside of JSON and of JSON inside of JSON."""
    ascii_once, once = json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]
    texts = (value, ascii_once, once, json.dumps(ascii_once)[1:-1], json.dumps(once, ensure_ascii=False)[1:-1])
    return {spelling.encode("utf-8", "surrogateescape") for spelling in texts if spelling}


def _unescaped(spelling: bytes) -> bytes:
    if b"\\" not in spelling:
        return spelling
    try:
        text: str = json.loads(b'"%b"' % spelling)
    except ValueError:
        return spelling
    return text.encode("utf-8", "surrogateescape")


def _match_patterns(literal: bytes, data: bytes, start: int, covered: int) -> list[Span]:
    """Return the secrets of the patterns with this literal, which is at `start`; `covered`: end of the last secret."""
    spans: list[Span] = []
    if _is_escape(data, start):
        return spans
    for pattern in _PATTERNS[literal]:
        if start < pattern.before or (pattern.is_placeholder_possible and start < covered):
            continue
        found = re.compile(pattern.expression).match(data, start - pattern.before)
        if found is None:
            continue
        span = secret_of(data, found) if pattern.is_placeholder_possible else found.span(found.lastgroup or 0)
        if span is not None and _PLACEHOLDER_KEY.match(data, *span) is None:
            spans.append(span)
    return spans


def _is_escape(data: bytes, start: int) -> bool:
    r"""Return whether the first byte belongs to a JSON escape such as `\n`, and thus not to a secret."""
    if data[start] not in _ESCAPE_LETTERS or data[start - 1 : start] != b"\\":
        return False
    before = data[max(start - 64, 0) : start]
    return (len(before) - len(before.rstrip(b"\\"))) % 2 == 1


def _is_end_of_key(data: bytes, start: int) -> bool:
    before = data[max(start - 40, 0) : start]
    return b"END " in before[max(before.rfind(b"-----"), 0) :]


def _key_lines(data: bytes, at: int, *, is_first: bool) -> tuple[list[Span], bool]:
    """Return the lines of a private key from position `at`, and whether it continues after the data."""
    spans: list[Span] = []
    while at < len(data):
        separator = _KEY_LINE_SEPARATOR.match(data, at)
        if separator is not None:
            at = separator.end()
            is_first = is_first and _PLACEHOLDER.search(separator[0]) is None
        header = _KEY_HEADER.match(data, at)
        if header is not None:
            at = header.end()
            continue
        line = _KEY_LINE.match(data, at)
        if line is None:
            return spans, not data[at:].strip(b"\\")  # a backslash may begin the next separator
        at = line.end()
        if is_first and len(line[0]) < _MIN_KEY_LINE and at < len(data):
            return spans, False
        is_first = False
        spans.append(line.span())
    return spans, True


def _merge(spans: list[Span]) -> list[Span]:
    result: list[Span] = []
    for start, end in sorted(spans):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        elif end > start:
            result.append((start, end))
    return result


def redact_text(text: str) -> str:
    """Return the text without keys of known formats and without the secrets of this process's environment."""
    return _cached_redactor(secret_values(os.environ)).mask_text(text)


@cache
def _cached_redactor(values: frozenset[str]) -> Redactor:
    return Redactor(values)
