"""Ways through plain values: tables and lists."""

from typing import Any

from agent_mux.documents.document import DocumentError, FieldPath

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
