"""The `Document` protocol, field paths, and access to plain values by path.

A field path leads to a value through tables and lists. People write it as a dotted name: `permissions.allow`,
`mcpServers."my.server".command`.
"""

import json
import re
from typing import Any, Literal, Protocol

Format = Literal["json", "toml", "yaml"]
"""`json` accepts JSON5 (comments, trailing commas and so on) when reading; inserted values are plain JSON."""
FieldPath = tuple[str, ...]
"""Keys of tables and indexes of lists (from 0, as text) that lead to a value."""


class DocumentError(ValueError):
    """The text is not valid in its format, or cannot be changed as requested.

    `line` and `column` count from 1; 0 means unknown.
    """

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        super().__init__(problem, line, column)
        self.problem, self.line, self.column = problem, line, column

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.problem}" if self.line else self.problem


class Document(Protocol):
    """A configuration text that can be read and changed by field."""

    @property
    def text(self) -> str:
        """The current text, including all changes."""
        ...

    def data(self) -> dict[str, Any]:
        """Return the content as plain values, with dates as ISO 8601 text."""
        ...

    def set(self, path: FieldPath, value: Any) -> None:
        """Set a field, creating missing tables on the path. Raises `DocumentError`."""
        ...

    def unset(self, path: FieldPath) -> bool:
        """Remove a field and the tables that become empty. Return False if the field is not set."""
        ...


_BARE_KEY = r"[A-Za-z0-9_-]+"


def parse_field(name: str) -> FieldPath:
    """Parse a dotted name, whose parts are quoted as in TOML where necessary. Raises `DocumentError`."""
    import tomllib  # noqa: PLC0415  # a run does without

    try:
        parsed: Any = tomllib.loads(f"{name} = 0") if "\n" not in name else {}
    except tomllib.TOMLDecodeError:
        parsed = {}
    path: list[str] = []
    while isinstance(parsed, dict) and len(parsed) == 1:
        ((part, parsed),) = parsed.items()
        path.append(part)
    if not path or parsed != 0:
        raise DocumentError(
            f'{name!r} is not a field name; write permissions.allow, or "my.key".command for keys with dots'
        )
    return tuple(path)


def field_name(path: FieldPath) -> str:
    """Format a path as a dotted name; the inverse of `parse_field`."""
    return ".".join(part if re.fullmatch(_BARE_KEY, part) else json.dumps(part, ensure_ascii=False) for part in path)


MISSING = object()
"""Returned by `value_at` for a path without a value."""


def value_at(data: Any, path: FieldPath, default: Any = MISSING) -> Any:
    """Return the value at a path in plain data, or `default` if there is none."""
    for part in path:
        match data:
            case dict() if part in data:
                data = data[part]
            case list() if part.isdigit() and int(part) < len(data):
                data = data[int(part)]
            case _:
                return default
    return data


def with_value(data: Any, path: FieldPath, value: Any) -> Any:
    """Return a copy with the value set at a path, creating missing tables. Raises `DocumentError`."""
    if not path:
        return value
    part, rest = path[0], path[1:]
    match data:
        case dict():
            return {**data, part: with_value(data.get(part, {}), rest, value)}
        case list() if part.isdigit() and int(part) <= len(data):
            index = int(part)
            item = data[index] if index < len(data) else {}
            return [*data[:index], with_value(item, rest, value), *data[index + 1 :]]
    kind = "a list with fewer items" if isinstance(data, list) else "not a table"
    raise DocumentError(f"cannot set {part!r}: its parent is {kind}")


def without_value(data: Any, path: FieldPath) -> Any:
    """Return a copy without the value at a path, and without tables that become empty, except the outermost."""
    part, rest = path[0], path[1:]
    if rest:
        inner = without_value(value_at(data, (part,)), rest)
        if inner not in ({}, []):
            return with_value(data, (part,), inner)
    if isinstance(data, list):
        return [item for index, item in enumerate(data) if index != int(part)]
    return {key: item for key, item in data.items() if key != part}
