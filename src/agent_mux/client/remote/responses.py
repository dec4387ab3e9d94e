"""The responses of a service: decoded values, or problem details (RFC 9457) as the errors that they stand for."""

from typing import Any, get_args

import msgspec

from agent_mux.client.remote import lazy_httpx as httpx
from agent_mux.errors import (
    ERROR_CODES,
    AgentMuxError,
    AnyCode,
    CapabilityError,
    FieldError,
    ServiceCode,
    ValidationError,
)
from agent_mux.settings.requests import REQUEST_KEYS

_CODES = frozenset({*ERROR_CODES, *get_args(ServiceCode)})
_MAX_QUOTED = 200  # bytes of a response that is not one of our service


class _FieldProblem(msgspec.Struct):
    """One invalid field of a request."""

    path: str
    received: Any
    allowed: str


class _ProblemDetails(msgspec.Struct):
    """The fields of problem details that the client reads."""

    code: str
    detail: str
    recoverable: bool = False
    fields: list[_FieldProblem] = []
    agent: str = ""
    capability: str = ""


def decode_response(body: bytes, kind: Any) -> Any:
    """Decode the JSON of a successful response as a `kind`. Raises UNAVAILABLE when it cannot be decoded."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise incompatible_response(error) from error


def incompatible_response(error: Exception) -> AgentMuxError:
    """Return the UNAVAILABLE error for a response of the service that this version of the client cannot decode."""
    return AgentMuxError("UNAVAILABLE", f"the response of the service cannot be read by this version: {error}")


def error_of(status: int, body: bytes, url: "httpx.URL") -> AgentMuxError:
    """Return the error that an unsuccessful response stands for; UNAVAILABLE if no agent-mux service sent it."""
    try:
        problem = msgspec.json.decode(body, type=_ProblemDetails)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return foreign_response(status, body, url)
    return _error_of_problem(problem)


def foreign_response(status: int, body: bytes, url: "httpx.URL") -> AgentMuxError:
    """Return the UNAVAILABLE error for a response that no agent-mux service sent."""
    text = body[:_MAX_QUOTED].decode("utf-8", "replace").strip()
    quoted = f" ({text!r})" if text and not text.startswith("<") else ""  # the markup of a page explains nothing
    where = url.copy_with(query=None)
    message = f"{where} answered {status}{quoted}, but not as an agent-mux service does; check the URL"
    return AgentMuxError("UNAVAILABLE", message)


def _error_of_problem(problem: _ProblemDetails) -> AgentMuxError:
    code: AnyCode = problem.code if problem.code in _CODES else "INTERNAL"  # type: ignore[assignment]  # it is one
    if code == "VALIDATION_ERROR" and problem.fields:
        return ValidationError(
            [FieldError(_option_path(one.path), one.received, one.allowed) for one in problem.fields]
        )
    if code == "CAPABILITY_ERROR" and problem.capability:
        error: AgentMuxError = CapabilityError(problem.agent, problem.capability)
        error.message = problem.detail
        return error
    return AgentMuxError(code, problem.detail, recoverable=problem.recoverable)


def _option_path(key: str) -> str:
    """Convert a path that begins with a key of the request to one that begins with the field of `RunOptions`."""
    ends = [position for position in (key.find("."), key.find("[")) if position >= 0]
    end = min(ends, default=len(key))
    return REQUEST_KEYS.get(key[:end], key[:end]) + key[end:]


def unsupported(operation: str, hint: str) -> CapabilityError:
    """Return the error for a method that `AgentMux` has and a service does not offer. `hint`: what to do instead."""
    return CapabilityError("a service", operation, hint=hint)
