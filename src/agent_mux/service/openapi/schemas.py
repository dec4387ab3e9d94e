"""Schemas below `#/components/schemas`, made from types and the descriptions of their fields."""

from collections.abc import Iterable, Mapping
from typing import Any

from agent_mux._util.json_schemas import json_schema_components

REF_PREFIX = "#/components/schemas/"
Schema = dict[str, Any]
REF_TEMPLATE = REF_PREFIX + "{name}"


class ComponentSchemas:
    """The schemas of one document by name."""

    def __init__(self, types: Iterable[Any], full_schemas: Mapping[str, Schema]) -> None:
        """Collect the schemas of `types` and the whole JSON Schemas `full_schemas` with their `$defs`."""
        self.schemas: dict[str, Schema] = {}
        response_types = list(types)
        schemas, parts = json_schema_components(response_types, ref_template=REF_TEMPLATE)
        self._schemas = list(zip(response_types, schemas, strict=True))
        for part in parts.values():
            without_nulls(part)
        for name, schema in full_schemas.items():
            self._add_full(name, schema)
        for name, part in parts.items():
            self._add(name, part)

    def for_response(self, shape: Any) -> Schema:
        """Return the schema of a response type."""
        return next(schema for kind, schema in self._schemas if kind is shape)

    def for_request(self, kind: type) -> Schema:
        """Return the schema of a request type, where null means absent. Nested types join the components."""
        _, parts = json_schema_components((kind,), ref_template=REF_TEMPLATE)
        whole: Schema = parts.pop(kind.__name__)
        for name, part in parts.items():
            self._add(name, part)
        return whole

    def _add_full(self, name: str, schema: Schema) -> None:
        relocated: Schema = _relocated(schema)
        for part, shape in relocated.pop("$defs", {}).items():
            self._add(part, shape)
        relocated.pop("$schema", None)
        if relocated.get("$ref") != REF_PREFIX + name:
            self._add(name, relocated)

    def _add(self, name: str, schema: Schema) -> None:
        before = self.schemas.setdefault(name, schema)
        if not _equal_apart_from_descriptions(before, schema):
            raise ValueError(f"two schemas are named {name}")


def without_nulls(component: Schema) -> None:
    """Remove null from optional fields of a response schema: absent fields are omitted, never null."""
    for name, shape in component.get("properties", {}).items():
        if shape.get("default", ...) is None:
            del shape["default"]
            rest = [choice for choice in shape.pop("anyOf", []) if choice != {"type": "null"}]
            shape.update(rest[0] if len(rest) == 1 else {"anyOf": rest} if rest else {})
            component["properties"][name] = shape


def _equal_apart_from_descriptions(one: Schema, other: Schema) -> bool:
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
    """Return the value with references pointing to the components."""
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
