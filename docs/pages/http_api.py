"""The reference of the HTTP API, and the OpenAPI document that it is made from."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from agent_mux.service.application import make_application
from agent_mux.service.openapi.words import EVERYWHERE, REFUSED
from agent_mux.service.problems import STATUS
from agent_mux.service.security.scopes import needed_scope
from agent_mux.service.settings import Settings

INTRODUCTION = """# HTTP API

<!-- Written by docs/generate.py from the service. Do not edit. -->

{about}

The whole of it, with all shapes, is [openapi.json](openapi.json) (OpenAPI {version}); a service has it at
`/openapi.json`. A token is sent as `Authorization: Bearer TOKEN`; the scope that a path needs stands beside it.

Every path may answer with these problems, besides those that stand with it:

| status | codes |
|---|---|
{everywhere}
A path that does not take a method answers 405, and names those it takes in `Allow`. A problem:

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
    """The OpenAPI document. Nothing is opened for it."""
    return make_application(Settings(config_dir=Path("unused"))).openapi()


def openapi_page() -> str:
    """The document as it is kept."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"


def http_api_page() -> str:
    """What a person reads of it."""
    told = document()
    parts = [_introduction(told)]
    for tag in told["tags"]:
        parts.append(f"## {tag['name'].capitalize()}\n\n{tag['description']}\n")
        for path, operations in told["paths"].items():
            parts += [_section(path, method, one) for method, one in operations.items() if tag["name"] in one["tags"]]
    return "\n".join(parts)


def _introduction(told: dict[str, Any]) -> str:
    rows = "".join(f"| {STATUS.get(code, 500)} | `{code}` |\n" for code in EVERYWHERE)
    about, version = told["info"]["description"], told["openapi"]
    return INTRODUCTION.format(about=about, version=version, everywhere=rows, problem=json.dumps(PROBLEM, indent=2))


def _section(path: str, method: str, told: dict[str, Any]) -> str:
    scope = needed_scope(method.upper(), path)
    parts = [f"### `{method.upper()} {path}`\n", f"{told['description']}\n"]
    parts.append(f"Scope: {'none' if scope is None else f'`{scope}`'}.{_reads(told)}\n")
    if told["parameters"]:
        rows = "".join(map(_parameter, told["parameters"]))
        parts.append(f"| parameter | in | type | meaning |\n|---|---|---|---|\n{rows}")
    answers = {int(status): _found(one) for status, one in told["responses"].items()}
    rows = "".join(_answer(status, one) for status, one in sorted(answers.items()) if _is_own(one))
    parts.append(f"| status | body | meaning |\n|---|---|---|\n{rows}")
    return "\n".join(parts)


def _found(told: dict[str, Any]) -> dict[str, Any]:
    """What is referred to."""
    name = told.get("$ref", "").rpartition("/")[2]
    return document()["components"]["responses"][name] if name else told


def _is_own(told: dict[str, Any]) -> bool:
    return told["description"].strip("`.") not in EVERYWHERE and told["description"] not in REFUSED.values()


def _reads(told: dict[str, Any]) -> str:
    if "requestBody" not in told:
        return ""
    content = told["requestBody"]["content"]["application/json"]
    examples = "; for example ".join(f"`{_json(one['value'])}`" for one in content.get("examples", {}).values())
    shape = _shape(content["schema"])
    return f" Body: {shape}{f', for example {examples}' if examples else ''}."


def _parameter(told: dict[str, Any]) -> str:
    name = f"`{told['name']}`" + (" (needed)" if told["required"] else "")
    return f"| {name} | {told['in']} | {_type(told['schema'])} | {_cell(told['description'])} |\n"


def _type(schema: dict[str, Any]) -> str:
    match schema:
        case {"enum": values}:
            said = ", ".join(f"`{value}`" for value in values)
        case {"type": "array", "items": items}:
            said = f"several: {_type(items)}"
        case {"type": kind}:
            said = str(kind)
    low, high = schema.get("minimum"), schema.get("maximum", schema.get("maxLength", schema.get("maxItems")))
    said += f", from {low}" if low is not None else ""
    said += f", up to {high}{' characters' if 'maxLength' in schema else ''}" if high is not None else ""
    return said + (f"; default `{_json(schema['default'])}`" if "default" in schema else "")


def _answer(status: int, told: dict[str, Any]) -> str:
    shapes = {kind: _shape(one["schema"]) for kind, one in told.get("content", {}).items()}
    shapes.pop("application/problem+json", None)
    kinds = "; ".join(shape if kind == "application/json" else f"{shape} as `{kind}`" for kind, shape in shapes.items())
    headers = "".join(f" `{name}`: {about['description']}" for name, about in told.get("headers", {}).items())
    return f"| {status} | {kinds} | {_cell(told['description'])}{_cell(headers)} |\n"


def _shape(schema: dict[str, Any]) -> str:
    match schema:
        case {"$ref": str(place)}:
            return f"`{place.rpartition('/')[2]}`"
        case {"type": "array", "items": items}:
            return f"list of {_shape(items)}"
        case {"anyOf": choices}:
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
