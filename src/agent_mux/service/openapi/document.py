"""The OpenAPI 3.1 document, built from the operations, their types and the texts in `descriptions`."""

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from agent_mux import events
from agent_mux._util.json_schemas import json_schema
from agent_mux._util.version import __version__
from agent_mux.api.result_schema import result_schema
from agent_mux.errors import AnyCode
from agent_mux.events.wire import ACCUMULATED_FIELDS
from agent_mux.service.openapi.descriptions import (
    COMMON_ERRORS,
    INTRODUCTION,
    JSON,
    PATH_PARAMETERS,
    REFUSAL_DESCRIPTIONS,
    TAGS,
    BodySpec,
    ResponseSpec,
    SchemaRef,
    SseMessages,
)
from agent_mux.service.openapi.operations import Operation
from agent_mux.service.openapi.schemas import REF_PREFIX, ComponentSchemas, Schema
from agent_mux.service.parameters import parameters_of
from agent_mux.service.problems import MEDIA_TYPE, RETRY_AFTER, STATUS, ProblemDetails
from agent_mux.service.security.tokens import PUBLIC_PATHS, needed_scope
from agent_mux.settings.options_schema import profile_schema, request_schema

FULL_VIEW_FIELDS = ("request", "result", "eventTypes")
_CONVERTOR = re.compile(r"{(\w+):\w+}")
"""A path parameter with a convertor, such as `{model:path}`, which OpenAPI does not have."""


def openapi_document(operations: Sequence[Operation]) -> Schema:
    """Build the document as plain JSON. Raises `ValueError` for an operation or a tag without a description."""
    tags = {operation.tag for operation in operations}
    if not tags <= set(TAGS):
        raise ValueError(f"tags without a description in TAGS: {', '.join(sorted(tags - set(TAGS)))}")
    components = _components(operations)
    paths: Schema = {}
    for operation in operations:
        path = _CONVERTOR.sub(r"{\1}", operation.path)
        paths.setdefault(path, {})[operation.method.lower()] = _operation(path, operation, components)
    problems = _shared_problems(paths)
    built = {
        "openapi": "3.1.0",
        "info": {"title": "agent-mux", "description": INTRODUCTION, "version": __version__},
        "tags": [{"name": name, "description": about} for name, about in TAGS.items() if name in tags],
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


def _components(operations: Iterable[Operation]) -> ComponentSchemas:
    responses = [response for operation in operations for response in operation.responses]
    shapes = [shape for response in responses for shape in (response.shape, *response.other_media.values())]
    parts = [part for shape in shapes for part in _parts_of(shape)]
    types = [part for part in parts if part is not None and not isinstance(part, SchemaRef)]
    full_schemas = {
        "RunRequest": request_schema(),
        "ProfileFields": profile_schema(),
        "AgentEvent": _event_schema(),
        "RunResult": result_schema(),
    }
    components = ComponentSchemas([ProblemDetails, *types], full_schemas)
    run = components.schemas["RunView"]["properties"]
    run["result"] |= {"$ref": REF_PREFIX + "RunResult"}
    run["request"] |= {"type": "object"}
    if "TrialEventMessage" in components.schemas:
        components.schemas["TrialEventMessage"]["properties"]["event"] = {"$ref": REF_PREFIX + "AgentEvent"}
    components.schemas["RunSnapshot"] = _without_fields(components.schemas["RunView"], *FULL_VIEW_FIELDS)
    return components


def _parts_of(shape: Any) -> tuple[Any, ...]:
    """Return the types and schemas of which a shape consists."""
    match shape:
        case SseMessages(events=events_shape):
            return events_shape
        case tuple():
            return shape
    return (shape,)


def _without_fields(schema: Schema, *names: str) -> Schema:
    """Return the schema of a snapshot: a run without the fields that only `GET /v1/runs/{run_id}` has."""
    properties = {name: shape for name, shape in schema["properties"].items() if name not in names}
    return {
        **schema,
        "title": "RunSnapshot",
        "description": "The state of a run in a stream, in a list, and in the answer to a command.",
        "properties": properties,
        "additionalProperties": False,
    }


def _event_schema() -> Schema:
    """Return the schema of an event in a stream, whose accumulated text is optional: `?accumulated=true`."""
    schema = events.json_schema()
    optional = set(ACCUMULATED_FIELDS.values())
    for component in schema["$defs"].values():
        component["required"] = [name for name in component["required"] if name not in optional]
    return schema


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


def _operation(path: str, operation: Operation, components: ComponentSchemas) -> Schema:
    """Build one operation. Raises `ValueError` for one without a docstring."""
    description = inspect.getdoc(operation.endpoint)
    if not description:
        raise ValueError(f"{operation.method} {path} ({operation.name}) is not described: it needs a docstring")
    needed = needed_scope(operation.method, path)
    built = {
        "tags": [operation.tag],
        "summary": description.partition("\n\n")[0].replace("\n", " ").rstrip("."),
        "description": description,
        "operationId": operation.name,
        "parameters": list(_parameters(path, operation)),
        "responses": dict(_responses(path, operation, components)),
        "security": [] if needed is None else [{"bearer": [needed]}, {}],
    }
    if operation.body is not None:
        built["requestBody"] = _body(operation.body, components)
    return built


def _parameters(path: str, operation: Operation) -> Iterator[Schema]:
    for name in re.findall(r"{(\w+)}", path):
        schema = json_schema(PATH_PARAMETERS[name])
        yield _parameter(name, "path", schema.pop("description"), schema, operation.examples, is_required=True)
    for place, kind in (("query", operation.query), ("header", operation.headers)):
        for one in () if kind is None else parameters_of(kind):
            yield _parameter(
                one.name, place, one.description, one.schema, operation.examples, is_required=one.is_required
            )


def _parameter(  # noqa: PLR0913  # the fields of a parameter object
    name: str, place: str, description: str, schema: Schema, examples: Mapping[str, Any], *, is_required: bool
) -> Schema:
    built = {"name": name, "in": place, "required": is_required, "description": description}
    if name in examples:
        built["example"] = examples[name]
    return {**built, "schema": dict(sorted(schema.items()))}


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


def _responses(path: str, operation: Operation, components: ComponentSchemas) -> Iterator[tuple[str, Schema]]:
    for response in operation.responses:
        yield str(response.status), _response(response, components)
    codes = dict.fromkeys(operation.errors + (("INTERNAL",) if path in PUBLIC_PATHS else COMMON_ERRORS))
    if operation.body is not None or operation.query is not None or "{" in path:
        codes |= {"VALIDATION_ERROR": None}
    by_status: dict[int, list[AnyCode]] = {}
    for code in codes:
        by_status.setdefault(STATUS.get(code, 500), []).append(code)
    for status, status_codes in sorted(by_status.items()):
        yield str(status), _problem(status, status_codes)
    for status, description in REFUSAL_DESCRIPTIONS.items():
        yield (
            str(status),
            {"description": description, "content": {MEDIA_TYPE: {"schema": {"$ref": REF_PREFIX + "ProblemDetails"}}}},
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
    match shape:
        case SseMessages(events=events_shape, snapshot=snapshot):
            number = {"type": "string", "pattern": shape.id_pattern, "description": shape.id_description}
            name = {"const": "run", "description": "Marks a snapshot, which is not an event of the run and has no id."}
            # A message without a name is dispatched as `message`, and some readers store that as its name.
            event = _sse_message({"id": number}, _schema(events_shape, components, JSON), event={"const": "message"})
            if snapshot is None:
                return event
            return {"oneOf": [event, _sse_message({"event": name}, _schema(snapshot, components, JSON))]}
        case SchemaRef(name=name):
            return {"$ref": REF_PREFIX + name}
        case tuple():
            return {"anyOf": [_schema(one, components, media_type) for one in shape]}
    return components.for_response(shape)


def _sse_message(fields: Schema, content: Schema, **optional: Schema) -> Schema:
    data = {"type": "string", "contentMediaType": JSON, "contentSchema": content}
    properties = {**fields, "data": data}
    return {
        "type": "object",
        "properties": {**properties, **optional},
        "required": [*properties],
        "additionalProperties": False,
    }


def _problem(status: int, codes: list[AnyCode]) -> Schema:
    built: Schema = {
        "description": f"{', '.join(f'`{code}`' for code in codes)}.",
        "content": {MEDIA_TYPE: {"schema": {"$ref": REF_PREFIX + "ProblemDetails"}}},
    }
    if status in {429, 503}:
        about = f"Seconds to wait before a retry, at least {RETRY_AFTER}."
        built["headers"] = {"Retry-After": {"description": about, "schema": {"type": "string"}}}
    return built
