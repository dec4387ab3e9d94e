"""JSON that is changed in place: only the characters of the entry that changes, and the comma in front of it."""

import json
import re
from typing import Any

from agent_mux.documents.document import DocumentError, FieldPath
from agent_mux.documents.json_scanner import Entry, Value, scan
from agent_mux.documents.values import MISSING, value_at

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
