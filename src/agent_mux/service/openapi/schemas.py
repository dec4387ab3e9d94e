"""What the document says in words.

Types as schemas below `#/components/schemas`, with what the source says of each field.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import inspect

from agent_mux._util.field_descriptions import meanings_of

PLACE = "#/components/schemas/"
Schema = dict[str, Any]


class Components:
    """The schemas of one document, by name."""

    def __init__(self, types: Iterable[Any], more: Mapping[str, Schema]) -> None:
        """`types`: what is sent; `more`: whole JSON Schemas with their `$defs`, by name."""
        self.schemas: dict[str, Schema] = {}
        wanted = list(types)
        told, parts = msgspec.json.schema_components(wanted, ref_template=PLACE + "{name}")
        self._told = list(zip(wanted, told, strict=True))
        for info in inspect.multi_type_info(wanted):
            for kind in _structs(info, set()):
                _describe(parts[kind.__name__], kind)
        for part in parts.values():
            without_nulls(part)
        for name, schema in more.items():
            self._add_whole(name, schema)
        for name, part in parts.items():
            self._add(name, part)

    def of(self, shape: Any) -> Schema:
        """The schema of one of the types."""
        return next(schema for kind, schema in self._told if kind is shape)

    def read(self, kind: type) -> Schema:
        """The schema of a struct that is read: null says as much as nothing. What it is made of joins the others."""
        _, parts = msgspec.json.schema_components((kind,), ref_template=PLACE + "{name}")
        for one in _structs(inspect.type_info(kind), set()):
            _describe(parts[one.__name__], one)
        whole: Schema = parts.pop(kind.__name__)
        for name, part in parts.items():
            self._add(name, part)
        return whole

    def _add_whole(self, name: str, schema: Schema) -> None:
        moved: Schema = _moved(schema)
        for part, shape in moved.pop("$defs", {}).items():
            self._add(part, shape)
        moved.pop("$schema", None)
        if moved.get("$ref") != PLACE + name:
            self._add(name, moved)

    def _add(self, name: str, schema: Schema) -> None:
        before = self.schemas.setdefault(name, schema)
        if not _is_described(before, schema):
            raise ValueError(f"two schemas are named {name}")


def without_nulls(component: Schema) -> None:
    """What is None by default is left out of what we send; it is never null."""
    for name, shape in component.get("properties", {}).items():
        if shape.get("default", ...) is None:
            del shape["default"]
            rest = [choice for choice in shape.pop("anyOf", []) if choice != {"type": "null"}]
            shape.update(rest[0] if len(rest) == 1 else {"anyOf": rest} if rest else {})
            component["properties"][name] = shape


def _is_described(one: Schema, other: Schema) -> bool:
    """They differ in descriptions alone."""
    return bool(_bare(one) == _bare(other))


def _bare(value: Any) -> Any:
    match value:
        case dict():
            return {key: _bare(part) for key, part in value.items() if key not in {"description", "title"}}
        case list():
            return [_bare(part) for part in value]
    return value


def _moved(value: Any) -> Any:
    """The same with references to where components are."""
    match value:
        case {"discriminator": {"mapping": mapping}}:
            kinds = {kind: place.replace("#/$defs/", PLACE) for kind, place in mapping.items()}
            rest = {key: _moved(part) for key, part in value.items() if key != "discriminator"}
            return {**rest, "discriminator": {**value["discriminator"], "mapping": kinds}}
        case {"$ref": str(place)}:
            return {key: _moved(part) for key, part in value.items()} | {"$ref": place.replace("#/$defs/", PLACE)}
        case dict():
            return {key: _moved(part) for key, part in value.items()}
        case list():
            return [_moved(part) for part in value]
    return value


def _describe(component: Schema, kind: type) -> None:
    meanings = meanings_of(kind)
    for known in msgspec.structs.fields(kind):
        meaning, shape = meanings.get(known.name), component.get("properties", {}).get(known.encode_name)
        if meaning and shape is not None:
            shape.setdefault("description", " ".join(meaning.split()))


def _structs(info: Any, seen: set[type]) -> Iterator[type]:
    """Every struct that a type is made of."""
    match info:
        case inspect.StructType(cls=kind, fields=fields):
            if kind not in seen:
                seen.add(kind)
                yield kind
                for known in fields:
                    yield from _structs(known.type, seen)
        case inspect.UnionType(types=types) | inspect.TupleType(item_types=types):
            for one in types:
                yield from _structs(one, seen)
        case inspect.ListType(item_type=one) | inspect.VarTupleType(item_type=one) | inspect.DictType(value_type=one):
            yield from _structs(one, seen)
        case inspect.Metadata(type=one):
            yield from _structs(one, seen)
