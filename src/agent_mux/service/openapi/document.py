"""The document itself. Parameters come from the routes, everything else from `describing`. Source: OpenAPI 3.1."""

import json

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from agent_mux import events
from agent_mux.api.result_schema import result_schema
from agent_mux.service.openapi.describing import DESCRIBED, Component
from agent_mux.service.openapi.operations import operation
from agent_mux.service.openapi.schemas import ABOUT, PLACE, REFUSED, TAGS, Components, Schema
from agent_mux.service.problems import MEDIA_TYPE, Problem
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
