"""Where the parts of a YAML text stand, as ruamel.yaml's parser says it, and which of it is content."""

import io
from dataclasses import dataclass
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from agent_mux.documents.document import DocumentError

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
