"""Errors in the words of the protocol: a JSON-RPC error says what happened, its data has our code."""

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

from acp import RequestError

from agent_mux.errors import AgentMuxError, AnyCode
from agent_mux.run.result import RunError

INTERNAL = -32603
_CODES: Mapping[AnyCode, int] = {
    "AUTH_ERROR": -32000,
    "SESSION_NOT_FOUND": -32002,
    "VALIDATION_ERROR": -32602,
    "CAPABILITY_ERROR": -32602,
    "PROFILE_NOT_FOUND": -32602,
}
"""Others are internal errors, which is what the protocol calls all the rest."""


def failure(code: AnyCode, message: str, *, recoverable: bool = False) -> RequestError:
    """The JSON-RPC error for one of our codes."""
    return RequestError(_CODES.get(code, INTERNAL), message, {"code": code, "recoverable": recoverable})


def failure_of(error: AgentMuxError) -> RequestError:
    """The JSON-RPC error that says the same."""
    return failure(error.code, error.message, recoverable=error.recoverable)


def failure_of_run(agent: str, error: RunError | None, guidance: str) -> RequestError:
    """Why a run did not complete. `guidance`: what a person does when the agent is not authenticated."""
    if error is None:
        return failure("AGENT_CRASH", f"{agent} ended without a word")
    return failure(error.code, _with_guidance(error.code, error.message, guidance), recoverable=error.recoverable)


def failure_of_turn(code: AnyCode, message: str, guidance: str) -> RequestError:
    """Why a turn failed, though the agent lives on."""
    return failure(code, _with_guidance(code, message, guidance), recoverable=True)


def _with_guidance(code: AnyCode, message: str, guidance: str) -> str:
    return f"{message} ({guidance})" if code == "AUTH_ERROR" and guidance else message


_Asked = TypeVar("_Asked", bound=Callable[..., Awaitable[Any]])


def raising_failures(method: _Asked) -> _Asked:
    """The method, with our errors as those of JSON-RPC."""

    @wraps(method)
    async def asked(*args: Any, **kwargs: Any) -> Any:
        try:
            return await method(*args, **kwargs)
        except AgentMuxError as error:
            raise failure_of(error) from error

    return cast("_Asked", asked)
