"""JSON Schemas of types, equal on every version of Python.

Until Python 3.12 a docstring keeps the indentation of its source, from 3.13 on the compiler removes it. msgspec copies
docstrings into the `description` of a schema, so that generated pages would differ between versions.
"""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

__all__ = ["json_schema", "json_schema_components"]


def json_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON Schema of a type, as `msgspec.json.schema` does."""
    schema: dict[str, Any] = _without_indentation(msgspec.json.schema(kind))
    return schema


def json_schema_components(
    kinds: Iterable[Any],
    *,
    schema_hook: Callable[[type], dict[str, Any]] | None = None,
    ref_template: str = "#/$defs/{name}",
) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    """Return one schema per type and the definitions to which they refer, as `msgspec.json.schema_components` does."""
    schemas, components = msgspec.json.schema_components(kinds, schema_hook=schema_hook, ref_template=ref_template)
    return tuple(_without_indentation(schema) for schema in schemas), _without_indentation(components)


def _without_indentation(part: Any) -> Any:
    if isinstance(part, dict):
        return {
            key: inspect.cleandoc(value)
            if key == "description" and isinstance(value, str)
            else _without_indentation(value)
            for key, value in part.items()
        }
    if isinstance(part, list):
        return [_without_indentation(value) for value in part]
    return part
