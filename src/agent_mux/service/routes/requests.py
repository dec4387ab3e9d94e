"""What routes share: request bodies, JSON responses, dependencies, page cursors, and routes for raw paths."""

import base64
import binascii
from collections import Counter
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote

import msgspec
from fastapi import Depends, Path, Request
from fastapi.routing import APIRoute
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from agent_mux._util.sanitize import to_json_bytes
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.sdk.options import RUN_ID
from agent_mux.service.security.tokens import Caller
from agent_mux.service.service import Service

_Kind = TypeVar("_Kind")
LARGEST = 1 << 53  # larger whole numbers have no exact float
NO_NUL = "text without NUL characters"
REPEATED = frozenset({"tag", "state"})
"""Query parameters that may occur several times."""


def json_answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return a JSON response for a view or a plain value."""
    return Response(to_json_bytes(value), status, headers, "application/json")


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
    """Return the open service. Raises `ValidationError` for a target that no route accepts."""
    check_target(connection)
    service: Service = connection.app.state.service
    return service


def run_id_of(run_id: Annotated[str, Path(description="Run id: a ULID.")]) -> str:
    """Return the run id of a path.

    Raises RUN_NOT_FOUND for an invalid one, before it can become part of a file name.
    """
    if RUN_ID.fullmatch(run_id) is None:
        raise AgentMuxError("RUN_NOT_FOUND", "not a run id; list runs with GET /v1/runs")
    return run_id


RunId = Annotated[str, Depends(run_id_of)]


def current_caller(connection: HTTPConnection) -> Caller:
    """Return the caller that the guard authenticated."""
    caller: Caller = connection.state.caller
    return caller


CurrentCaller = Annotated[Caller, Depends(current_caller)]
CurrentService = Annotated[Service, Depends(current_service)]


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


class RawPathRoute(APIRoute):
    """A route that matches the path before percent-decoding and decodes each parameter on its own.

    Names and ids that others chose may contain any character: a `%2F` belongs to its parameter and separates nothing.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match the raw path and return its decoded parameters."""
        raw = scope.get("raw_path")
        raw_scope = scope if raw is None else {**scope, "path": raw.decode("latin-1").partition("?")[0]}
        match, child = super().matches(raw_scope)
        if raw is not None and match is not Match.NONE:
            child["path_params"] = {name: _decoded(value) for name, value in child["path_params"].items()}
        return match, child


def _decoded(value: object) -> object:
    return unquote(value) if isinstance(value, str) else value


def normalized(value: Any, path: str = "") -> Any:
    """Return decoded JSON with whole floats as integers, such as `5.0` as 5 (RFC 8259, section 6).

    Raises `ValidationError` for a NUL character, which databases, paths and program arguments cannot contain.
    """
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


def check_target(connection: HTTPConnection) -> None:
    """Refuse a path or query with a NUL character and repeated parameters, which would be ambiguous."""
    query = connection.query_params.multi_items()
    if "\0" in connection.scope["path"] or any("\0" in text for pair in query for text in pair):
        raise ValidationError([FieldError("(path)", "a NUL character", NO_NUL)])
    counted = Counter(name for name, _ in query if name not in REPEATED)
    twice = [FieldError(name, f"{count} times", "once") for name, count in counted.items() if count > 1]
    if twice:
        raise ValidationError(twice)


def _reject_nul(text: str, path: str) -> None:
    if "\0" in text:
        raise ValidationError([FieldError(path or "(body)", "a NUL character", NO_NUL)])
