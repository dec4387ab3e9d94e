"""Finds secrets in bytes, hides them, and can put them back.

A secret becomes as many bytes as it had: asterisks around a number that is its own in this run. So counts of bytes,
framing and JSON hold; whoever reads can tell two secrets apart; and what goes to the agent can be given its secrets
back: an approved command must run as the agent wrote it.
"""

import json
import re
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache, partial

from agent_mux.redaction.patterns import PRIVATE_KEY, SHAPES

Span = tuple[int, int]
Find = Callable[[bytes], list[tuple[int, int, int]]]

MOST_REMEMBERED = 10_000
"""Secrets that can be put back. An agent that prints more of them prints noise."""
MOST_AT_ONCE = 60
"""Patterns. From 65 on, a search takes ten times as long."""
BALLAST = 15
_LITERALS = tuple((literal, shape) for shape in SHAPES for literal in shape.literals)
_TOKEN = re.compile(rb"\*(\d+)\*")
_BASE64 = re.compile(rb"[A-Za-z0-9+/=]+")
_BETWEEN = re.compile(rb"(?:\\+[nrt]|[\s*])+")
_SHORTEST_KEY_LINE = 32
_ESCAPE_LETTERS = b"bfnrtu"


class Redactor:
    """Hides the given values, and whatever has the shape of a key."""

    def __init__(self, values: Iterable[str] = (), strings: Iterable[str] = ()) -> None:
        """`values` are hidden everywhere; `strings` only where one is a whole JSON string of what the agent is sent."""
        spelled = {spelling for value in values for spelling in _spellings(value)}
        self.values = tuple(sorted(spelled, key=len, reverse=True))
        self._strings = tuple(json.dumps(string).encode() for string in strings)
        self._numbers: dict[bytes, int] = {}
        self._secrets: dict[int, bytes] = {}

    def mask(self, data: bytes) -> bytes:
        """The same with its secrets hidden."""
        spans, _ = self.find(data)
        return self.hide(data, spans) if spans else data

    def mask_text(self, text: str) -> str:
        """As `mask`, for text."""
        errors = "surrogateescape"
        try:
            data = text.encode("utf-8", errors)
        except UnicodeEncodeError:  # half of a pair, as JSON can have it: no byte of a file name
            errors = "surrogatepass"
            data = text.encode("utf-8", errors)
        masked = self.mask(data)
        return text if masked is data else masked.decode("utf-8", errors)

    def mask_sent(self, data: bytes) -> bytes:
        """What is sent to the agent, as it may be written down."""
        for string in self._strings:
            data = data.replace(string, b'"%b"' % (b"*" * (len(string) - 2)))
        return self.mask(data)

    def restore(self, data: bytes, *, is_json: bool = True) -> bytes:
        """Put back what `mask` hid, as it was spelled; where that was JSON and this is not, without its escapes."""
        if not self._secrets or b"*" not in data:
            return data
        pieces: list[bytes] = []
        at = 0
        while (found := _TOKEN.search(data, at)) is not None:
            secret = self._secrets.get(int(found[1])) if len(found[1]) < len(str(MOST_REMEMBERED)) + 1 else None
            if secret is None or not data.startswith(_token(int(found[1]), len(secret)), found.start()):
                pieces.append(data[at : found.start() + 1])
                at = found.start() + 1
                continue
            pieces += (data[at : found.start()], secret if is_json else _unescaped(secret))
            at = found.start() + len(secret)
        return b"".join((*pieces, data[at:]))

    # -- finding

    def may_have(self, data: bytes) -> bool:
        """There may be a secret; False: there is none."""
        for search in self._searches:  # noqa: SIM110  # the hot path: a generator costs more than the search
            if search(data):
                return True
        return False

    @property
    def _searches(self) -> tuple[Find, ...]:
        return self._compiled[0]

    @cached_property
    def _compiled(self) -> tuple[tuple[Find, ...], Find]:
        return _searches_for(self.values)

    def find(self, data: bytes, *, inside_key: bool = False) -> tuple[list[Span], bool]:
        """Where the secrets are, in order, without overlaps; and whether a private key is still open at the end.

        `inside_key`: the data begin inside of one.
        """
        if not inside_key and not self.may_have(data):
            return [], False
        spans: list[Span] = []
        if inside_key:
            spans, inside_key = _key_lines(data, 0, is_first=False)
        known = len(self.values)
        for number, start, end in self._compiled[1](data):
            if number < known:
                spans += [] if _is_escape(data, start) else [(start, end)]
            elif number < known + len(_LITERALS):
                spans += self._of_shape(number - known, data, start)
            elif not _is_end_of_key(data, start):
                lines, inside_key = _key_lines(data, end, is_first=True)
                spans += lines
        return _merged(spans), inside_key

    def _of_shape(self, number: int, data: bytes, start: int) -> list[Span]:
        found = _LITERALS[number][1].expression.match(data, start)
        if found is None or _is_escape(data, start):
            return []
        return [found.span(found.lastgroup or 0)]

    # -- hiding

    def hide(self, data: bytes, spans: Iterable[Span]) -> bytes:
        """The data with asterisks at these places."""
        pieces: list[bytes] = []
        at = 0
        for start, end in spans:
            pieces += (data[at:start], self._stand_in(data[start:end]))
            at = end
        return b"".join((*pieces, data[at:]))

    def _stand_in(self, secret: bytes) -> bytes:
        number = self._numbers.get(secret)
        if number is None:
            number = len(self._numbers) + 1
            if number > MOST_REMEMBERED or len(_token(number, 0)) > len(secret):
                return b"*" * len(secret)
            self._numbers[secret] = number
            self._secrets[number] = secret
        return _token(number, len(secret))


@lru_cache(maxsize=64)  # runs with the same environment share them
def _searches_for(values: tuple[bytes, ...]) -> tuple[tuple[Find, ...], Find]:
    """Those that tell whether there is anything, and the one that finds everything.

    The first are very fast, and may miss what overlaps with something that is found. The library looks at many bytes at
    once when it has few patterns, and they begin with different letters: so there are several where there are many
    values, each with some of the literals.
    """
    from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind  # noqa: PLC0415  # when there is work

    small = Implementation.ContiguousNFA  # there may be hundreds of runs
    fixed = [*(literal for literal, _ in _LITERALS), PRIVATE_KEY]
    groups = [[*fixed, *values]]
    if len(groups[0]) > MOST_AT_ONCE:
        room = MOST_AT_ONCE - BALLAST
        slices = (values[at : at + room] for at in range(0, len(values), room))
        groups = [fixed, *([*fixed[:BALLAST], *some] for some in slices)]
    quick = [BytesAhoCorasick(group, matchkind=MatchKind.LeftmostFirst, implementation=small) for group in groups]
    everything = BytesAhoCorasick([*values, *fixed], implementation=small).find_matches_as_indexes
    return tuple(one.find_matches_as_indexes for one in quick), partial(everything, overlapping=True)


def _token(number: int, length: int) -> bytes:
    return (b"*%d*" % number).ljust(length, b"*")


def _spellings(value: str) -> set[bytes]:
    """As it is, and inside of JSON: also inside of JSON inside of JSON."""
    ascii_once, once = json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]
    every = (value, ascii_once, once, json.dumps(ascii_once)[1:-1], json.dumps(once, ensure_ascii=False)[1:-1])
    return {spelling.encode("utf-8", "surrogateescape") for spelling in every if spelling}


def _unescaped(spelled: bytes) -> bytes:
    if b"\\" not in spelled:
        return spelled
    try:
        text: str = json.loads(b'"%b"' % spelled)
    except ValueError:
        return spelled
    return text.encode("utf-8", "surrogateescape")


def _is_escape(data: bytes, start: int) -> bool:
    r"""The first byte is the `n` of a `\n` or the like: it is not part of a secret, and JSON needs it."""
    if data[start] not in _ESCAPE_LETTERS or data[start - 1 : start] != b"\\":
        return False
    before = data[max(start - 64, 0) : start]
    return (len(before) - len(before.rstrip(b"\\"))) % 2 == 1


def _is_end_of_key(data: bytes, start: int) -> bool:
    before = data[max(start - 40, 0) : start]
    return b"END " in before[max(before.rfind(b"-----"), 0) :]


def _key_lines(data: bytes, at: int, *, is_first: bool) -> tuple[list[Span], bool]:
    """The lines of a private key from here, and whether it goes on behind the data."""
    spans: list[Span] = []
    while at < len(data):
        between = _BETWEEN.match(data, at)
        at = between.end() if between is not None else at
        line = _BASE64.match(data, at)
        if line is None:
            return spans, at == len(data)
        at = line.end()
        if is_first and len(line[0]) < _SHORTEST_KEY_LINE and at < len(data):
            return spans, False
        is_first = False
        spans.append(line.span())
    return spans, True


def _merged(spans: list[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    return merged
