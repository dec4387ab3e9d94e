"""What routes have in common: reading a body, answering with JSON, finding the service.

Where a page of a listing ends, as one word that clients hand back: a time, and the id of what was last.


Which stored sessions are wanted: the parameters of sessions, of searching in them, and of their cost.


Paths with parameters that may hold anything: names and ids that others chose.

What was sent is taken apart before it is decoded. So a `%2F` in a parameter is part of it, and parts nothing.
"""

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


def json_answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A value as JSON: a shape of `views`, or plain."""
    return Response(to_json_bytes(value), status, headers, "application/json")


async def json_body(request: Request, kind: type[_Kind]) -> _Kind:
    """The body of a request. An empty one is an empty object. Raises `ValidationError` for what is no such thing."""
    body = await request.body()
    try:
        return msgspec.convert(normalized(msgspec.json.decode(body or b"{}")), kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValidationError(
            [FieldError("(body)", f"{len(body)} bytes", f"JSON of the right shape ({error})")]
        ) from error


def current_service(connection: HTTPConnection) -> Service:
    """The service that is open. Raises `ValidationError` for a request that nobody behind here can take."""
    check_target(connection)
    service: Service = connection.app.state.service
    return service


def run_id_of(run_id: Annotated[str, Path(description="Id of a run: a ULID.")]) -> str:
    """The id in a path. Raises RUN_NOT_FOUND for what can be none: nothing else ever comes near to a file."""
    if RUN_ID.fullmatch(run_id) is None:
        raise AgentMuxError("RUN_NOT_FOUND", "that is no id of a run; GET /v1/runs lists those there are")
    return run_id


RunId = Annotated[str, Depends(run_id_of)]


def current_caller(connection: HTTPConnection) -> Caller:
    """Who asks: the guard found out."""
    caller: Caller = connection.state.caller
    return caller


CurrentCaller = Annotated[Caller, Depends(current_caller)]
CurrentService = Annotated[Service, Depends(current_service)]


def format_cursor(time: int, id_: str) -> str:
    """The `next` of a page. `time`: milliseconds since the epoch."""
    return base64.urlsafe_b64encode(f"{time}.{id_}".encode()).decode()


def parse_cursor(cursor: str) -> tuple[int, str]:
    """Time and id in a cursor. Raises `ValidationError` for what is none."""
    try:
        text = base64.urlsafe_b64decode(cursor.encode()).decode()
    except (ValueError, binascii.Error):
        text = ""
    time, _, id_ = text.partition(".")
    if not (time.isascii() and time.isdigit() and len(time) <= 15) or "\0" in id_:
        raise ValidationError([FieldError("(cursor)", cursor, "the `next` of the page before")])
    return int(time), id_


class RawPathRoute(APIRoute):
    """A route that is matched as it was sent; its parameters are decoded one by one."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether it is meant, and with which parameters."""
        raw = scope.get("raw_path")
        raw_scope = scope if raw is None else {**scope, "path": raw.decode("latin-1").partition("?")[0]}
        match, child = super().matches(raw_scope)
        if raw is not None and match is not Match.NONE:
            child["path_params"] = {name: _decoded(value) for name, value in child["path_params"].items()}
        return match, child


def _decoded(value: object) -> object:
    return unquote(value) if isinstance(value, str) else value


LARGEST = 1 << 53  # beyond it, not every whole number is a float
NO_NUL = "text without NUL characters"
REPEATED = frozenset({"tag", "state"})
"""Query parameters that may stand several times."""


def normalized(value: Any, path: str = "") -> Any:
    """The same with `5.0` as 5: JSON knows one kind of numbers. Source: RFC 8259, section 6.

    Raises `ValidationError` for a NUL character: databases, paths and arguments of programs cannot have one.
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
    """Refuse a path or a query with a NUL character, and a parameter that is said twice: which one would count?"""
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
