"""The reference of the HTTP API, and the OpenAPI document from which it is generated."""

import json
from functools import cache
from typing import Any

from agent_mux.service.application import OPERATIONS
from agent_mux.service.openapi.descriptions import COMMON_ERRORS, REFUSAL_DESCRIPTIONS
from agent_mux.service.openapi.document import openapi_document
from agent_mux.service.parameters import allowed_values
from agent_mux.service.problems import STATUS
from agent_mux.service.security.tokens import needed_scope

INTRODUCTION = """# HTTP API

<!-- Written by docs/generate.py from the service. Do not edit. -->

{about}

The complete description with all schemas is [openapi.json](openapi.json) (OpenAPI {version}), which a service returns
at `/openapi.json`. Send a token as `Authorization: Bearer TOKEN`; each path below states the scope that it needs.

In addition to the problems listed with it, every path may return these:

| status | codes |
|---|---|
{everywhere}
For an unsupported method, a path returns 405 with the supported methods in `Allow`. Example of a problem:

```json
{problem}
```
"""
PROBLEM = {
    "type": "urn:agent-mux:error:RUN_NOT_FOUND",
    "title": "Not Found",
    "status": 404,
    "code": "RUN_NOT_FOUND",
    "detail": "there is no run 01K5...; GET /v1/runs lists those there are",
    "recoverable": False,
}


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI document. Opens no database and no port."""
    return openapi_document(OPERATIONS)


def openapi_page() -> str:
    """Return the document as the text of the stored file."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


def http_api_page() -> str:
    """Return the page for readers."""
    api = document()
    parts = [_introduction(api)]
    for tag in api["tags"]:
        parts.append(f"## {tag['name'].capitalize()}\n\n{tag['description']}\n")
        for path, operations in api["paths"].items():
            parts += [_section(path, method, one) for method, one in operations.items() if tag["name"] in one["tags"]]
    return "\n".join(parts)


def _introduction(api: dict[str, Any]) -> str:
    rows = "".join(f"| {STATUS.get(code, 500)} | `{code}` |\n" for code in COMMON_ERRORS)
    about, version = api["info"]["description"], api["openapi"]
    return INTRODUCTION.format(about=about, version=version, everywhere=rows, problem=json.dumps(PROBLEM, indent=2))


def _section(path: str, method: str, operation: dict[str, Any]) -> str:
    scope = needed_scope(method.upper(), path)
    parts = [f"### `{method.upper()} {path}`\n", f"{operation['description']}\n"]
    parts.append(f"Scope: {'none' if scope is None else f'`{scope}`'}.{_body(operation)}\n")
    if operation["parameters"]:
        rows = "".join(map(_parameter, operation["parameters"]))
        parts.append(f"| parameter | in | type | meaning |\n|---|---|---|---|\n{rows}")
    answers = {int(status): _resolved(one) for status, one in operation["responses"].items()}
    rows = "".join(_response_row(status, one) for status, one in sorted(answers.items()) if _is_specific(one))
    parts.append(f"| status | body | meaning |\n|---|---|---|\n{rows}")
    return "\n".join(parts)


def _resolved(response: dict[str, Any]) -> dict[str, Any]:
    """Return the response object, with its reference resolved."""
    name = response.get("$ref", "").rpartition("/")[2]
    return document()["components"]["responses"][name] if name else response


def _is_specific(response: dict[str, Any]) -> bool:
    description = response["description"]
    return description.strip("`.") not in COMMON_ERRORS and description not in REFUSAL_DESCRIPTIONS.values()


def _body(operation: dict[str, Any]) -> str:
    if "requestBody" not in operation:
        return ""
    content = operation["requestBody"]["content"]["application/json"]
    examples = "; for example ".join(f"`{_json(one['value'])}`" for one in content.get("examples", {}).values())
    shape = _shape(content["schema"])
    return f" Body: {shape}{f', for example {examples}' if examples else ''}."


def _parameter(parameter: dict[str, Any]) -> str:
    name = f"`{parameter['name']}`" + (" (required)" if parameter["required"] else "")
    return f"| {name} | {parameter['in']} | {_type(parameter['schema'])} | {_cell(parameter['description'])} |\n"


def _type(schema: dict[str, Any]) -> str:
    default = f"; default `{_json(schema['default'])}`" if "default" in schema else ""
    return _cell(allowed_values(schema)) + default


def _response_row(status: int, response: dict[str, Any]) -> str:
    shapes = {kind: _shape(one["schema"]) for kind, one in response.get("content", {}).items()}
    shapes.pop("application/problem+json", None)
    kinds = "; ".join(shape if kind == "application/json" else f"{shape} as `{kind}`" for kind, shape in shapes.items())
    headers = "".join(f" `{name}`: {about['description']}" for name, about in response.get("headers", {}).items())
    return f"| {status} | {kinds} | {_cell(response['description'])}{_cell(headers)} |\n"


def _shape(schema: dict[str, Any]) -> str:
    match schema:
        case {"$ref": str(place)}:
            return f"`{place.rpartition('/')[2]}`"
        case {"type": "array", "items": items}:
            return f"list of {_shape(items)}"
        case {"anyOf": choices} | {"oneOf": choices}:
            return " or ".join(map(_shape, choices))
        case {"properties": {"data": {"contentSchema": inside}}}:
            return _shape(inside)
        case {"properties": properties}:
            return ", ".join(f"`{name}`" for name in properties) or "none"
    return "text" if schema.get("type") == "string" else "object"


def _cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|")


def _json(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
