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
    ABOUT,
    DESCRIBED,
    EVERYWHERE,
    JSON,
    PATH_PARAMETERS,
    REFUSED,
    SSE,
    TAGS,
    Answer,
    Body,
    Component,
    Description,
)
from agent_mux.service.openapi.schemas import PLACE, Components, Schema
from agent_mux.service.problems import MEDIA_TYPE, RETRY_AFTER, STATUS, Problem
from agent_mux.service.security.tokens import PUBLIC, needed_scope
from agent_mux.settings.schema import profile_schema, request_schema


def openapi_document(application: FastAPI) -> Schema:
    """The document of an application: plain JSON. Raises `ValueError` for a path or a tag that is not described."""
    told = get_openapi(
        title=application.title, version=application.version, description=ABOUT, routes=application.routes
    )
    known = _components()
    paths = {
        path: {method: operation(path, method, said, known) for method, said in operations.items()}
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


def _components() -> Components:
    answers = [answer for said in DESCRIBED.values() for answer in said.answers]
    shapes = [shape for answer in answers for shape in (answer.shape, *answer.also.values())]
    types = [shape for shape in shapes if shape is not None and not isinstance(shape, Component | tuple)]
    whole = {
        "RunRequest": request_schema(),
        "ProfileFields": profile_schema(),
        "AgentEvent": events.json_schema(),
        "RunResult": result_schema(),
    }
    known = Components([Problem, *types], whole)
    run = known.schemas["RunView"]["properties"]
    run["result"] |= {"$ref": PLACE + "RunResult"}
    run["request"] |= {"type": "object"}
    return known


def _shared_problems(paths: Schema) -> Schema:
    """Problems stand in many places: they are named by their codes, and referred to."""
    shared: Schema = {}
    for operations in paths.values():
        for one in operations.values():
            for status, answer in one["responses"].items():
                if MEDIA_TYPE in answer.get("content", ()):
                    is_refused = int(status) in REFUSED
                    name = f"REFUSED-{status}" if is_refused else answer["description"].strip("`.").replace("`, `", "-")
                    shared[name] = answer
                    one["responses"][status] = {"$ref": f"#/components/responses/{name}"}
    return shared


def operation(path: str, method: str, told: Schema, known: Components) -> Schema:
    """As the document has it. `told`: what FastAPI says of it. Raises `ValueError` for one that is not described."""
    said = DESCRIBED.get(told["operationId"])
    if said is None:
        raise ValueError(f"{method.upper()} {path} ({told['operationId']}) is not described")
    needed = needed_scope(method.upper(), path)
    made = {
        "tags": told.get("tags", []),
        "summary": _summary(told),
        "description": told.get("description", ""),
        "operationId": told["operationId"],
        "parameters": [_parameter(one, said) for one in told.get("parameters", ()) if one["name"] != "accept"],
        "responses": dict(_responses(path, told, said, known)),
        "security": [] if needed is None else [{"bearer": [needed]}, {}],
    }
    if said.body is not None:
        made["requestBody"] = _body(said.body, known)
    return made


def _summary(told: Schema) -> str:
    return str(told.get("description") or told["summary"]).partition("\n\n")[0].replace("\n", " ").rstrip(".")


def _parameter(told: Schema, said: Description) -> Schema:
    shape = {key: value for key, value in told["schema"].items() if key not in {"title", "description"}}
    choices = [one for one in shape.pop("anyOf", ()) if one.get("type") != "null"]
    if choices:
        shape |= choices[0]
    about = told.get("description") or PATH_PARAMETERS.get(told["name"], "")
    made = {"name": told["name"], "in": told["in"], "required": told.get("required", False), "description": about}
    if told["name"] in said.parameters:
        made["example"] = said.parameters[told["name"]]
    return {**made, "schema": dict(sorted(shape.items()))}


def _body(body: Body, known: Components) -> Schema:
    content: Schema = {"schema": _read(body, known)}
    if body.examples:
        content["examples"] = {name: {"value": value} for name, value in body.examples.items()}
    return {"required": body.is_required, "content": {"application/json": content}}


def _read(body: Body, known: Components) -> Schema:
    if isinstance(body.shape, Component):
        return {"$ref": PLACE + body.shape.name}
    made = known.read(body.shape)
    wanted = {name: shape for name, shape in made["properties"].items() if name not in body.without}
    made["properties"] = {name: {**shape, **body.limits.get(name, {})} for name, shape in wanted.items()}
    made["required"] = [name for name in made["required"] if name not in body.without]
    return {**made, **body.more}


def _responses(path: str, told: Schema, said: Description, known: Components) -> Iterator[tuple[str, Schema]]:
    for answer in said.answers:
        yield str(answer.status), _answer(answer, known)
    codes = dict.fromkeys(said.errors + (("INTERNAL",) if path in PUBLIC else EVERYWHERE))
    if said.body is not None or told.get("parameters"):
        codes |= {"VALIDATION_ERROR": None}
    by_status: dict[int, list[AnyCode]] = {}
    for code in codes:
        by_status.setdefault(STATUS.get(code, 500), []).append(code)
    for status, those in sorted(by_status.items()):
        yield str(status), _problem(status, those)
    for status, why in REFUSED.items():
        yield str(status), {"description": why, "content": {MEDIA_TYPE: {"schema": {"$ref": PLACE + "Problem"}}}}


def _answer(answer: Answer, known: Components) -> Schema:
    made: Schema = {"description": answer.meaning}
    if answer.headers:
        made["headers"] = {
            name: {"description": about, "schema": {"type": "string"}} for name, about in answer.headers.items()
        }
    shapes = {**({} if answer.shape is None else {JSON: answer.shape}), **answer.also}
    if shapes:
        made["content"] = {kind: {"schema": _schema(shape, known, kind)} for kind, shape in shapes.items()}
    if answer.links:
        made["links"] = {
            operation: {"operationId": operation, "parameters": dict(parameters)}
            for operation, parameters in answer.links.items()
        }
    return made


def _schema(shape: Any, known: Components, media_type: str) -> Schema:
    """Before OpenAPI 3.2, the schema of a stream is that of each event in it."""
    if media_type == SSE:
        content = {"type": "string", "contentMediaType": JSON, "contentSchema": _schema(shape, known, JSON)}
        number = {"type": "string", "pattern": "^[0-9]+$", "description": "The number of the event, from 0."}
        kind = {"type": "string", "description": "`run`, of a snapshot, which has no id and a RunView as data."}
        properties = {"id": number, "event": kind, "data": content}
        return {"type": "object", "properties": properties, "required": ["data"]}
    match shape:
        case Component(name=name):
            return {"$ref": PLACE + name}
        case tuple():
            return {"anyOf": [_schema(one, known, media_type) for one in shape]}
    return known.of(shape)


def _problem(status: int, codes: list[AnyCode]) -> Schema:
    made: Schema = {
        "description": f"{', '.join(f'`{code}`' for code in codes)}.",
        "content": {MEDIA_TYPE: {"schema": {"$ref": PLACE + "Problem"}}},
    }
    if status in {429, 503}:
        about = f"Seconds to wait: {RETRY_AFTER}."
        made["headers"] = {"Retry-After": {"description": about, "schema": {"type": "string"}}}
    return made
