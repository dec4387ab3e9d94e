"""JSON with its places: where each value, key and comma stands in the text.

Comments, trailing commas, single quotes, bare keys and the numbers of JSON5 are understood, as several agents allow
them in their files. Why not a library: what there is either loses the places (`json`, `pyjson5`), fails at a trailing
comma (tree-sitter) or writes the text anew (`json-five`, whose module is also called as that of another package).


JSON that is changed in place: only the characters of the entry that changes, and the comma in front of it.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from agent_mux.sdk.documents.document import MISSING, DocumentError, FieldPath, value_at

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


_SAME_LINE = re.compile(r"[ \t]*(?:/\*[^\n\r]*?\*/[ \t]*)*(?://[^\n\r]*)?")
"""What belongs to the entry in front of it: the rest of the line, if that is a comment."""
_INDENT = re.compile(r"\n([ \t]+)\S")


class JsonDocument:
    """A JSON text, JSON5 included. Raises `DocumentError` for one that is neither, or whose value is no object."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._scanned: tuple[str, Value | None] | None = None
        self.data()

    def data(self) -> dict[str, Any]:
        """What it says. An empty text says nothing."""
        try:
            said = json.loads(self.text)  # a hundred times as fast as looking for places
        except (ValueError, RecursionError):
            root = self._root()
            return {} if root is None else dict(root.data())
        if not isinstance(said, dict):
            raise DocumentError("an object is expected", 1, 1)
        return said

    def set(self, path: FieldPath, value: Any) -> None:
        """As `Document.set`."""
        said = value_at(self.data(), path)
        if said == value and type(said) is type(value):
            return
        root = self._root()
        if root is None:
            self.text += self._dumped({}, 0) + self._newline
            root = self._root()
        assert root is not None  # noqa: S101  # it was just made
        holder, entry, rest = _descend(root, path)
        depth = len(path) - len(rest)
        if entry is not None:
            # The rest is missing from a value that is no table, or there is no rest.
            if rest:
                raise DocumentError(f"{path[depth - 1]!r} is there and no table: it has no {rest[0]!r}")
            self._put(entry.value.start, entry.value.end, self._dumped(value, self._column_of(entry)))
            return
        for part in reversed(rest[1:]):
            value = {part: value}
        self._insert(holder, rest[0], value)

    def unset(self, path: FieldPath) -> bool:
        """As `Document.unset`."""
        root = self._root()
        if root is None or value_at(self.data(), path) is MISSING:
            return False
        for length in range(len(path), 0, -1):
            holder, entry, _ = _descend(root, path[:length])
            if length == 1 or len(holder.entries or ()) > 1:
                assert entry is not None  # noqa: S101  # something is there
                self._remove(holder, entry)
                break
        return True

    @property
    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    @property
    def _unit(self) -> str:
        found = _INDENT.search(self.text)
        return found.group(1) if found else "  "

    def _root(self) -> Value | None:
        """Where everything stands in the text as it is now."""
        if self._scanned is None or self._scanned[0] is not self.text:
            root = scan(self.text)
            if root is not None and not root.is_object:
                raise DocumentError("an object is expected", 1, 1)
            self._scanned = (self.text, root)
        return self._scanned[1]

    def _insert(self, holder: Value, key: str, value: Any) -> None:
        if holder.entries is None or (not holder.is_object and key != str(len(holder.entries))):
            raise DocumentError(f"there is no table for {key!r}, nor a list with so many items")
        label = f"{json.dumps(key, ensure_ascii=False)}: " if holder.is_object else ""
        if not holder.entries:
            self._fill(holder, label, value)
        elif "\n" not in self.text[holder.start : holder.entries[-1].start]:
            self._append_inline(holder.entries[-1], label + json.dumps(value, ensure_ascii=False))
        else:
            self._append(holder.entries[-1], label, value)

    def _fill(self, holder: Value, label: str, value: Any) -> None:
        """Into an object or array that is empty, but for comments."""
        outer = self._indent_at(holder.start)
        inner = outer + self._unit
        kept = self.text[holder.start + 1 : holder.end - 1].rstrip()
        written = f"{kept}{self._newline}{inner}{label}{self._dumped(value, inner)}{self._newline}{outer}"
        self._put(holder.start + 1, holder.end - 1, written)

    def _append_inline(self, last: Entry, written: str) -> None:
        if last.comma is None:
            self._put(last.value.end, last.value.end, f", {written}")
        else:
            self._put(last.comma + 1, last.comma + 1, f" {written},")

    def _append(self, last: Entry, label: str, value: Any) -> None:
        indent = self._column_of(last)
        written = f"{self._newline}{indent}{label}{self._dumped(value, indent)}"
        at = self._end_of(last)
        if last.comma is None:
            self._put(at, at, written)
            self._put(last.value.end, last.value.end, ",")
        else:
            self._put(at, at, f"{written},")

    def _remove(self, holder: Value, entry: Entry) -> None:
        entries = holder.entries or []
        at = entries.index(entry)
        if len(entries) == 1:
            self._empty(holder, entry)
        elif at == len(entries) - 1:
            self._remove_last(entries[at - 1], entry)
        else:
            self._remove_before_others(entry)

    def _empty(self, holder: Value, entry: Entry) -> None:
        end = entry.value.end if entry.comma is None else entry.comma + 1
        before, after = self.text[holder.start + 1 : entry.start], self.text[end : holder.end - 1]
        has_comments = bool((before + after).strip())
        self._put(holder.start + 1, holder.end - 1, before.rstrip() + after if has_comments else "")

    def _remove_last(self, previous: Entry, entry: Entry) -> None:
        end = entry.value.end if entry.comma is None else entry.comma + 1
        start = self._end_of(previous)
        between = self.text[start : entry.start]
        self._put(start + len(between.rstrip()) if between.strip() else start, end, "")
        if entry.comma is None and previous.comma is not None:
            self._put(previous.comma, previous.comma + 1, "")

    def _remove_before_others(self, entry: Entry) -> None:
        assert entry.comma is not None  # noqa: S101  # others follow
        line = self.text.rfind("\n", 0, entry.start) + 1
        rest = re.compile(r"[ \t]*\r?\n?").match(self.text, entry.comma + 1)
        end = rest.end() if rest else entry.comma + 1
        owns_line = not self.text[line : entry.start].strip() and self.text[end - 1 : end] == "\n"
        self._put(line if owns_line else entry.start, end, "")

    def _end_of(self, entry: Entry) -> int:
        """Behind an entry, its comma, and the comment on the same line."""
        end = entry.value.end if entry.comma is None else entry.comma + 1
        same_line = _SAME_LINE.match(self.text, end)
        if same_line is None or not same_line.group().strip():
            return end
        rest = self.text[same_line.end() : same_line.end() + 1]
        return same_line.end() if rest in {"", "\n", "\r"} else end

    def _column_of(self, entry: Entry) -> str:
        return self._indent_at(entry.start)

    def _indent_at(self, at: int) -> str:
        line = self.text[self.text.rfind("\n", 0, at) + 1 :]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _dumped(self, value: Any, indent: str | int) -> str:
        margin = indent if isinstance(indent, str) else ""
        written = json.dumps(value, ensure_ascii=False, indent=self._unit)
        return written.replace("\n", self._newline + margin)

    def _put(self, start: int, end: int, written: str) -> None:
        self.text = self.text[:start] + written + self.text[end:]


def _descend(root: Value, path: FieldPath) -> tuple[Value, Entry | None, FieldPath]:
    """As far as the text goes along a way: the last holder, the entry that was found in it, and the rest of the way.

    Without an entry, the rest begins with what the holder lacks.
    """
    holder, entry, at = root, None, 0
    while at < len(path):
        found = next((one for one in reversed(holder.entries or ()) if one.key == path[at]), None)
        if found is None:
            return holder, None, path[at:]
        entry, at = found, at + 1
        if at < len(path):
            if found.value.entries is None:
                return holder, entry, path[at:]
            holder = found.value
    return holder, entry, ()
