"""Functions of the consumer that a run calls and does not wait for: how they are checked, and what they may return."""

from collections.abc import Callable
from inspect import iscoroutine, iscoroutinefunction
from typing import Any, TypeVar

from agent_mux.errors import AgentMuxError

_Handler = TypeVar("_Handler", bound=Callable[..., Any])


class WrongReturnError(Exception):
    """A function of the consumer returned what has no effect. It is reported like an exception of the function."""


def check_handler(handler: _Handler, what: str = "an event handler") -> _Handler:
    """Return a handler. Raises VALIDATION_ERROR unless it is a plain function; `what` is for the message."""
    if not callable(handler):
        raise AgentMuxError("VALIDATION_ERROR", f"{what} must be a function; got {handler!r}")
    if iscoroutinefunction(handler) or iscoroutinefunction(getattr(handler, "__call__", None)):  # noqa: B004
        name = getattr(handler, "__qualname__", repr(handler))
        raise AgentMuxError(
            "VALIDATION_ERROR",
            f"the {what.removeprefix('an ').removeprefix('a ')} {name} is a coroutine function, which would never be "
            "awaited; use a plain function, or `async for event in run`",
        )
    return handler


def call_handler(handler: Callable[..., Any], *values: Any) -> Any:
    """Call a handler and return its value. Raises `WrongReturnError` for a coroutine, which nobody would await.

    Other awaitables are right: a task proceeds without being awaited, and `run.on` returns the run.
    """
    returned = handler(*values)
    if iscoroutine(returned):
        returned.close()  # it would warn at some later time that it was never awaited
        raise WrongReturnError("it returned a coroutine, which is not awaited; use a plain function")
    return returned


def shown(value: Any, longest: int = 200) -> str:
    """Return a returned value and its type, for messages. A consumer's `__repr__` may raise anything."""
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001  # see above
        text = f"<{type(error).__name__} in repr>"
    text = text if len(text) <= longest else text[:longest] + "..."
    return text if value is None else f"{text} ({type(value).__name__})"
