"""JSON documents, edited in place: a change touches only the characters of one entry and the comma before it.

The scanner records the position of each value, key and comma. It accepts comments, trailing commas, single quotes,
unquoted keys and the numbers of JSON5, because several agents allow them in their files. Existing libraries either
discard positions (`json`, `pyjson5`), fail at a trailing comma (tree-sitter) or rewrite the whole text (`json-five`,
whose module name also collides with that of another package).
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

from agent_mux.sdk.documents.document import MISSING, DocumentError, FieldPath, value_at

MAX_NESTING = 100
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
_SAME_LINE = re.compile(r"[ \t]*(?:/\*[^\n\r]*?\*/[ \t]*)*(?://[^\n\r]*)?")
"""A comment on the rest of the line, which belongs to the entry before it."""
_INDENT = re.compile(r"\n([ \t]+)\S")


@dataclass(slots=True)
class JsonValue:
    """A value with its position in the text."""

    start: int
    end: int
    plain: Any = None
    """The value, if it is neither object nor array."""
    entries: "list[JsonEntry] | None" = None
    """The entries of an object or array; None for other values."""
    is_object: bool = False

    def data(self) -> Any:
        """Return the value as plain data. The last of duplicate keys takes precedence."""
        if self.entries is None:
            return self.plain
        if self.is_object:
            return {entry.key: entry.value.data() for entry in self.entries}
        return [entry.value.data() for entry in self.entries]


@dataclass(slots=True)
class JsonEntry:
    """A member of an object, or an item of an array."""

    key: str
    """Key in an object; index in an array, as text."""
    start: int
    """Position of the key; of the value in an array."""
    value: JsonValue
    comma: int | None = field(default=None)
    """Position of the comma after the entry; None if it has none."""


def scan(text: str) -> JsonValue | None:
    """Parse a text with the positions of its parts; None if it has no value. Raises `DocumentError`."""
    return _Scanner(text).scan()


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._depth = 0

    def scan(self) -> JsonValue | None:
        if not self._peek():
            return None
        value = self._value()
        if self._peek():
            self._fail("unexpected text after the value")
        return value

    def _peek(self) -> str:
        """Skip spaces and comments; return the next character, empty at the end."""
        space = _SPACE.match(self._text, self._position)
        self._position = space.end() if space else self._position
        return self._text[self._position : self._position + 1]

    def _value(self) -> JsonValue:
        match self._peek():
            case "{" | "[":
                self._depth += 1
                if self._depth > MAX_NESTING:
                    self._fail(f"nested deeper than {MAX_NESTING}")
                container = self._container()
                self._depth -= 1
                return container
            case '"' | "'":
                start = self._position
                text = self._string()
                return JsonValue(start, self._position, text)
            case "":
                self._fail("expected a value, found the end of the text")
        return self._word()

    def _container(self) -> JsonValue:
        start, is_object = self._position, self._text[self._position] == "{"
        close = "}" if is_object else "]"
        self._position += 1
        entries = list(self._entries(close, is_object=is_object))
        self._position += 1
        return JsonValue(start, self._position, entries=entries, is_object=is_object)

    def _entries(self, close: str, *, is_object: bool) -> Iterator[JsonEntry]:
        count = 0
        while self._peek() != close:
            start = self._position
            key = self._key() if is_object else str(count)
            entry = JsonEntry(key, start, self._value())
            count += 1
            if self._peek() == ",":
                entry.comma = self._position
                self._position += 1
            elif self._peek() != close:
                self._fail(f"expected a comma or {close}")
            yield entry

    def _key(self) -> str:
        if self._text[self._position : self._position + 1] in {'"', "'"}:
            key = self._string()
        else:
            word = _WORD.match(self._text, self._position)
            if word is None:
                self._fail("expected a key")
            key, self._position = word.group(), word.end()
        if self._peek() != ":":
            self._fail("expected a colon")
        self._position += 1
        return key

    def _string(self) -> str:
        found = _STRING.match(self._text, self._position)
        if found is None:
            self._fail("unterminated string")
        self._position = found.end()
        if found.group()[0] == '"':
            try:
                return str(json.loads(found.group()))
            except json.JSONDecodeError:
                pass  # it has escapes of JSON5
        return _ESCAPE.sub(_unescaped, found.group()[1:-1])

    def _word(self) -> JsonValue:
        start = self._position
        word = _WORD.match(self._text, start)
        literal = word.group() if word else self._text[start : start + 1]
        self._position = start + len(literal)
        if literal in _WORDS:
            return JsonValue(start, self._position, _WORDS[literal])
        if not _NUMBER.fullmatch(literal):
            self._position = start
            self._fail(f"{literal[:40]!r} is not a value")
        return JsonValue(start, self._position, _number(literal))

    def _fail(self, problem: str) -> NoReturn:
        line = self._text.count("\n", 0, self._position) + 1
        column = self._position - (self._text.rfind("\n", 0, self._position) + 1) + 1
        raise DocumentError(problem, line, column)


def _number(literal: str) -> int | float:
    digits = literal.lstrip("+-").lower()
    sign = -1 if literal.startswith("-") else 1
    if digits.startswith("0x"):
        return sign * int(digits, 16)
    return sign * (int(digits) if digits.isdigit() else float(digits))


def _unescaped(escape: re.Match[str]) -> str:
    code = escape.group(1)
    return chr(int(code[1:], 16)) if len(code) > 2 and code[0] in "ux" else _ESCAPES.get(code, code)


class JsonDocument:
    """A JSON or JSON5 text. Raises `DocumentError` if it is invalid or its value is not an object."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._scanned: tuple[str, JsonValue | None] | None = None
        self.data()

    def data(self) -> dict[str, Any]:
        """Return the content, see `Document.data`; empty for an empty text."""
        try:
            content = json.loads(self.text)  # a hundred times as fast as the scanner
        except (ValueError, RecursionError):
            root = self._root()
            return {} if root is None else dict(root.data())
        if not isinstance(content, dict):
            raise DocumentError("expected an object", 1, 1)
        return content

    def set(self, path: FieldPath, value: Any) -> None:
        """Set a field, see `Document.set`."""
        current = value_at(self.data(), path)
        if current == value and type(current) is type(value):
            return
        root = self._root()
        if root is None:
            self.text += self._format({}, "") + self._newline
            root = self._root()
        assert root is not None  # noqa: S101  # it was just created
        holder, entry, rest = _descend(root, path)
        depth = len(path) - len(rest)
        if entry is not None:
            # Either the whole path exists, or it leads through a value that is not a table.
            if rest:
                raise DocumentError(f"{path[depth - 1]!r} is not a table, so {rest[0]!r} cannot be set in it")
            self._splice(entry.value.start, entry.value.end, self._format(value, self._indent_at(entry.start)))
            return
        for part in reversed(rest[1:]):
            value = {part: value}
        self._insert(holder, rest[0], value)

    def unset(self, path: FieldPath) -> bool:
        """Remove a field, see `Document.unset`."""
        root = self._root()
        if root is None or value_at(self.data(), path) is MISSING:
            return False
        for length in range(len(path), 0, -1):
            holder, entry, _ = _descend(root, path[:length])
            if length == 1 or len(holder.entries or ()) > 1:
                assert entry is not None  # noqa: S101  # the path has a value
                self._remove(holder, entry)
                break
        return True

    @property
    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    @property
    def _indent_unit(self) -> str:
        found = _INDENT.search(self.text)
        return found.group(1) if found else "  "

    def _root(self) -> JsonValue | None:
        """Return the scanned root of the current text."""
        if self._scanned is None or self._scanned[0] is not self.text:
            root = scan(self.text)
            if root is not None and not root.is_object:
                raise DocumentError("expected an object", 1, 1)
            self._scanned = (self.text, root)
        return self._scanned[1]

    def _insert(self, holder: JsonValue, key: str, value: Any) -> None:
        if holder.entries is None or (not holder.is_object and key != str(len(holder.entries))):
            raise DocumentError(f"cannot set {key!r}: its parent is neither a table nor a list with that many items")
        label = f"{json.dumps(key, ensure_ascii=False)}: " if holder.is_object else ""
        if not holder.entries:
            self._fill(holder, label, value)
        elif "\n" not in self.text[holder.start : holder.entries[-1].start]:
            self._append_inline(holder.entries[-1], label + json.dumps(value, ensure_ascii=False))
        else:
            self._append(holder.entries[-1], label, value)

    def _fill(self, holder: JsonValue, label: str, value: Any) -> None:
        """Insert into an object or array without entries; it may contain comments."""
        outer = self._indent_at(holder.start)
        inner = outer + self._indent_unit
        kept = self.text[holder.start + 1 : holder.end - 1].rstrip()
        written = f"{kept}{self._newline}{inner}{label}{self._format(value, inner)}{self._newline}{outer}"
        self._splice(holder.start + 1, holder.end - 1, written)

    def _append_inline(self, last: JsonEntry, written: str) -> None:
        if last.comma is None:
            self._splice(last.value.end, last.value.end, f", {written}")
        else:
            self._splice(last.comma + 1, last.comma + 1, f" {written},")

    def _append(self, last: JsonEntry, label: str, value: Any) -> None:
        indent = self._indent_at(last.start)
        written = f"{self._newline}{indent}{label}{self._format(value, indent)}"
        at = self._end_of(last)
        if last.comma is None:
            self._splice(at, at, written)
            self._splice(last.value.end, last.value.end, ",")
        else:
            self._splice(at, at, f"{written},")

    def _remove(self, holder: JsonValue, entry: JsonEntry) -> None:
        entries = holder.entries or []
        at = entries.index(entry)
        if len(entries) == 1:
            self._empty(holder, entry)
        elif at == len(entries) - 1:
            self._remove_last(entries[at - 1], entry)
        else:
            self._remove_before_others(entry)

    def _empty(self, holder: JsonValue, entry: JsonEntry) -> None:
        end = entry.value.end if entry.comma is None else entry.comma + 1
        before, after = self.text[holder.start + 1 : entry.start], self.text[end : holder.end - 1]
        has_comments = bool((before + after).strip())
        self._splice(holder.start + 1, holder.end - 1, before.rstrip() + after if has_comments else "")

    def _remove_last(self, previous: JsonEntry, entry: JsonEntry) -> None:
        end = entry.value.end if entry.comma is None else entry.comma + 1
        start = self._end_of(previous)
        between = self.text[start : entry.start]
        self._splice(start + len(between.rstrip()) if between.strip() else start, end, "")
        if entry.comma is None and previous.comma is not None:
            self._splice(previous.comma, previous.comma + 1, "")

    def _remove_before_others(self, entry: JsonEntry) -> None:
        assert entry.comma is not None  # noqa: S101  # others follow
        line = self.text.rfind("\n", 0, entry.start) + 1
        rest = re.compile(r"[ \t]*\r?\n?").match(self.text, entry.comma + 1)
        end = rest.end() if rest else entry.comma + 1
        owns_line = not self.text[line : entry.start].strip() and self.text[end - 1 : end] == "\n"
        self._splice(line if owns_line else entry.start, end, "")

    def _end_of(self, entry: JsonEntry) -> int:
        """Return the position after an entry, its comma, and a comment on the same line."""
        end = entry.value.end if entry.comma is None else entry.comma + 1
        same_line = _SAME_LINE.match(self.text, end)
        if same_line is None or not same_line.group().strip():
            return end
        rest = self.text[same_line.end() : same_line.end() + 1]
        return same_line.end() if rest in {"", "\n", "\r"} else end

    def _indent_at(self, at: int) -> str:
        line = self.text[self.text.rfind("\n", 0, at) + 1 :]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _format(self, value: Any, indent: str) -> str:
        written = json.dumps(value, ensure_ascii=False, indent=self._indent_unit)
        return written.replace("\n", self._newline + indent)

    def _splice(self, start: int, end: int, written: str) -> None:
        self.text = self.text[:start] + written + self.text[end:]


def _descend(root: JsonValue, path: FieldPath) -> tuple[JsonValue, JsonEntry | None, FieldPath]:
    """Follow a path as far as it exists: return the last container, the entry found in it, and the rest of the path.

    The entry is None if the container has no entry for the first part of the rest.
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
