"""JSON with its places: where each value, key and comma stands in the text.

Comments, trailing commas, single quotes, bare keys and the numbers of JSON5 are understood, as several agents allow
them in their files. Why not a library: what there is either loses the places (`json`, `pyjson5`), fails at a trailing
comma (tree-sitter) or writes the text anew (`json-five`, whose module is also called as that of another package).
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from agent_mux.documents.document import DocumentError

DEEPEST = 100
_SPACE = re.compile(r"(?:[\s\ufeff]+|//[^\n\r]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"' + r"|'(?:[^'\\\n]|\\.)*'", re.DOTALL)
_WORD = re.compile(r"[^\s,:\[\]{}\"'/]+")
_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
_WORDS = {
    "true": True, "false": False, "null": None, "NaN": float("nan"), "Infinity": float("inf"),
    "+Infinity": float("inf"), "-Infinity": float("-inf"),
}  # fmt: skip
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\r\n|.)", re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0", "\n": "", "\r\n": ""}


@dataclass(slots=True)
class Value:
    """A value and where it stands."""

    start: int
    end: int
    plain: Any = None
    """Of what is neither object nor array."""
    entries: "list[Entry] | None" = None
    """Of an object or an array."""
    is_object: bool = False

    def data(self) -> Any:
        """As plain values. Of keys that are there twice, the last counts."""
        if self.entries is None:
            return self.plain
        if self.is_object:
            return {entry.key: entry.value.data() for entry in self.entries}
        return [entry.value.data() for entry in self.entries]


@dataclass(slots=True)
class Entry:
    """A member of an object, or an item of an array."""

    key: str
    """Of an item: its index, as text."""
    start: int
    """Of the key; of an item: of its value."""
    value: Value
    comma: int | None = field(default=None)
    """Where the comma behind it stands."""


def scan(text: str) -> Value | None:
    """The value of a text; None where there is none. Raises `DocumentError`."""
    return _Scanner(text).whole()


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    def whole(self) -> Value | None:
        if not self._peek():
            return None
        value = self._value()
        if self._peek():
            self._fail("nothing more is expected")
        return value

    def _peek(self) -> str:
        """The next character that is no space or comment; empty at the end."""
        space = _SPACE.match(self._text, self._at)
        self._at = space.end() if space else self._at
        return self._text[self._at : self._at + 1]

    def _value(self) -> Value:
        match self._peek():
            case "{" | "[":
                self._depth += 1
                if self._depth > DEEPEST:
                    self._fail(f"nested deeper than {DEEPEST}")
                found = self._container()
                self._depth -= 1
                return found
            case '"' | "'":
                start = self._at
                text = self._string()
                return Value(start, self._at, text)
            case "":
                self._fail("a value is expected, but the text ends")
        return self._word()

    def _container(self) -> Value:
        start, is_object = self._at, self._text[self._at] == "{"
        close = "}" if is_object else "]"
        self._at += 1
        entries = list(self._entries(close, is_object=is_object))
        self._at += 1
        return Value(start, self._at, entries=entries, is_object=is_object)

    def _entries(self, close: str, *, is_object: bool) -> Iterator[Entry]:
        count = 0
        while self._peek() != close:
            start = self._at
            key = self._key() if is_object else str(count)
            entry = Entry(key, start, self._value())
            count += 1
            if self._peek() == ",":
                entry.comma = self._at
                self._at += 1
            elif self._peek() != close:
                self._fail(f"a comma or {close} is expected")
            yield entry

    def _key(self) -> str:
        if self._text[self._at : self._at + 1] in {'"', "'"}:
            key = self._string()
        else:
            word = _WORD.match(self._text, self._at)
            if word is None:
                self._fail("a key is expected")
            key, self._at = word.group(), word.end()
        if self._peek() != ":":
            self._fail("a colon is expected")
        self._at += 1
        return key

    def _string(self) -> str:
        found = _STRING.match(self._text, self._at)
        if found is None:
            self._fail("a string does not end")
        self._at = found.end()
        if found.group()[0] == '"':
            try:
                return str(json.loads(found.group()))
            except json.JSONDecodeError:
                pass  # with escapes of JSON5
        return _ESCAPE.sub(_unescaped, found.group()[1:-1])

    def _word(self) -> Value:
        start = self._at
        word = _WORD.match(self._text, start)
        said = word.group() if word else self._text[start : start + 1]
        self._at = start + len(said)
        if said in _WORDS:
            return Value(start, self._at, _WORDS[said])
        if not _NUMBER.fullmatch(said):
            self._at = start
            self._fail(f"{said[:40]!r} is no value")
        return Value(start, self._at, _number(said))

    def _fail(self, problem: str) -> NoReturn:
        line = self._text.count("\n", 0, self._at) + 1
        column = self._at - (self._text.rfind("\n", 0, self._at) + 1) + 1
        raise DocumentError(problem, line, column)


def _number(said: str) -> int | float:
    digits = said.lstrip("+-").lower()
    sign = -1 if said.startswith("-") else 1
    if digits.startswith("0x"):
        return sign * int(digits, 16)
    return sign * (int(digits) if digits.isdigit() else float(digits))


def _unescaped(escape: re.Match[str]) -> str:
    said = escape.group(1)
    return chr(int(said[1:], 16)) if len(said) > 2 and said[0] in "ux" else _ESCAPES.get(said, said)
