"""The operations of an OpenAPI document: their parameters, bodies and servers, with all references resolved."""

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agent_loop.openapi.config import OperationFilter
from agent_loop.openapi.documents import Document

_log = logging.getLogger("agent_loop.openapi")

Location = Literal["path", "query", "header", "cookie"]
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_DEFAULT_STYLES: Mapping[str, str] = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
_OWN_HEADERS = frozenset({
    "accept", "accept-encoding", "authorization", "connection", "content-encoding", "content-length", "content-type",
    "cookie", "host", "proxy-authorization", "te", "transfer-encoding", "upgrade", "user-agent",
})  # fmt: skip
"""Headers that the request has for other reasons than a parameter."""
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
_JSON_TYPE = re.compile(r"application/([\w.+-]+\+)?json(;.*)?|\*/\*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of an operation."""

    name: str
    location: Location
    schema: Any
    required: bool = False
    description: str = ""
    style: str = "form"
    explode: bool = True
    is_json: bool = False
    """Whether the value is sent as JSON."""
    allow_reserved: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """The body of an operation in the content type that is sent."""

    content_type: str
    schema: Any
    required: bool = False
    description: str = ""

    @property
    def is_json(self) -> bool:
        """Whether the body is JSON."""
        return _JSON_TYPE.fullmatch(self.content_type) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operation of the service."""

    operation_id: str
    method: str
    """In upper case."""
    path: str
    description: str
    parameters: tuple[Parameter, ...]
    body: Body | None
    server: str | None
    """The URL of its first server, which may be relative; None if the document names none."""


def operations_of(document: Document, chosen: OperationFilter) -> Iterator[Operation]:
    """Yield the operations that match a filter. Those that cannot become tools are skipped with a warning in the log.

    Raises `ConfigurationError` for references that cannot be resolved.
    """
    for path, item in (document.content.get("paths") or {}).items():
        resolved = document.resolve(item)
        if not isinstance(resolved, Mapping):
            continue
        for method in METHODS:
            operation = resolved.get(method)
            if isinstance(operation, Mapping):
                shared = {key: value for key, value in resolved.items() if key in {"parameters", "servers"}}
                yield from _operation(document, chosen, (method.upper(), path), shared, operation)


def _operation(
    document: Document,
    chosen: OperationFilter,
    place: tuple[str, str],
    shared: Mapping[str, Any],
    operation: Mapping[str, Any],
) -> Iterator[Operation]:
    """Yield an operation, or nothing. `place` is its method and path; `shared` are the fields of its path."""
    method, path = place
    operation_id = operation.get("operationId")
    if not isinstance(operation_id, str) or not operation_id:
        if chosen.operation_ids is None and chosen.matches("", operation.get("tags") or (), method, path):
            _log.warning("%s: %s %s has no operationId and is left out", document.name, method, path)
        return
    if not chosen.matches(operation_id, operation.get("tags") or (), method, path):
        return
    body = _body(document, operation.get("requestBody"))
    if body is not None and body.content_type == "":
        if body.required:
            _log.warning("%s: %s needs a body of a type that is not supported", document.name, operation_id)
            return
        body = None
    servers = operation.get("servers") or shared.get("servers") or document.content.get("servers")
    yield Operation(
        operation_id=operation_id,
        method=method,
        path=path,
        description=_description(operation, method, path),
        parameters=tuple(_parameters(document, shared, operation)),
        body=body,
        server=_server_url(servers),
    )


def _description(operation: Mapping[str, Any], method: str, path: str) -> str:
    texts = [str(operation.get(key) or "").strip() for key in ("summary", "description")]
    parts = [text for index, text in enumerate(texts) if text and text not in texts[:index]]
    deprecated = ["(deprecated)"] if operation.get("deprecated") is True else []
    return "\n\n".join([*deprecated, *parts, f"{method} {path}"])


def _server_url(servers: Any) -> str | None:
    """Return the URL of the first server, with the defaults of its variables."""
    if not isinstance(servers, list) or not servers or not isinstance(servers[0], Mapping):
        return None
    url = str(servers[0].get("url", ""))
    for name, variable in (servers[0].get("variables") or {}).items():
        if isinstance(variable, Mapping):
            url = url.replace(f"{{{name}}}", str(variable.get("default", "")))
    return url


def _parameters(document: Document, shared: Mapping[str, Any], operation: Mapping[str, Any]) -> Iterator[Parameter]:
    """Yield the parameters; those of the operation override those of its path."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for each in [*(shared.get("parameters") or ()), *(operation.get("parameters") or ())]:
        raw = document.resolve(each)
        if isinstance(raw, Mapping):
            found[str(raw.get("name")), str(raw.get("in"))] = raw
    for (name, location), raw in found.items():
        if location == "header" and name.lower() in _OWN_HEADERS:
            continue
        match location:
            case "path" | "query" | "header" | "cookie":
                yield _parameter(name, location, raw)
            case _:
                _log.warning("%s: the parameter %r has the unknown place %r", document.name, name, location)


def _parameter(name: str, location: Location, raw: Mapping[str, Any]) -> Parameter:
    content = raw.get("content")
    media = next(iter(content.values()), None) if isinstance(content, Mapping) else None
    style = str(raw.get("style") or _DEFAULT_STYLES[location])
    explode = raw.get("explode")
    return Parameter(
        name=name,
        location=location,
        schema=(media.get("schema") if isinstance(media, Mapping) else raw.get("schema")) or {},
        required=location == "path" or raw.get("required") is True,
        description=str(raw.get("description") or ""),
        style=style,
        explode=explode if isinstance(explode, bool) else style == "form",
        is_json=media is not None,
        allow_reserved=raw.get("allowReserved") is True,
    )


def _body(document: Document, raw: Any) -> Body | None:
    """Return the body in the content type that is preferred; its content type is empty if none is supported."""
    body = document.resolve(raw)
    content = body.get("content") if isinstance(body, Mapping) else None
    if not isinstance(content, Mapping) or not content:
        return None
    kinds = sorted((rank, kind) for kind in content if (rank := _rank(kind)) is not None)
    kind = kinds[0][1] if kinds else ""
    media = document.resolve(content[kind]) if kind else {}
    return Body(
        content_type=kind,
        schema=(media.get("schema") if isinstance(media, Mapping) else None) or {},
        required=body.get("required") is True,
        description=str(body.get("description") or ""),
    )


def _rank(content_type: str) -> int | None:
    """Return the preference of a content type, 0 the first; None if it is not supported."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == JSON:
        return 0
    if _JSON_TYPE.fullmatch(kind):
        return 1
    if kind in {FORM, MULTIPART}:
        return 2 if kind == FORM else 3
    return 4 if kind.startswith("text/") else None
