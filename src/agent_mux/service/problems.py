"""Errors as problem details (RFC 9457) with the error codes of agent-mux.

{"type": "urn:agent-mux:error:RUN_NOT_FOUND", "title": "Not Found", "status": 404, "code": "RUN_NOT_FOUND",
"detail": "no run 01...", "recoverable": false}
"""

import logging
import math
from collections.abc import Mapping
from http import HTTPStatus
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_mux._util.logs import LOGGER
from agent_mux._util.sanitize import to_json_bytes
from agent_mux.api import JsonView
from agent_mux.errors import AgentMuxError, AnyCode, CapabilityError, FieldError, ValidationError
from agent_mux.redaction import redact_text

MEDIA_TYPE = "application/problem+json"
TYPE = "urn:agent-mux:error:"
STATUS: Mapping[AnyCode, int] = {
    "VALIDATION_ERROR": 422,
    "CAPABILITY_ERROR": 422,
    "AUTH_ERROR": 424,
    "AGENT_NOT_FOUND": 404,
    "AGENT_NOT_INSTALLED": 424,
    "SESSION_NOT_FOUND": 404,
    "PROFILE_NOT_FOUND": 404,
    "RUN_NOT_FOUND": 404,
    "NOT_FOUND": 404,
    "INTERACTION_NOT_FOUND": 404,
    "NO_PENDING_INTERACTION": 409,
    "RUN_NOT_ACTIVE": 409,
    "STDIN_NOT_AVAILABLE": 409,
    "INVALID_STATE_TRANSITION": 409,
    "PTY_NOT_AVAILABLE": 409,
    "CONFIG_LOCK_ERROR": 503,
    "UNAVAILABLE": 503,
    "SPAWN_ERROR": 503,
    "LIMIT_EXCEEDED": 429,
    "RATE_LIMITED": 429,
    "BUDGET_EXCEEDED": 429,
    "TIMEOUT": 504,
    "UNAUTHENTICATED": 401,
    "FORBIDDEN": 403,
}
"""Error code -> HTTP status. Codes that are missing here are internal or caused by the machine: 500."""
_CODE_BY_STATUS: Mapping[int, AnyCode] = {
    401: "UNAUTHENTICATED",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    408: "TIMEOUT",
    421: "FORBIDDEN",
    429: "LIMIT_EXCEEDED",
    503: "UNAVAILABLE",
}
_NEXT_STEPS: Mapping[int, str] = {
    400: "send a request as RFC 9112 describes it",
    404: "GET /openapi.json lists the paths",
    408: "send the whole request at once",
    413: "send less",
    414: "send a shorter path and query",
    431: "send fewer or shorter headers",
    503: "try again later",
}
"""What to do about a status that comes without a detail."""
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
RETRY_AFTER = "1"
"""Seconds in the `Retry-After` header of 429 and 503, unless the error states another time."""


class RetryLaterError(AgentMuxError):
    """A request that may succeed after a known time."""

    def __init__(self, code: AnyCode, message: str, retry_after: float) -> None:
        """`retry_after`: seconds until a repetition may succeed; the response has them as a whole number from 1."""
        super().__init__(code, message, recoverable=True)
        self.retry_after = max(1, math.ceil(retry_after))


class FieldProblem(JsonView, kw_only=True):
    """One invalid field of a request."""

    path: str
    received: Any
    allowed: str


class ProblemDetails(JsonView, kw_only=True, omit_defaults=True):
    """An error response (RFC 9457)."""

    type: Annotated[str, Meta(description="`urn:agent-mux:error:` followed by the code.")]
    title: Annotated[str, Meta(description="Standard phrase of the HTTP status.")]
    status: int
    code: str
    detail: Annotated[str, Meta(description="What failed and what to do next.")]
    recoverable: Annotated[bool, Meta(description="Whether the same request may succeed later.")]
    fields: Annotated[
        list[FieldProblem] | msgspec.UnsetType,
        Meta(description="The invalid fields of the first group of options that has any."),
    ] = msgspec.UNSET
    agent: str | msgspec.UnsetType = msgspec.UNSET
    capability: str | msgspec.UnsetType = msgspec.UNSET


def error_response(error: AgentMuxError) -> Response:
    """Return the response for an `AgentMuxError`."""
    members: dict[str, Any] = {}
    if isinstance(error, ValidationError):
        members["fields"] = [_field(one) for one in error.fields]
    if isinstance(error, CapabilityError):
        members |= {"agent": error.agent, "capability": error.capability}
    headers = {"retry-after": str(error.retry_after)} if isinstance(error, RetryLaterError) else None
    return problem_response(
        STATUS.get(error.code, 500),
        error.code,
        error.message,
        recoverable=error.recoverable,
        headers=headers,
        **members,
    )


def http_error_response(error: HTTPException) -> Response:
    """Return the response for an exception that has a status."""
    return status_response(error.status_code, str(error.detail), error.headers)


def status_response(status: int, detail: str = "", headers: Mapping[str, str] | None = None) -> Response:
    """Return the response for a status without an error code of its own. `detail` defaults to phrase and next step."""
    code, phrase = _CODE_BY_STATUS.get(status, "VALIDATION_ERROR"), HTTPStatus(status).phrase
    complete = with_next_step(status, phrase) if detail in {"", phrase} else detail
    return problem_response(status, code, complete, headers=headers)


def with_next_step(status: int, detail: str) -> str:
    """Return a detail with what to do about this status."""
    return f"{detail}; {_NEXT_STEPS.get(status, 'see GET /openapi.json')}"


def problem_response(
    status: int,
    code: AnyCode,
    detail: str,
    *,
    recoverable: bool = False,
    headers: Mapping[str, str] | None = None,
    **members: Any,
) -> Response:
    """Return a problem response with secrets redacted. `members`: further members of `ProblemDetails`."""
    details = ProblemDetails(
        type=TYPE + code,
        title=HTTPStatus(status).phrase,
        status=status,
        code=code,
        detail=redact_text(detail),
        recoverable=recoverable,
        **members,
    )
    sent = dict(headers or {})
    if status in {429, 503}:
        sent.setdefault("retry-after", RETRY_AFTER)
    return Response(to_json_bytes(msgspec.to_builtins(details)), status, sent, MEDIA_TYPE)


def _field(error: FieldError) -> FieldProblem:
    return FieldProblem(path=error.path, received=error.received, allowed=error.allowed)


class UnhandledErrorMiddleware:
    """ASGI middleware that answers unexpected exceptions with a problem; it re-raises once a response has begun."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and answer 500 if it raises."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        has_begun = False

        async def watched(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception:
            if has_begun:
                raise
            logging.getLogger(LOGGER).exception("a request failed")
            answer = problem_response(500, "INTERNAL", "internal error of agent-mux; see the log of the service")
            await answer(scope, receive, send)


def install_handlers(application: Starlette) -> None:
    """Register handlers that turn every error into a problem response."""

    async def known_error(_: Request, error: AgentMuxError) -> Response:
        return error_response(error)

    async def http_error(request: Request, error: HTTPException) -> Response:
        if error.status_code == 405:
            return _not_allowed(request)
        if error.status_code == 404 and error.detail == HTTPStatus.NOT_FOUND.phrase:  # no route has this path
            return status_response(404, with_next_step(404, f"there is no path {request.url.path}"))
        return http_error_response(error)

    async def disconnected(_: Request, __: ClientDisconnect) -> Response:
        return status_response(
            400, "the client disconnected before its request was complete; send it again"
        )  # counted, not received

    application.add_exception_handler(ClientDisconnect, disconnected)  # type: ignore[arg-type]
    application.add_exception_handler(AgentMuxError, known_error)  # type: ignore[arg-type]  # called with this type only
    application.add_exception_handler(HTTPException, http_error)  # type: ignore[arg-type]
    application.add_middleware(UnhandledErrorMiddleware)


def _not_allowed(request: Request) -> Response:
    """Answer 405 with every method of the path (RFC 9110, section 15.5.6); Starlette names those of one route only."""
    routes = request.app.routes
    scopes = [{**request.scope, "method": method} for method in METHODS]
    allowed = [one["method"] for one in scopes if any(route.matches(one)[0] is Match.FULL for route in routes)]
    methods = ", ".join(allowed)
    detail = f"{request.url.path} does not support {request.method}; allowed: {methods}"
    return problem_response(405, "VALIDATION_ERROR", detail, headers={"allow": methods})
