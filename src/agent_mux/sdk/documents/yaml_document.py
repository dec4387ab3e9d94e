"""Where the parts of a YAML text stand, as ruamel.yaml's parser says it, and which of it is content.

YAML that is changed in place: the lines of the entry that changes, or its characters where it is in brackets.
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

_WIDEST = 100_000  # characters: lines are not wrapped


def compose(text: str) -> Any:
    """The nodes of a text, with their places; None for one without content. Raises `DocumentError`."""
    try:
        return YAML(typ="rt", pure=True).compose(text)
    except (YAMLError, ValueError, RecursionError) as error:
        raise _problem(error) from error


def load(text: str) -> Any:
    """What a text says. Raises `DocumentError`."""
    yaml = YAML(typ="safe", pure=True)
    yaml.allow_duplicate_keys = True
    try:
        return yaml.load(text)
    except (YAMLError, ValueError, RecursionError) as error:
        raise _problem(error) from error


def dump(value: Any, column: int) -> str:
    """A value in block style, all its lines but the first moved to a column; without the last line ending."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.allow_unicode = True
    yaml.width = _WIDEST
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # the order is the caller's
    written = io.StringIO()
    yaml.dump(value, written)
    lines = written.getvalue().removesuffix("\n...\n").removesuffix("\n").split("\n")
    return "\n".join([lines[0], *(" " * column + line if line else line for line in lines[1:])])


def is_mapping(node: Any) -> bool:
    """A table."""
    return str(node.id) == "mapping"


def is_scalar(node: Any) -> bool:
    """Neither a table nor a list."""
    return str(node.id) == "scalar"


def is_block(node: Any) -> bool:
    """A table or list that is written in lines, not in brackets."""
    return not is_scalar(node) and not node.flow_style and bool(node.value)


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of a table or a list, and where it stands."""

    key: str
    """Of an item: its index, as text."""
    start: int
    """Of the key; of an item in lines: of its dash."""
    value_start: int
    end: int
    """Behind its last character; the comments that follow are not of it, though the parser says so."""
    node: Any
    """Of the value."""


def entries(node: Any, text: str) -> list[Entry]:
    """Of a table or list, in order."""
    if is_scalar(node):
        return []
    if is_mapping(node):
        return [_member(key, value, text) for key, value in node.value]
    return [_item(str(at), item, text, is_block=is_block(node)) for at, item in enumerate(node.value)]


def end_of(node: Any, text: str) -> int:
    """Behind the last character of a node's content."""
    if is_block(node):
        return entries(node, text)[-1].end
    start, end = node.start_mark.index, node.end_mark.index
    return int(start + len(text[start:end].rstrip()))


def _member(key: Any, value: Any, text: str) -> Entry:
    start = int(key.start_mark.index)
    if not _is_empty(value):
        return Entry(str(key.value), start, value.start_mark.index, end_of(value, text), value)
    colon = text.find(":", key.end_mark.index)  # the place of an empty value is said to be that of what follows
    end = colon + 1 if 0 <= colon < value.start_mark.index else int(key.end_mark.index)
    return Entry(str(key.value), start, end, end, value)


def _item(key: str, item: Any, text: str, *, is_block: bool) -> Entry:
    start = int(item.start_mark.index)
    dash = text.rfind("-", 0, start) if is_block else start
    return Entry(
        key, dash, dash + 1 if _is_empty(item) else start, dash + 1 if _is_empty(item) else end_of(item, text), item
    )


def _is_empty(node: Any) -> bool:
    return is_scalar(node) and node.start_mark.index == node.end_mark.index


def _problem(error: Exception) -> DocumentError:
    mark = error.problem_mark if isinstance(error, MarkedYAMLError) else None
    said = error.problem if isinstance(error, MarkedYAMLError) else None
    where = (mark.line + 1, mark.column + 1) if mark is not None else (0, 0)
    return DocumentError(said or " ".join(str(error).split()) or "this is no YAML", *where)


_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class YamlDocument:
    """A YAML text of one document. Raises `DocumentError` for one that is none, or no mapping."""

    def __init__(self, text: str) -> None:
        self.text = text
        root = compose(text)
        if root is not None and not is_mapping(root):
            raise DocumentError("a mapping is expected", 1, 1)

    def data(self) -> dict[str, Any]:
        """As `Document.data`."""
        return cast(dict[str, Any], _plain(load(self.text)) or {})

    def set(self, path: FieldPath, value: Any) -> None:
        """As `Document.set`."""
        said = value_at(self.data(), path)
        if said == value and type(said) is type(value):
            return
        node = compose(self.text)
        if node is None:
            self._write(len(self.text), len(self.text), _deep(path, value), "\n" if self._lacks_newline() else "")
            return
        for at, part in enumerate(path):
            found = _entry(node, part, self.text)
            if found is None:
                self._insert(node, part, _deep(path[at + 1 :], value))
                return
            if at == len(path) - 1 or found.value_start == found.end:
                self._exchange(node, found, _deep(path[at + 1 :], value))
                return
            if is_scalar(found.node):
                raise DocumentError(f"{part!r} is there and no table: it has no {path[at + 1]!r}")
            node = found.node

    def unset(self, path: FieldPath) -> bool:
        """As `Document.unset`."""
        if value_at(self.data(), path) is MISSING:
            return False
        holder, way = compose(self.text), []
        for part in path:
            found = _entry(holder, part, self.text)
            if found is None:
                raise DocumentError(f"{part!r} is said by another part of the file; change it with an editor")
            way.append((holder, found))
            holder = found.node
        for holder, entry in reversed(way):
            if len(holder.value) > 1 or holder is way[0][0]:
                self._remove(holder, entry)
                break
        return True

    def _insert(self, holder: Any, key: str, value: Any) -> None:
        there = entries(holder, self.text)
        if not is_mapping(holder) and key != str(len(there)):
            raise DocumentError(f"there is neither a table nor a list with an item {key!r}")
        if is_block(holder):
            at, column = self._line_end(there[-1].end), self._column_of(there[0])
            self._write(at, at, {key: value} if is_mapping(holder) else [value], "\n" + " " * column, column)
            return
        at = len(self.text[: end_of(holder, self.text) - 1].rstrip())
        label = f"{_in_brackets(key)}: " if is_mapping(holder) else ""
        self._put(at, at, f"{', ' if there else ''}{label}{json.dumps(value, ensure_ascii=False)}")

    def _exchange(self, holder: Any, entry: Entry, value: Any) -> None:
        is_deep = isinstance(value, dict | list) and bool(value)
        if is_block(holder) and (is_deep or is_block(entry.node)):
            said = {entry.key: value} if is_mapping(holder) else [value]
            self._write(entry.start, entry.end, said, "", self._column_of(entry))
            return
        written = dump(value, 0)
        if "\n" in written or not is_block(holder):
            written = json.dumps(value, ensure_ascii=False)
        is_apart = self.text[entry.value_start - 1 : entry.value_start].isspace()
        self._put(entry.value_start, entry.end, written if is_apart else f" {written}")

    def _remove(self, holder: Any, entry: Entry) -> None:
        there = entries(holder, self.text)
        at = there.index(entry)
        line = self.text.rfind("\n", 0, entry.start) + 1
        if is_block(holder) and not self.text[line : entry.start].strip():
            self._put(line, self._next_line(entry.end), "")
        elif at + 1 < len(there):  # also the first key of an item: the dash in front of it stays
            self._put(entry.start, there[at + 1].start, "")
        else:
            self._put(there[at - 1].end if at else entry.start, entry.end, "")

    def _column_of(self, entry: Entry) -> int:
        return entry.start - (self.text.rfind("\n", 0, entry.start) + 1)

    def _line_end(self, at: int) -> int:
        end = self._next_line(at)
        return end - len(self.text[at:end]) + len(self.text[at:end].rstrip("\r\n"))

    def _next_line(self, at: int) -> int:
        return self.text.find("\n", at) + 1 or len(self.text)

    def _lacks_newline(self) -> bool:
        return bool(self.text) and not self.text.endswith("\n")

    def _write(self, start: int, end: int, value: Any, before: str, column: int = 0) -> None:
        behind = "" if self.text[end : end + 1] in {"\n", "\r"} else "\n" if end == len(self.text) else ""
        self._put(start, end, before + dump(value, column) + behind)

    def _put(self, start: int, end: int, written: str) -> None:
        newline = "\r\n" if "\r\n" in self.text else "\n"
        self.text = self.text[:start] + written.replace("\n", newline) + self.text[end:]


def _deep(path: FieldPath, value: Any) -> Any:
    """The value inside of the tables that lead to it."""
    for part in reversed(path):
        value = {part: value}
    return value


def _in_brackets(key: str) -> str:
    """A key as it is safe between braces: as it is, where it is a word and no other value, else in quotes."""
    return key if _WORD.fullmatch(key) and dump(key, 0) == key else json.dumps(key, ensure_ascii=False)


def _entry(node: Any, part: str, text: str) -> Entry | None:
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
