"""Arguments of a tool as a typed value, and their JSON Schema: both from one msgspec struct."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from agent_loop.errors import InvalidArgumentsError

Arguments = TypeVar("Arguments", bound=msgspec.Struct)


def parsed(kind: type[Arguments], arguments: Mapping[str, Any]) -> Arguments:
    """Raises `InvalidArgumentsError`. Arguments that are not known are passed over."""
    try:
        return msgspec.convert(dict(arguments), kind)
    except msgspec.ValidationError as error:
        raise InvalidArgumentsError(f"the arguments are not what this tool takes: {error}") from error


def schema_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """JSON Schema of an object, without references: not every provider follows them. What begins with _ is ours."""
    whole = msgspec.json.schema(kind)
    schema: dict[str, Any] = _inlined(whole, whole["$defs"])
    del schema["description"]
    hidden = [name for name in schema["properties"] if name.startswith("_")]
    for name in hidden:
        del schema["properties"][name]
    return schema


def _inlined(node: Any, known: Mapping[str, Any]) -> Any:
    match node:
        case {"$ref": str(reference)}:
            return _inlined(known[reference.rpartition("/")[2]], known)
        case dict():
            return {key: _inlined(value, known) for key, value in node.items() if key not in {"$defs", "title"}}
        case list():
            return [_inlined(value, known) for value in node]
        case _:
            return node
