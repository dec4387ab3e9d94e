"""Support for pydantic in classes that are not pydantic models; pydantic itself is imported only when it is in use.

pydantic calls `__get_pydantic_core_schema__` of a class and of an item of `Annotated`. Both are answered by
`agent_mux.api.pydantic_schemas`, which is above every class that has a JSON form and is therefore imported by name.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema


class PydanticCompatible:
    """Mixin of classes that pydantic validates, serializes and describes in the JSON form of agent-mux."""

    __slots__ = ()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        schema: CoreSchema = _schemas().core_schema_of(cls, handler)
        return schema

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: "CoreSchema", handler: "GetJsonSchemaHandler") -> "JsonSchemaValue":
        described: JsonSchemaValue = _schemas().json_schema_of(cls, schema, handler)
        return described


class DiscriminatedEvents:
    """Item of `Annotated` that makes a union of all events a union with the discriminator `type`."""

    def __get_pydantic_core_schema__(self, source: Any, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        schema: CoreSchema = _schemas().any_event_schema(handler)
        return schema


def _schemas() -> Any:
    return import_module("agent_mux.api.pydantic_schemas")
