"""OpenAPI documents: parse JSON or YAML, check the structure, resolve references inside of the document.

Documents are untrusted. Nothing is fetched for a reference, and size, depth and the number of values are limited: a few
lines of YAML with aliases can stand for billions of values.
"""

import importlib
import json
from collections.abc import Mapping
from datetime import date
from typing import Any

from agent_loop.errors import ConfigurationError

MAX_BYTES = 20 * 1024 * 1024
MAX_DEPTH = 100
MAX_VALUES = 2_000_000
MAX_HOPS = 50
"""References that may lead to each other."""
SHOWN = 200


class Document:
    """A valid document of OpenAPI 3, as plain JSON data."""

    def __init__(self, content: dict[str, Any], name: str) -> None:
        self.content = content
        self.name = name
        """The place of the document, for errors."""

    @property
    def is_30(self) -> bool:
        """Whether schemas are those of OpenAPI 3.0, which are no JSON Schemas."""
        return str(self.content["openapi"]).startswith("3.0")

    def resolve(self, value: Any) -> Any:
        """Return the value that references lead to, or else the value. Raises `ConfigurationError`."""
        for _ in range(MAX_HOPS):
            if not isinstance(value, Mapping) or not isinstance(value.get("$ref"), str):
                return value
            value = self._target(value["$ref"])
        raise ConfigurationError(f"{self.name}: references lead to each other without end")

    def _target(self, reference: str) -> Any:
        if not reference.startswith("#"):
            raise ConfigurationError(
                f"{self.name} refers to {reference[:SHOWN]!r} outside of the document; bundle it into one file first"
            )
        found: Any = self.content
        for step in reference[1:].split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~").replace("%7B", "{").replace("%7D", "}")
            if isinstance(found, list) and key.isdecimal() and int(key) < len(found):
                found = found[int(key)]
            elif isinstance(found, Mapping) and key in found:
                found = found[key]
            else:
                raise ConfigurationError(f"{self.name} refers to {reference[:SHOWN]!r}, which it does not contain")
        return found


def parse_document(text: str, name: str) -> Document:
    """Parse JSON (if the text begins with a bracket) or YAML. Raises `ConfigurationError` for an invalid document."""
    if len(text) > MAX_BYTES:
        raise ConfigurationError(f"{name} has more than {MAX_BYTES:,} characters")
    try:
        content = _Plain(name).convert(json.loads(text) if text.lstrip()[:1] in {"{", "["} else _parse_yaml(text, name))
    except RecursionError:
        raise ConfigurationError(f"{name} is nested too deeply") from None
    except ValueError as error:
        raise ConfigurationError(f"{name} is not valid JSON: {error}") from None
    if not isinstance(content, dict) or not isinstance(content.get("openapi"), str):
        is_old = isinstance(content, dict) and "swagger" in content
        hint = "; convert this Swagger 2.0 document to OpenAPI 3 first" if is_old else ""
        raise ConfigurationError(f"{name} is not an OpenAPI 3 document{hint}")
    _check_structure(content, name)
    return Document(content, name)


def _parse_yaml(text: str, name: str) -> Any:
    from ruamel.yaml import YAML  # noqa: PLC0415  # rarely needed
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415

    try:
        return YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        first = " ".join(str(error).split())
        raise ConfigurationError(f"{name} is not valid YAML: {first[:SHOWN]}") from None


class _Plain:
    """Copies data as plain JSON: keys are strings, and dates of YAML are text. Limits depth and number of values."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._count = 0

    def convert(self, value: Any, depth: int = 0) -> Any:
        self._count += 1
        if depth > MAX_DEPTH or self._count > MAX_VALUES:
            raise ConfigurationError(f"{self._name} is nested too deeply or has more than {MAX_VALUES:,} values")
        if isinstance(value, Mapping):
            return {str(key): self.convert(each, depth + 1) for key, each in value.items()}
        if isinstance(value, list | tuple | set):
            return [self.convert(each, depth + 1) for each in value]
        if value is None or isinstance(value, str | int | float):
            return value
        return value.isoformat() if isinstance(value, date) else str(value)


def _check_structure(content: dict[str, Any], name: str) -> None:
    """Check a document against the schema of its version. Raises `ConfigurationError` with the first error."""
    try:
        library = importlib.import_module("openapi_spec_validator")
    except ImportError:
        raise ConfigurationError("OpenAPI tools need a parser; try: pip install 'agent-mux[openapi]'") from None
    version = ".".join(content["openapi"].split(".")[:2])
    validators = {
        "3.0": library.OpenAPIV30SpecValidator,
        "3.1": library.OpenAPIV31SpecValidator,
        "3.2": library.OpenAPIV32SpecValidator,
    }
    if version not in validators:
        raise ConfigurationError(f"{name} has OpenAPI version {content['openapi'][:SHOWN]!r}; 3.0 to 3.2 are supported")
    # The structure alone: the library's further checks of each schema take seconds for a few hundred kilobytes.
    error = next(iter(validators[version].schema_validator.iter_errors(content)), None)
    if error is not None:
        place = "/".join(str(step) for step in error.absolute_path)
        message = str(error.message).partition("\n")[0]  # further lines repeat the schema
        shown = message if len(message) <= SHOWN else message[:SHOWN] + "..."
        raise ConfigurationError(f"{name} is not a valid OpenAPI document: at /{place}: {shown}")
