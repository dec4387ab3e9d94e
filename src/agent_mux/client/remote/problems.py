"""Problem details (RFC 9457) of the service, as the errors that they were there."""

from typing import Any, get_args

import httpx
import msgspec

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
_LONGEST_SHOWN = 200  # characters of an answer that is none of ours


class FieldProblem(msgspec.Struct):
    """One bad field."""

    path: str
    received: Any
    allowed: str


class Problem(msgspec.Struct):
    """What went wrong, as far as we read it."""

    code: str
    detail: str
    recoverable: bool = False
    fields: list[FieldProblem] = []
    agent: str = ""
    capability: str = ""


def error_of(status: int, body: bytes, url: httpx.URL) -> AgentMuxError:
    """What an answer that is no success means. One that is not by the service is UNAVAILABLE."""
    try:
        problem = msgspec.json.decode(body, type=Problem)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        said = body[:_LONGEST_SHOWN].decode("utf-8", "replace")
        strange = f"{url.copy_with(query=None)} answered {status}, and not as a service of agent-mux does: {said!r}"
        return AgentMuxError("UNAVAILABLE", strange)
    return _error(problem)


def _error(problem: Problem) -> AgentMuxError:
    code: AnyCode = problem.code if problem.code in _CODES else "INTERNAL"  # type: ignore[assignment]  # it is one
    if code == "VALIDATION_ERROR" and problem.fields:
        return ValidationError([FieldError(_path(one.path), one.received, one.allowed) for one in problem.fields])
    if code == "CAPABILITY_ERROR" and problem.capability:
        error: AgentMuxError = CapabilityError(problem.agent, problem.capability)
        error.message = problem.detail
        return error
    return AgentMuxError(code, problem.detail, recoverable=problem.recoverable)


def _path(key: str) -> str:
    """A key of the request as the field of `RunOptions` that it is."""
    ends = [place for place in (key.find("."), key.find("[")) if place >= 0]
    end = min(ends, default=len(key))
    return REQUEST_KEYS.get(key[:end], key[:end]) + key[end:]
