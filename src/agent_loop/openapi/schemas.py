"""Schemas of an OpenAPI document as JSON Schemas for a model: references become `$defs`, and the size is limited."""

import json
from collections.abc import Mapping
from typing import Any

from agent_loop.openapi.documents import Document

MAX_SCHEMA = 60_000
"""Characters of all schemas of one tool. Definitions beyond it are replaced by schemas that allow every value."""
_DROPPED = frozenset({"discriminator", "example", "examples", "externalDocs", "xml"})
_BY_NAME = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})
"""Keywords whose values are schemas by name."""
_DATA = frozenset({"const", "default", "enum", "required"})
"""Keywords whose values are not schemas."""


class SchemaConverter:
    """Converts the schemas of one tool, whose definitions are shared."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._names: dict[str, str] = {}
        """The names of the definitions by reference."""
        self._pending: list[str] = []
        """References whose definitions have not been converted yet. A chain of them may be longer than the stack."""
        self.definitions: dict[str, Any] = {}
        self._size = 0

    def convert(self, schema: Any) -> Any:
        """Return a schema for the model. The definitions that it needs are in `definitions`."""
        converted = self._convert(schema)
        while self._pending:
            reference = self._pending.pop(0)
            target = self._document.resolve({"$ref": reference})
            self._size += len(json.dumps(target))
            if self._size <= MAX_SCHEMA:
                self.definitions[self._names[reference]] = self._convert(target)
        return converted

    def _convert(self, schema: Any) -> Any:
        if not isinstance(schema, Mapping):
            return schema
        reference = schema.get("$ref")
        if isinstance(reference, str):
            rest = {key: value for key, value in schema.items() if key != "$ref" and not self._document.is_30}
            return {**self._convert(rest), "$ref": f"#/$defs/{self._definition(reference)}"}
        converted: dict[str, Any] = {}
        for key, value in schema.items():
            if key in _DROPPED or key.startswith("x-"):
                continue
            converted[key] = self._convert_keyword(key, value)
        _drop_read_only(converted, schema, self._document)
        return _from_30(converted) if self._document.is_30 else converted

    def _convert_keyword(self, key: str, value: Any) -> Any:
        if key in _DATA:
            return value
        if key in _BY_NAME and isinstance(value, Mapping):
            return {name: self._convert(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._convert(each) for each in value]
        return self._convert(value)

    def _definition(self, reference: str) -> str:
        """Return the name of the definition of a reference."""
        if reference in self._names:
            return self._names[reference]
        base = "".join(each if each.isalnum() else "_" for each in reference.rpartition("/")[2]) or "schema"
        name = base if base not in self.definitions else f"{base}_{len(self.definitions)}"
        self._names[reference] = name
        self.definitions[name] = {}
        self._pending.append(reference)
        return name


def _drop_read_only(converted: dict[str, Any], schema: Mapping[str, Any], document: Document) -> None:
    """Leave properties out that only responses have."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return
    hidden = {
        name
        for name, each in properties.items()
        if isinstance(resolved := document.resolve(each), Mapping) and resolved.get("readOnly") is True
    }
    if hidden:
        converted["properties"] = {name: each for name, each in converted["properties"].items() if name not in hidden}
        if isinstance(schema.get("required"), list):
            converted["required"] = [name for name in schema["required"] if name not in hidden]


def _from_30(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a converted schema of OpenAPI 3.0 as JSON Schema: `nullable`, and exclusive limits that are booleans."""
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        flag = schema.get(exclusive)
        if isinstance(flag, bool):
            del schema[exclusive]
            if flag and limit in schema:
                schema[exclusive] = schema.pop(limit)
    if schema.pop("nullable", False) is True:
        if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
            schema["enum"] = [*schema["enum"], None]
        if isinstance(schema.get("type"), str):
            schema["type"] = [schema["type"], "null"]
    return schema
