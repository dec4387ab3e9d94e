"""Errors as JSON-RPC errors of the protocol; their `data` holds the code of agent-mux."""

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

from acp import RequestError

from agent_mux.errors import AgentMuxError, AnyCode
from agent_mux.run.result import RunError

INTERNAL_ERROR = -32603
_RPC_CODES: Mapping[AnyCode, int] = {
    "AUTH_ERROR": -32000,
    "SESSION_NOT_FOUND": -32002,
    "VALIDATION_ERROR": -32602,
    "CAPABILITY_ERROR": -32602,
    "PROFILE_NOT_FOUND": -32602,
}
"""JSON-RPC codes by our codes. All others are internal errors, as the protocol prescribes."""


def request_error(code: AnyCode, message: str, *, recoverable: bool = False) -> RequestError:
    """Return the JSON-RPC error for one of our codes."""
    return RequestError(_RPC_CODES.get(code, INTERNAL_ERROR), message, {"code": code, "recoverable": recoverable})


def error_from(error: AgentMuxError) -> RequestError:
    """Convert an `AgentMuxError` to a JSON-RPC error."""
    return request_error(error.code, error.message, recoverable=error.recoverable)


def run_error(agent: str, error: RunError | None, guidance: str) -> RequestError:
    """Return the error of a run that did not complete. `guidance` explains how to authenticate the agent."""
    if error is None:
        return request_error("AGENT_CRASH", f"{agent} ended without an error message")
    return request_error(error.code, _with_guidance(error.code, error.message, guidance), recoverable=error.recoverable)


def turn_error(code: AnyCode, message: str, guidance: str) -> RequestError:
    """Return the error of a failed turn of an agent that is still running."""
    return request_error(code, _with_guidance(code, message, guidance), recoverable=True)


def _with_guidance(code: AnyCode, message: str, guidance: str) -> str:
    return f"{message} ({guidance})" if code == "AUTH_ERROR" and guidance else message


_Method = TypeVar("_Method", bound=Callable[..., Awaitable[Any]])


def with_request_errors(method: _Method) -> _Method:
    """Convert `AgentMuxError` of an asynchronous method to JSON-RPC errors."""

    @wraps(method)
    async def asked(*args: Any, **kwargs: Any) -> Any:
        try:
            return await method(*args, **kwargs)
        except AgentMuxError as error:
            raise error_from(error) from error

    return cast("_Method", asked)
