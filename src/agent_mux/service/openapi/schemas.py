"""What the document says in words.

Types as schemas below `#/components/schemas`, with what the source says of each field.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import inspect

from agent_mux._util.field_descriptions import field_descriptions_of

REF_PREFIX = "#/components/schemas/"
Schema = dict[str, Any]
SCHEMA_NAMES: Mapping[str, str] = {"CommandResult": "Told", "ProblemDetails": "Problem"}
"""Class name -> name of its schema in the document, where they differ: the document's names are stable."""


class ComponentSchemas:
    """The schemas of one document, by name."""

    def __init__(self, types: Iterable[Any], more: Mapping[str, Schema]) -> None:
        """`types`: what is sent; `more`: whole JSON Schemas with their `$defs`, by name."""
        self.schemas: dict[str, Schema] = {}
        wanted = list(types)
        schemas, parts = _schema_components(wanted)
        self._schemas = list(zip(wanted, schemas, strict=True))
        for info in inspect.multi_type_info(wanted):
            for kind in _structs(info, set()):
                _describe(parts[schema_name(kind)], kind)
        for part in parts.values():
            without_nulls(part)
        for name, schema in more.items():
            self._add_whole(name, schema)
        for name, part in parts.items():
            self._add(name, part)

    def of(self, shape: Any) -> Schema:
        """The schema of one of the types."""
        return next(schema for kind, schema in self._schemas if kind is shape)

    def read(self, kind: type) -> Schema:
        """The schema of a struct that is read: null says as much as nothing. What it is made of joins the others."""
        _, parts = _schema_components((kind,))
        for one in _structs(inspect.type_info(kind), set()):
            _describe(parts[schema_name(one)], one)
        whole: Schema = parts.pop(schema_name(kind))
        for name, part in parts.items():
            self._add(name, part)
        return whole

    def _add_whole(self, name: str, schema: Schema) -> None:
        moved: Schema = _relocated(schema)
        for part, shape in moved.pop("$defs", {}).items():
            self._add(part, shape)
        moved.pop("$schema", None)
        if moved.get("$ref") != REF_PREFIX + name:
            self._add(name, moved)

    def _add(self, name: str, schema: Schema) -> None:
        before = self.schemas.setdefault(name, schema)
        if not _equal_apart_from_descriptions(before, schema):
            raise ValueError(f"two schemas are named {name}")


def schema_name(kind: type) -> str:
    """Return the name of a type's schema in the document."""
    return SCHEMA_NAMES.get(kind.__name__, kind.__name__)


def _schema_components(types: Sequence[Any]) -> tuple[list[Schema], dict[str, Schema]]:
    """Return the schema of each type, and by name the schemas that these refer to."""
    schemas, parts = msgspec.json.schema_components(types, ref_template=REF_PREFIX + "{name}")
    published = {SCHEMA_NAMES.get(name, name): _with_published_names(part) for name, part in parts.items()}
    return [_with_published_names(schema) for schema in schemas], published


def _with_published_names(value: Any) -> Any:
    match value:
        case dict():
            return {key: _published(key, part) for key, part in value.items()}
        case list():
            return [_with_published_names(part) for part in value]
    return value


def _published(key: str, value: Any) -> Any:
    if key == "title" and isinstance(value, str):
        return SCHEMA_NAMES.get(value, value)
    if key == "$ref":
        name = value.removeprefix(REF_PREFIX)
        return REF_PREFIX + SCHEMA_NAMES.get(name, name)
    return _with_published_names(value)


def without_nulls(component: Schema) -> None:
    """What is None by default is left out of what we send; it is never null."""
    for name, shape in component.get("properties", {}).items():
        if shape.get("default", ...) is None:
            del shape["default"]
            rest = [choice for choice in shape.pop("anyOf", []) if choice != {"type": "null"}]
            shape.update(rest[0] if len(rest) == 1 else {"anyOf": rest} if rest else {})
            component["properties"][name] = shape


def _equal_apart_from_descriptions(one: Schema, other: Schema) -> bool:
    """They differ in descriptions alone."""
    return bool(_without_descriptions(one) == _without_descriptions(other))


def _without_descriptions(value: Any) -> Any:
    match value:
        case dict():
            return {
                key: _without_descriptions(part) for key, part in value.items() if key not in {"description", "title"}
            }
        case list():
            return [_without_descriptions(part) for part in value]
    return value


def _relocated(value: Any) -> Any:
    """The same with references to where components are."""
    match value:
        case {"discriminator": {"mapping": mapping}}:
            kinds = {kind: place.replace("#/$defs/", REF_PREFIX) for kind, place in mapping.items()}
            rest = {key: _relocated(part) for key, part in value.items() if key != "discriminator"}
            return {**rest, "discriminator": {**value["discriminator"], "mapping": kinds}}
        case {"$ref": str(place)}:
            return {key: _relocated(part) for key, part in value.items()} | {
                "$ref": place.replace("#/$defs/", REF_PREFIX)
            }
        case dict():
            return {key: _relocated(part) for key, part in value.items()}
        case list():
            return [_relocated(part) for part in value]
    return value


def _describe(component: Schema, kind: type) -> None:
    meanings = field_descriptions_of(kind)
    for known in msgspec.structs.fields(kind):
        description, shape = meanings.get(known.name), component.get("properties", {}).get(known.encode_name)
        if description and shape is not None:
            shape.setdefault("description", " ".join(description.split()))


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
