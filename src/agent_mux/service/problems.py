"""Errors as problem details, with our codes. Source: RFC 9457.

{"type": "urn:agent-mux:error:RUN_NOT_FOUND", "title": "Not Found", "status": 404, "code": "RUN_NOT_FOUND",
"detail": "there is no run 01...", "recoverable": false}
"""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agent_mux._util.logs import LOGGER
from agent_mux._util.sanitize import to_json_bytes
from agent_mux.api import Shape
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
    "LIMIT_EXCEEDED": 429,
    "RATE_LIMITED": 429,
    "BUDGET_EXCEEDED": 429,
    "TIMEOUT": 504,
    "UNAUTHENTICATED": 401,
    "FORBIDDEN": 403,
}
"""Others are errors of ours, or of what is on the machine: 500."""
_CODE_BY_STATUS: Mapping[int, AnyCode] = {
    401: "UNAUTHENTICATED",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    408: "TIMEOUT",
    421: "FORBIDDEN",
    429: "LIMIT_EXCEEDED",
    503: "UNAVAILABLE",
}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
RETRY_AFTER = "1"
"""Seconds; with what may be better soon."""


class FieldProblem(Shape, kw_only=True):
    """One bad field of a request."""

    path: str
    received: Any
    allowed: str


class ProblemDetails(Shape, kw_only=True, omit_defaults=True):
    """What went wrong."""

    type: str
    """`urn:agent-mux:error:` and the code."""
    title: str
    """What the status means."""
    status: int
    code: str
    detail: str
    """What happened, to what, and what to do next."""
    recoverable: bool
    """The same request may work later."""
    fields: list[FieldProblem] | msgspec.UnsetType = msgspec.UNSET
    """Every bad field of the first group that is wrong."""
    agent: str | msgspec.UnsetType = msgspec.UNSET
    capability: str | msgspec.UnsetType = msgspec.UNSET


def error_response(error: AgentMuxError) -> Response:
    """The answer for an error of ours."""
    members: dict[str, Any] = {}
    if isinstance(error, ValidationError):
        members["fields"] = [_field(one) for one in error.fields]
    if isinstance(error, CapabilityError):
        members |= {"agent": error.agent, "capability": error.capability}
    return problem_response(
        STATUS.get(error.code, 500), error.code, error.message, recoverable=error.recoverable, **members
    )


def http_error_response(error: HTTPException) -> Response:
    """The answer for an error that has a status."""
    return status_response(error.status_code, str(error.detail), error.headers)


def status_response(status: int, detail: str = "", headers: Mapping[str, str] | None = None) -> Response:
    """The answer for what has a status and no code."""
    code = _CODE_BY_STATUS.get(status, "VALIDATION_ERROR")
    return problem_response(status, code, detail or HTTPStatus(status).phrase, headers=headers)


def problem_response(
    status: int,
    code: AnyCode,
    detail: str,
    *,
    recoverable: bool = False,
    headers: Mapping[str, str] | None = None,
    **members: Any,
) -> Response:
    """An answer that says what went wrong."""
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
    """What nobody expected is told, too, and takes the connection down only where the answer has begun."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
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
            answer = problem_response(500, "INTERNAL", "an error of agent-mux itself; the log of the service says more")
            await answer(scope, receive, send)


def install_handlers(application: FastAPI) -> None:
    """Whatever goes wrong is told this way."""

    async def known_error(_: Request, error: AgentMuxError) -> Response:
        return error_response(error)

    async def invalid_parameters(_: Request, error: RequestValidationError) -> Response:
        fields = [FieldError(_parameter_path(one), one.get("input"), str(one.get("msg"))) for one in error.errors()]
        return error_response(ValidationError(fields))

    async def http_error(request: Request, error: HTTPException) -> Response:
        return _not_allowed(request) if error.status_code == 405 else http_error_response(error)

    application.add_exception_handler(AgentMuxError, known_error)  # type: ignore[arg-type]  # it is called with no other
    application.add_exception_handler(RequestValidationError, invalid_parameters)  # type: ignore[arg-type]
    application.add_exception_handler(HTTPException, http_error)  # type: ignore[arg-type]
    application.add_middleware(UnhandledErrorMiddleware)


def _not_allowed(request: Request) -> Response:
    """Starlette names the methods of one route; a path may have several. Source: RFC 9110, section 15.5.6."""
    routes = request.app.routes
    scopes = [{**request.scope, "method": method} for method in METHODS]
    allowed = [one["method"] for one in scopes if any(route.matches(one)[0] is Match.FULL for route in routes)]
    methods = ", ".join(allowed)
    detail = f"{request.method} is not for {request.url.path}; it takes {methods}"
    return problem_response(405, "VALIDATION_ERROR", detail, headers={"allow": methods})


def _parameter_path(error: Any) -> str:
    return ".".join(str(part) for part in error.get("loc", ())[1:]) or "(request)"
