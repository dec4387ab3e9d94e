"""What routes share: the service, parameters and bodies of requests, JSON responses, and page cursors."""

import base64
import binascii
from typing import Any, TypeVar

import msgspec
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from agent_mux._util.sanitize import to_json_bytes
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.sdk.options import RUN_ID
from agent_mux.service.access_log import client_of, request_id_of
from agent_mux.service.audit.entries import Actor
from agent_mux.service.parameters import HeaderParameters, QueryParameters, parse_parameters
from agent_mux.service.security.tokens import Caller
from agent_mux.service.service import Service, in_thread

_Kind = TypeVar("_Kind")
_Query = TypeVar("_Query", bound=QueryParameters)
_Headers = TypeVar("_Headers", bound=HeaderParameters)
LARGEST = 1 << 53  # larger whole numbers have no exact float
MOST_ITEMS = 10_000
"""Maximum number of items of an object or a list in a body. Each may cost a problem in the answer."""
NO_NUL = "text without NUL characters"


def json_answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a JSON response for a view or a plain value."""
    return Response(to_json_bytes(value), status, headers, "application/json")


async def masked_answer(
    service: Service, value: Any, headers: dict[str, str] | None = None, *, status: int = 200
) -> Response:
    """Return a JSON response without secrets; it is encoded in a thread, since a session may be long."""
    content = await in_thread(service, lambda: service.secrets.mask(to_json_bytes(value)))
    return Response(content, status, headers, "application/json")


def accepts_lines(request: Request) -> bool:
    """Return whether the client asks for JSON lines instead of Server-Sent Events."""
    accept = request.headers.get("accept", "")
    return "jsonl" in accept or "ndjson" in accept


async def json_body(request: Request, kind: type[_Kind]) -> _Kind:
    """Decode the body of a request; an empty body is an empty object. Raises `ValidationError`."""
    body = await request.body()
    try:
        return msgspec.convert(normalized(msgspec.json.decode(body or b"{}")), kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValidationError(
            [FieldError("(body)", f"{len(body)} bytes", f"JSON with the documented fields ({error})")]
        ) from error


def current_service(connection: HTTPConnection) -> Service:
    """Return the open service. Raises `ValidationError` for a path or query with a NUL character."""
    query = connection.query_params.multi_items()
    if "\0" in connection.scope["path"] or any("\0" in text for pair in query for text in pair):
        raise ValidationError([FieldError("(path)", "a NUL character", NO_NUL)])
    service: Service = connection.app.state.service
    return service


def run_id_of(connection: HTTPConnection) -> str:
    """Return the run id of a path.

    Raises RUN_NOT_FOUND for an invalid one, before it can become part of a file name.
    """
    run_id = str(connection.path_params["run_id"])
    if RUN_ID.fullmatch(run_id) is None:
        raise AgentMuxError("RUN_NOT_FOUND", "not a run id; list runs with GET /v1/runs")
    return run_id


def read_query(connection: HTTPConnection, kind: type[_Query]) -> _Query:
    """Return the query parameters of a request. Raises `ValidationError`."""
    return parse_parameters(kind, connection.query_params)


def read_headers(connection: HTTPConnection, kind: type[_Headers]) -> _Headers:
    """Return the headers that an operation reads. Raises `ValidationError`."""
    return parse_parameters(kind, connection.headers)


def current_caller(connection: HTTPConnection) -> Caller:
    """Return the caller that the guard authenticated."""
    caller: Caller = connection.state.caller
    return caller


def current_actor(connection: HTTPConnection) -> Actor:
    """Return the caller as the audit trail records it."""
    caller, scope = current_caller(connection), connection.scope
    return Actor(
        name=caller.name,
        token_id=caller.token_id,
        origin="websocket" if scope["type"] == "websocket" else "http",
        client=client_of(scope),
        request_id=request_id_of(scope),
    )


def format_cursor(time: int, id_: str) -> str:
    """Return the `next` of a page from its last item. `time`: milliseconds since the epoch."""
    return base64.urlsafe_b64encode(f"{time}.{id_}".encode()).decode()


def parse_cursor(cursor: str) -> tuple[int, str]:
    """Return time and id of a cursor. Raises `ValidationError`."""
    try:
        text = base64.urlsafe_b64decode(cursor.encode()).decode()
    except (ValueError, binascii.Error):
        text = ""
    time, _, id_ = text.partition(".")
    if not (time.isascii() and time.isdigit() and len(time) <= 15) or "\0" in id_:
        raise ValidationError([FieldError("(cursor)", cursor, "the `next` of the previous page")])
    return int(time), id_


def normalized(value: Any, path: str = "") -> Any:
    """Return decoded JSON with whole floats as integers, such as `5.0` as 5 (RFC 8259, section 6).

    Raises `ValidationError` for a NUL character, which databases, paths and program arguments cannot contain, and for
    an object or a list with more than MOST_ITEMS items.
    """
    if isinstance(value, dict | list) and len(value) > MOST_ITEMS:
        raise ValidationError([FieldError(path or "(body)", f"{len(value)} items", f"at most {MOST_ITEMS} items")])
    match value:
        case float() if value.is_integer() and abs(value) < LARGEST:
            return int(value)
        case str():
            _reject_nul(value, path)
        case dict():
            for key in value:
                _reject_nul(key, path)
            return {key: normalized(part, f"{path}.{key}" if path else key) for key, part in value.items()}
        case list():
            return [normalized(part, f"{path}[{index}]") for index, part in enumerate(value)]
    return value


def _reject_nul(text: str, path: str) -> None:
    if "\0" in text:
        raise ValidationError([FieldError(path or "(body)", "a NUL character", NO_NUL)])
