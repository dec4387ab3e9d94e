"""The document itself. Parameters come from the routes, everything else from `describing`. Source: OpenAPI 3.1.

One operation: what it is called with, what it reads, what it answers, and what can go wrong."""

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
from agent_mux.settings.schema import profile_schema, request_schema


def openapi_document(application: FastAPI) -> Schema:
    """The document of an application: plain JSON. Raises `ValueError` for a path or a tag that is not described."""
    told = get_openapi(
        title=application.title, version=application.version, description=INTRODUCTION, routes=application.routes
    )
    known = _components()
    paths = {
        path: {method: operation(path, method, spec, known) for method, spec in operations.items()}
        for path, operations in told["paths"].items()
    }
    used = {tag for operations in paths.values() for one in operations.values() for tag in one["tags"]}
    if not used <= set(TAGS):
        raise ValueError(f"tags without a meaning in words.TAGS: {', '.join(sorted(used - set(TAGS)))}")
    problems = _shared_problems(paths)
    made = {
        "openapi": "3.1.0",
        "info": told["info"],
        "tags": [{"name": name, "description": about} for name, about in TAGS.items() if name in used],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(known.schemas.items())),
            "responses": dict(sorted(problems.items())),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "A token of the service."}
            },
        },
    }
    plain: Schema = json.loads(json.dumps(made))  # tuples are lists
    return plain


def _components() -> ComponentSchemas:
    answers = [answer for spec in DESCRIBED.values() for answer in spec.answers]
    shapes = [shape for answer in answers for shape in (answer.shape, *answer.other_media.values())]
    types = [shape for shape in shapes if shape is not None and not isinstance(shape, SchemaRef | tuple)]
    whole = {
        "RunRequest": request_schema(),
        "ProfileFields": profile_schema(),
        "AgentEvent": events.json_schema(),
        "RunResult": result_schema(),
    }
    known = ComponentSchemas([ProblemDetails, *types], whole)
    run = known.schemas["RunView"]["properties"]
    run["result"] |= {"$ref": REF_PREFIX + "RunResult"}
    run["request"] |= {"type": "object"}
    return known


def _shared_problems(paths: Schema) -> Schema:
    """Problems stand in many places: they are named by their codes, and referred to."""
    shared: Schema = {}
    for operations in paths.values():
        for one in operations.values():
            for status, answer in one["responses"].items():
                if MEDIA_TYPE in answer.get("content", ()):
                    is_refused = int(status) in REFUSAL_DESCRIPTIONS
                    name = f"REFUSED-{status}" if is_refused else answer["description"].strip("`.").replace("`, `", "-")
                    shared[name] = answer
                    one["responses"][status] = {"$ref": f"#/components/responses/{name}"}
    return shared


def operation(path: str, method: str, told: Schema, known: ComponentSchemas) -> Schema:
    """As the document has it. `told`: what FastAPI says of it. Raises `ValueError` for one that is not described."""
    spec = DESCRIBED.get(told["operationId"])
    if spec is None:
        raise ValueError(f"{method.upper()} {path} ({told['operationId']}) is not described")
    needed = needed_scope(method.upper(), path)
    made = {
        "tags": told.get("tags", []),
        "summary": _summary(told),
        "description": told.get("description", ""),
        "operationId": told["operationId"],
        "parameters": [_parameter(one, spec) for one in told.get("parameters", ()) if one["name"] != "accept"],
        "responses": dict(_responses(path, told, spec, known)),
        "security": [] if needed is None else [{"bearer": [needed]}, {}],
    }
    if spec.body is not None:
        made["requestBody"] = _body(spec.body, known)
    return made


def _summary(told: Schema) -> str:
    return str(told.get("description") or told["summary"]).partition("\n\n")[0].replace("\n", " ").rstrip(".")


def _parameter(told: Schema, spec: OperationSpec) -> Schema:
    shape = {key: value for key, value in told["schema"].items() if key not in {"title", "description"}}
    choices = [one for one in shape.pop("anyOf", ()) if one.get("type") != "null"]
    if choices:
        shape |= choices[0]
    about = told.get("description") or PATH_PARAMETERS.get(told["name"], "")
    made = {"name": told["name"], "in": told["in"], "required": told.get("required", False), "description": about}
    if told["name"] in spec.parameters:
        made["example"] = spec.parameters[told["name"]]
    return {**made, "schema": dict(sorted(shape.items()))}


def _body(body: BodySpec, known: ComponentSchemas) -> Schema:
    content: Schema = {"schema": _read(body, known)}
    if body.examples:
        content["examples"] = {name: {"value": value} for name, value in body.examples.items()}
    return {"required": body.is_required, "content": {"application/json": content}}


def _read(body: BodySpec, known: ComponentSchemas) -> Schema:
    if isinstance(body.shape, SchemaRef):
        return {"$ref": REF_PREFIX + body.shape.name}
    made = known.read(body.shape)
    wanted = {name: shape for name, shape in made["properties"].items() if name not in body.omitted}
    made["properties"] = {name: {**shape, **body.constraints.get(name, {})} for name, shape in wanted.items()}
    made["required"] = [name for name in made["required"] if name not in body.omitted]
    return {**made, **body.extra}


def _responses(path: str, told: Schema, spec: OperationSpec, known: ComponentSchemas) -> Iterator[tuple[str, Schema]]:
    for answer in spec.answers:
        yield str(answer.status), _answer(answer, known)
    codes = dict.fromkeys(spec.errors + (("INTERNAL",) if path in PUBLIC_PATHS else COMMON_ERRORS))
    if spec.body is not None or told.get("parameters"):
        codes |= {"VALIDATION_ERROR": None}
    by_status: dict[int, list[AnyCode]] = {}
    for code in codes:
        by_status.setdefault(STATUS.get(code, 500), []).append(code)
    for status, those in sorted(by_status.items()):
        yield str(status), _problem(status, those)
    for status, why in REFUSAL_DESCRIPTIONS.items():
        yield str(status), {"description": why, "content": {MEDIA_TYPE: {"schema": {"$ref": REF_PREFIX + "Problem"}}}}


def _answer(answer: ResponseSpec, known: ComponentSchemas) -> Schema:
    made: Schema = {"description": answer.description}
    if answer.headers:
        made["headers"] = {
            name: {"description": about, "schema": {"type": "string"}} for name, about in answer.headers.items()
        }
    shapes = {**({} if answer.shape is None else {JSON: answer.shape}), **answer.other_media}
    if shapes:
        made["content"] = {kind: {"schema": _schema(shape, known, kind)} for kind, shape in shapes.items()}
    if answer.links:
        made["links"] = {
            operation: {"operationId": operation, "parameters": dict(parameters)}
            for operation, parameters in answer.links.items()
        }
    return made


def _schema(shape: Any, known: ComponentSchemas, media_type: str) -> Schema:
    """Before OpenAPI 3.2, the schema of a stream is that of each event in it."""
    if media_type == SSE:
        content = {"type": "string", "contentMediaType": JSON, "contentSchema": _schema(shape, known, JSON)}
        number = {"type": "string", "pattern": "^[0-9]+$", "description": "The number of the event, from 0."}
        kind = {"type": "string", "description": "`run`, of a snapshot, which has no id and a RunView as data."}
        properties = {"id": number, "event": kind, "data": content}
        return {"type": "object", "properties": properties, "required": ["data"]}
    match shape:
        case SchemaRef(name=name):
            return {"$ref": REF_PREFIX + name}
        case tuple():
            return {"anyOf": [_schema(one, known, media_type) for one in shape]}
    return known.of(shape)


def _problem(status: int, codes: list[AnyCode]) -> Schema:
    made: Schema = {
        "description": f"{', '.join(f'`{code}`' for code in codes)}.",
        "content": {MEDIA_TYPE: {"schema": {"$ref": REF_PREFIX + "Problem"}}},
    }
    if status in {429, 503}:
        about = f"Seconds to wait: {RETRY_AFTER}."
        made["headers"] = {"Retry-After": {"description": about, "schema": {"type": "string"}}}
    return made
