"""The OpenAPI 3.1 document. Parameters come from the routes, everything else from `descriptions` and the types."""

import json
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from agent_mux import events
from agent_mux.api.result_schema import result_schema
from agent_mux.errors import AnyCode
from agent_mux.service.openapi.descriptions import (
    COMMON_ERRORS,
    DESCRIBED,
    INTRODUCTION,
    JSON,
    PATH_PARAMETERS,
    REFUSAL_DESCRIPTIONS,
    SSE,
    TAGS,
    BodySpec,
    OperationSpec,
    ResponseSpec,
    SchemaRef,
)
from agent_mux.service.openapi.schemas import REF_PREFIX, ComponentSchemas, Schema
from agent_mux.service.problems import MEDIA_TYPE, RETRY_AFTER, STATUS, ProblemDetails
from agent_mux.service.security.tokens import PUBLIC_PATHS, needed_scope
from agent_mux.settings.options_schema import profile_schema, request_schema


def openapi_document(application: FastAPI) -> Schema:
    """Build the document of an application as plain JSON.

    Raises `ValueError` for an operation or a tag without a description.
    """
    generated = get_openapi(
        title=application.title, version=application.version, description=INTRODUCTION, routes=application.routes
    )
    components = _components()
    paths = {
        path: {method: operation(path, method, spec, components) for method, spec in operations.items()}
        for path, operations in generated["paths"].items()
    }
    used = {tag for operations in paths.values() for one in operations.values() for tag in one["tags"]}
    if not used <= set(TAGS):
        raise ValueError(f"tags without a description in TAGS: {', '.join(sorted(used - set(TAGS)))}")
    problems = _shared_problems(paths)
    built = {
        "openapi": "3.1.0",
        "info": generated["info"],
        "tags": [{"name": name, "description": about} for name, about in TAGS.items() if name in used],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.schemas.items())),
            "responses": dict(sorted(problems.items())),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "API token of the service."}
            },
        },
    }
    plain: Schema = json.loads(json.dumps(built))  # tuples become lists
    return plain


def _components() -> ComponentSchemas:
    responses = [response for spec in DESCRIBED.values() for response in spec.responses]
    shapes = [shape for response in responses for shape in (response.shape, *response.other_media.values())]
    types = [shape for shape in shapes if shape is not None and not isinstance(shape, SchemaRef | tuple)]
    full_schemas = {
        "RunRequest": request_schema(),
        "ProfileFields": profile_schema(),
        "AgentEvent": events.json_schema(),
        "RunResult": result_schema(),
    }
    components = ComponentSchemas([ProblemDetails, *types], full_schemas)
    run = components.schemas["RunView"]["properties"]
    run["result"] |= {"$ref": REF_PREFIX + "RunResult"}
    run["request"] |= {"type": "object"}
    return components


def _shared_problems(paths: Schema) -> Schema:
    """Move problem responses to the components, named by their codes, and leave references in their place."""
    shared: Schema = {}
    for operations in paths.values():
        for one in operations.values():
            for status, response in one["responses"].items():
                if MEDIA_TYPE in response.get("content", ()):
                    is_refused = int(status) in REFUSAL_DESCRIPTIONS
                    name = (
                        f"REFUSED-{status}" if is_refused else response["description"].strip("`.").replace("`, `", "-")
                    )
                    shared[name] = response
                    one["responses"][status] = {"$ref": f"#/components/responses/{name}"}
    return shared


def operation(path: str, method: str, generated: Schema, components: ComponentSchemas) -> Schema:
    """Build one operation from what FastAPI generated. Raises `ValueError` for one that is not described."""
    spec = DESCRIBED.get(generated["operationId"])
    if spec is None:
        raise ValueError(f"{method.upper()} {path} ({generated['operationId']}) is not described")
    needed = needed_scope(method.upper(), path)
    built = {
        "tags": generated.get("tags", []),
        "summary": _summary(generated),
        "description": generated.get("description", ""),
        "operationId": generated["operationId"],
        "parameters": [_parameter(one, spec) for one in generated.get("parameters", ()) if one["name"] != "accept"],
        "responses": dict(_responses(path, generated, spec, components)),
        "security": [] if needed is None else [{"bearer": [needed]}, {}],
    }
    if spec.body is not None:
        built["requestBody"] = _body(spec.body, components)
    return built


def _summary(generated: Schema) -> str:
    return str(generated.get("description") or generated["summary"]).partition("\n\n")[0].replace("\n", " ").rstrip(".")


def _parameter(generated: Schema, spec: OperationSpec) -> Schema:
    shape = {key: value for key, value in generated["schema"].items() if key not in {"title", "description"}}
    choices = [one for one in shape.pop("anyOf", ()) if one.get("type") != "null"]
    if choices:
        shape |= choices[0]
    about = generated.get("description") or PATH_PARAMETERS.get(generated["name"], "")
    built = {
        "name": generated["name"],
        "in": generated["in"],
        "required": generated.get("required", False),
        "description": about,
    }
    if generated["name"] in spec.parameters:
        built["example"] = spec.parameters[generated["name"]]
    return {**built, "schema": dict(sorted(shape.items()))}


def _body(body: BodySpec, components: ComponentSchemas) -> Schema:
    content: Schema = {"schema": _request_schema(body, components)}
    if body.examples:
        content["examples"] = {name: {"value": value} for name, value in body.examples.items()}
    return {"required": body.is_required, "content": {"application/json": content}}


def _request_schema(body: BodySpec, components: ComponentSchemas) -> Schema:
    if isinstance(body.shape, SchemaRef):
        return {"$ref": REF_PREFIX + body.shape.name}
    built = components.for_request(body.shape)
    accepted = {name: shape for name, shape in built["properties"].items() if name not in body.omitted}
    built["properties"] = {name: {**shape, **body.constraints.get(name, {})} for name, shape in accepted.items()}
    built["required"] = [name for name in built["required"] if name not in body.omitted]
    return {**built, **body.extra}


def _responses(
    path: str, generated: Schema, spec: OperationSpec, components: ComponentSchemas
) -> Iterator[tuple[str, Schema]]:
    for response in spec.responses:
        yield str(response.status), _response(response, components)
    codes = dict.fromkeys(spec.errors + (("INTERNAL",) if path in PUBLIC_PATHS else COMMON_ERRORS))
    if spec.body is not None or generated.get("parameters"):
        codes |= {"VALIDATION_ERROR": None}
    by_status: dict[int, list[AnyCode]] = {}
    for code in codes:
        by_status.setdefault(STATUS.get(code, 500), []).append(code)
    for status, status_codes in sorted(by_status.items()):
        yield str(status), _problem(status, status_codes)
    for status, description in REFUSAL_DESCRIPTIONS.items():
        yield (
            str(status),
            {"description": description, "content": {MEDIA_TYPE: {"schema": {"$ref": REF_PREFIX + "Problem"}}}},
        )


def _response(response: ResponseSpec, components: ComponentSchemas) -> Schema:
    built: Schema = {"description": response.description}
    if response.headers:
        built["headers"] = {
            name: {"description": about, "schema": {"type": "string"}} for name, about in response.headers.items()
        }
    shapes = {**({} if response.shape is None else {JSON: response.shape}), **response.other_media}
    if shapes:
        built["content"] = {kind: {"schema": _schema(shape, components, kind)} for kind, shape in shapes.items()}
    if response.links:
        built["links"] = {
            operation: {"operationId": operation, "parameters": dict(parameters)}
            for operation, parameters in response.links.items()
        }
    return built


def _schema(shape: Any, components: ComponentSchemas, media_type: str) -> Schema:
    """Return the schema of a body. Before OpenAPI 3.2, the schema of a stream is that of each event in it."""
    if media_type == SSE:
        content = {"type": "string", "contentMediaType": JSON, "contentSchema": _schema(shape, components, JSON)}
        number = {"type": "string", "pattern": "^[0-9]+$", "description": "Number of the event, from 0."}
        kind = {"type": "string", "description": "`run` for a snapshot, which has no id and a RunView as data."}
        properties = {"id": number, "event": kind, "data": content}
        return {"type": "object", "properties": properties, "required": ["data"]}
    match shape:
        case SchemaRef(name=name):
            return {"$ref": REF_PREFIX + name}
        case tuple():
            return {"anyOf": [_schema(one, components, media_type) for one in shape]}
    return components.for_response(shape)


def _problem(status: int, codes: list[AnyCode]) -> Schema:
    built: Schema = {
        "description": f"{', '.join(f'`{code}`' for code in codes)}.",
        "content": {MEDIA_TYPE: {"schema": {"$ref": REF_PREFIX + "Problem"}}},
    }
    if status in {429, 503}:
        about = f"Seconds to wait before a retry: {RETRY_AFTER}."
        built["headers"] = {"Retry-After": {"description": about, "schema": {"type": "string"}}}
    return built
