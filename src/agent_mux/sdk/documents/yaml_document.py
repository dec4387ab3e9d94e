"""YAML documents, edited in place.

The parser of ruamel.yaml provides the position of every node. A change replaces the lines of one entry, or only its
characters inside of flow style (brackets).
"""

import io
import json
import re
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from agent_mux.sdk.documents.document import MISSING, DocumentError, FieldPath, value_at

_NO_WRAPPING = 100_000  # characters; the width of a line before it is wrapped
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def compose(text: str) -> Any:
    """Parse a text into nodes with positions; None if it has no content. Raises `DocumentError`."""
    try:
        return YAML(typ="rt", pure=True).compose(text)
    except (YAMLError, ValueError, RecursionError) as error:
        raise _document_error(error) from error


def load(text: str) -> Any:
    """Parse a text into values. Raises `DocumentError`."""
    yaml = YAML(typ="safe", pure=True)
    yaml.allow_duplicate_keys = True
    try:
        return yaml.load(text)
    except (YAMLError, ValueError, RecursionError) as error:
        raise _document_error(error) from error


def dump(value: Any, column: int) -> str:
    """Format a value in block style, without a final newline; all lines but the first are indented to a column."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.allow_unicode = True
    yaml.width = _NO_WRAPPING
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # keep the caller's order
    written = io.StringIO()
    yaml.dump(value, written)
    lines = written.getvalue().removesuffix("\n...\n").removesuffix("\n").split("\n")
    return "\n".join([lines[0], *(" " * column + line if line else line for line in lines[1:])])


def is_mapping(node: Any) -> bool:
    """Return whether the node is a table."""
    return str(node.id) == "mapping"


def is_scalar(node: Any) -> bool:
    """Return whether the node is neither a table nor a list."""
    return str(node.id) == "scalar"


def is_block(node: Any) -> bool:
    """Return whether the node is a table or list in block style, that is in lines and not in brackets."""
    return not is_scalar(node) and not node.flow_style and bool(node.value)


@dataclass(frozen=True, slots=True)
class YamlEntry:
    """An entry of a table or a list with its position in the text."""

    key: str
    """Key in a table; index in a list, as text."""
    start: int
    """Position of the key, or of the dash of a list item in block style."""
    value_start: int
    end: int
    """Position after the last character, without the comments that the parser includes."""
    node: Any
    """Node of the value."""


def entries(node: Any, text: str) -> list[YamlEntry]:
    """Return the entries of a table or list in order; none of a scalar."""
    if is_scalar(node):
        return []
    if is_mapping(node):
        return [_member(key, value, text) for key, value in node.value]
    return [_item(str(index), item, text, is_block=is_block(node)) for index, item in enumerate(node.value)]


def end_of(node: Any, text: str) -> int:
    """Return the position after the last character of a node's content."""
    if is_block(node):
        return entries(node, text)[-1].end
    start, end = node.start_mark.index, node.end_mark.index
    return int(start + len(text[start:end].rstrip()))


def _member(key: Any, value: Any, text: str) -> YamlEntry:
    start = int(key.start_mark.index)
    if not _is_empty(value):
        return YamlEntry(str(key.value), start, value.start_mark.index, end_of(value, text), value)
    colon = text.find(":", key.end_mark.index)  # the parser places an empty value at the next token
    end = colon + 1 if 0 <= colon < value.start_mark.index else int(key.end_mark.index)
    return YamlEntry(str(key.value), start, end, end, value)


def _item(key: str, item: Any, text: str, *, is_block: bool) -> YamlEntry:
    start = int(item.start_mark.index)
    dash = text.rfind("-", 0, start) if is_block else start
    return YamlEntry(
        key, dash, dash + 1 if _is_empty(item) else start, dash + 1 if _is_empty(item) else end_of(item, text), item
    )


def _is_empty(node: Any) -> bool:
    return is_scalar(node) and node.start_mark.index == node.end_mark.index


def _document_error(error: Exception) -> DocumentError:
    mark = error.problem_mark if isinstance(error, MarkedYAMLError) else None
    problem = error.problem if isinstance(error, MarkedYAMLError) else None
    position = (mark.line + 1, mark.column + 1) if mark is not None else (0, 0)
    return DocumentError(problem or " ".join(str(error).split()) or "invalid YAML", *position)


class YamlDocument:
    """A YAML text with one document. Raises `DocumentError` if it is invalid or not a mapping."""

    def __init__(self, text: str) -> None:
        self.text = text
        root = compose(text)
        if root is not None and not is_mapping(root):
            raise DocumentError("a mapping is expected", 1, 1)

    def data(self) -> dict[str, Any]:
        """Return the content, see `Document.data`."""
        return cast(dict[str, Any], _plain(load(self.text)) or {})

    def set(self, path: FieldPath, value: Any) -> None:
        """Set a field, see `Document.set`."""
        current = value_at(self.data(), path)
        if current == value and type(current) is type(value):
            return
        node = compose(self.text)
        if node is None:
            self._write(len(self.text), len(self.text), _nest(path, value), "\n" if self._lacks_newline() else "")
            return
        for depth, part in enumerate(path):
            found = _entry(node, part, self.text)
            if found is None:
                self._insert(node, part, _nest(path[depth + 1 :], value))
                return
            if depth == len(path) - 1 or found.value_start == found.end:
                self._replace(node, found, _nest(path[depth + 1 :], value))
                return
            if is_scalar(found.node):
                raise DocumentError(f"{part!r} is not a table, so {path[depth + 1]!r} cannot be set in it")
            node = found.node

    def unset(self, path: FieldPath) -> bool:
        """Remove a field, see `Document.unset`."""
        if value_at(self.data(), path) is MISSING:
            return False
        holder, entries_on_path = compose(self.text), []
        for part in path:
            found = _entry(holder, part, self.text)
            if found is None:
                raise DocumentError(
                    f"{part!r} comes from another part of the file (an alias or merge key); change it in an editor"
                )
            entries_on_path.append((holder, found))
            holder = found.node
        for holder, entry in reversed(entries_on_path):
            if len(holder.value) > 1 or holder is entries_on_path[0][0]:
                self._remove(holder, entry)
                break
        return True

    def _insert(self, holder: Any, key: str, value: Any) -> None:
        siblings = entries(holder, self.text)
        if not is_mapping(holder) and key != str(len(siblings)):
            raise DocumentError(f"cannot set {key!r}: its parent is neither a table nor a list with that many items")
        if is_block(holder):
            at, column = self._line_end(siblings[-1].end), self._column_of(siblings[0])
            self._write(at, at, {key: value} if is_mapping(holder) else [value], "\n" + " " * column, column)
            return
        at = len(self.text[: end_of(holder, self.text) - 1].rstrip())
        label = f"{_flow_key(key)}: " if is_mapping(holder) else ""
        self._splice(at, at, f"{', ' if siblings else ''}{label}{json.dumps(value, ensure_ascii=False)}")

    def _replace(self, holder: Any, entry: YamlEntry, value: Any) -> None:
        is_container = isinstance(value, dict | list) and bool(value)
        if is_block(holder) and (is_container or is_block(entry.node)):
            content = {entry.key: value} if is_mapping(holder) else [value]
            self._write(entry.start, entry.end, content, "", self._column_of(entry))
            return
        written = dump(value, 0)
        if "\n" in written or not is_block(holder):
            written = json.dumps(value, ensure_ascii=False)
        has_space_before = self.text[entry.value_start - 1 : entry.value_start].isspace()
        self._splice(entry.value_start, entry.end, written if has_space_before else f" {written}")

    def _remove(self, holder: Any, entry: YamlEntry) -> None:
        siblings = entries(holder, self.text)
        at = siblings.index(entry)
        line = self.text.rfind("\n", 0, entry.start) + 1
        if is_block(holder) and not self.text[line : entry.start].strip():
            self._splice(line, self._next_line(entry.end), "")
        elif at + 1 < len(siblings):  # also for the first key of an item, to keep the dash before it
            self._splice(entry.start, siblings[at + 1].start, "")
        else:
            self._splice(siblings[at - 1].end if at else entry.start, entry.end, "")

    def _column_of(self, entry: YamlEntry) -> int:
        return entry.start - (self.text.rfind("\n", 0, entry.start) + 1)

    def _line_end(self, at: int) -> int:
        end = self._next_line(at)
        return end - len(self.text[at:end]) + len(self.text[at:end].rstrip("\r\n"))

    def _next_line(self, at: int) -> int:
        return self.text.find("\n", at) + 1 or len(self.text)

    def _lacks_newline(self) -> bool:
        return bool(self.text) and not self.text.endswith("\n")

    def _write(self, start: int, end: int, value: Any, before: str, column: int = 0) -> None:
        after = "" if self.text[end : end + 1] in {"\n", "\r"} else "\n" if end == len(self.text) else ""
        self._splice(start, end, before + dump(value, column) + after)

    def _splice(self, start: int, end: int, written: str) -> None:
        newline = "\r\n" if "\r\n" in self.text else "\n"
        self.text = self.text[:start] + written.replace("\n", newline) + self.text[end:]


def _nest(path: FieldPath, value: Any) -> Any:
    """Wrap the value in the tables of a path."""
    for part in reversed(path):
        value = {part: value}
    return value


def _flow_key(key: str) -> str:
    """Return a key for flow style: unquoted if it is a plain word that YAML reads as text, else quoted."""
    return key if _WORD.fullmatch(key) and dump(key, 0) == key else json.dumps(key, ensure_ascii=False)


def _entry(node: Any, part: str, text: str) -> YamlEntry | None:
    return next((entry for entry in reversed(entries(node, text)) if entry.key == part), None)


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case list() | set() | tuple():
            return [_plain(item) for item in value]
        case datetime() | date():
            return value.isoformat()
        case bytes():
            return value.decode("utf-8", "replace")
    return value
