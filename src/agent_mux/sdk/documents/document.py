"""What every format can do.

Names of fields as people write them: `permissions.allow`, `mcpServers."my.server".command`.


Ways through plain values: tables and lists.
"""

import json
import re
import tomllib
from typing import Any, Literal, Protocol

Format = Literal["json", "toml", "yaml"]
"""`json` is read with comments, trailing commas and the other freedoms of JSON5; what is written into it is JSON."""
FieldPath = tuple[str, ...]
"""The way to a value through tables and lists; a number, as text, counts items from 0."""


class DocumentError(ValueError):
    """The text is not of its format, or cannot be changed as asked. `line` and `column` count from 1; 0: unknown."""

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        super().__init__(problem, line, column)
        self.problem, self.line, self.column = problem, line, column

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}: {self.problem}" if self.line else self.problem


class Document(Protocol):
    """A text, and what it says."""

    @property
    def text(self) -> str:
        """As it is now."""
        ...

    def data(self) -> dict[str, Any]:
        """What it says, as plain values. Dates are ISO 8601 text."""
        ...

    def set(self, path: FieldPath, value: Any) -> None:
        """Say something else, or something new: tables on the way are made. Raises `DocumentError`."""
        ...

    def unset(self, path: FieldPath) -> bool:
        """Say it no more, nor the tables that are empty then. False: it was not said."""
        ...


_BARE = re.compile(r"[A-Za-z0-9_-]+")


def parse_field(name: str) -> FieldPath:
    """The way that a dotted name describes; parts with other characters are quoted. Raises `DocumentError`."""
    try:
        found: Any = tomllib.loads(f"{name} = 0") if "\n" not in name else {}
    except tomllib.TOMLDecodeError:
        found = {}
    path: list[str] = []
    while isinstance(found, dict) and len(found) == 1:
        ((part, found),) = found.items()
        path.append(part)
    if not path or found != 0:
        raise DocumentError(f"{name!r} names no field; write it as in permissions.allow, quote other characters")
    return tuple(path)


def field_name(path: FieldPath) -> str:
    """A way, as people write it."""
    return ".".join(part if _BARE.fullmatch(part) else json.dumps(part, ensure_ascii=False) for part in path)


MISSING = object()


def value_at(data: Any, path: FieldPath, default: Any = MISSING) -> Any:
    """What is there; `default` where nothing is."""
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
    """The same with another value there; tables that are missing are made. Raises `DocumentError`."""
    if not path:
        return value
    part, rest = path[0], path[1:]
    match data:
        case dict():
            return {**data, part: with_value(data.get(part, {}), rest, value)}
        case list() if part.isdigit() and int(part) <= len(data):
            at = int(part)
            there = data[at] if at < len(data) else {}
            return [*data[:at], with_value(there, rest, value), *data[at + 1 :]]
    kind = "a list with fewer items" if isinstance(data, list) else "no table"
    raise DocumentError(f"there is {kind} at the place of {part!r}")


def without_value(data: Any, path: FieldPath) -> Any:
    """The same without what is there, and without the tables that are empty then (but for the outermost)."""
    part, rest = path[0], path[1:]
    if rest:
        inner = without_value(value_at(data, (part,)), rest)
        if inner not in ({}, []):
            return with_value(data, (part,), inner)
    if isinstance(data, list):
        return [item for at, item in enumerate(data) if at != int(part)]
    return {key: item for key, item in data.items() if key != part}
