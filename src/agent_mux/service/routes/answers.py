"""What routes have in common: reading a body, answering with JSON, finding the service."""

from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import Depends, Path, Request
from starlette.requests import HTTPConnection
from starlette.responses import Response

from agent_mux._util.sanitize import to_json_bytes
from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.sdk.options import RUN_ID
from agent_mux.service.bodies import check_target, tidied
from agent_mux.service.security.scopes import Caller
from agent_mux.service.service import Service

_Kind = TypeVar("_Kind")


def json_answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """A value as JSON: a shape of `views`, or plain."""
    return Response(to_json_bytes(value), status, headers, "application/json")


async def json_body(request: Request, kind: type[_Kind]) -> _Kind:
    """The body of a request. An empty one is an empty object. Raises `ValidationError` for what is no such thing."""
    body = await request.body()
    try:
        return msgspec.convert(tidied(msgspec.json.decode(body or b"{}")), kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValidationError(
            [FieldError("(body)", f"{len(body)} bytes", f"JSON of the right shape ({error})")]
        ) from error


def the_service(connection: HTTPConnection) -> Service:
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


def the_caller(connection: HTTPConnection) -> Caller:
    """Who asks: the guard found out."""
    caller: Caller = connection.state.caller
    return caller


TheCaller = Annotated[Caller, Depends(the_caller)]
TheService = Annotated[Service, Depends(the_service)]
