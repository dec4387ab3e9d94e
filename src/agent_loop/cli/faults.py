"""Errors as one sentence, and as codes of the event contract."""

from agent_loop.cli.fault import Fault
from agent_loop.cli.outcomes import AUTH_GUIDANCE
from agent_loop.errors import (
    AgentLoopError,
    AuthenticationError,
    ConfigurationError,
    ContextExceededError,
    MissingKeyError,
    RateLimitedError,
    SessionNotFoundError,
)
from agent_mux import facts
from agent_mux.errors import ErrorCode
from agent_mux.redaction import redact_text

LONGEST = 2000  # characters of a sentence
_CODES: tuple[tuple[type[Exception], ErrorCode], ...] = (
    (SessionNotFoundError, "SESSION_NOT_FOUND"),
    (MissingKeyError, "AUTH_ERROR"),
    (ConfigurationError, "VALIDATION_ERROR"),
    (Fault, "VALIDATION_ERROR"),
    (AuthenticationError, "AUTH_ERROR"),
    (RateLimitedError, "RATE_LIMITED"),
    (ContextExceededError, "CONTEXT_EXCEEDED"),
    (AgentLoopError, "AGENT_CRASH"),
)


def sentence_of(error: BaseException) -> str:
    """What happened, on one line, without secrets."""
    cause = unwrapped(error)
    if isinstance(cause, AgentLoopError | Fault):
        message = str(cause) or type(cause).__name__
    elif isinstance(cause, OSError):
        message = f"{cause.filename}: {cause.strerror}" if cause.filename else str(cause)
    elif isinstance(cause, ModuleNotFoundError):
        message = f"{cause}; what this model needs comes with: pip install 'agent-mux[native]'"
    else:
        message = f"an error of amux-agent itself: {type(cause).__name__}: {cause}"
    return redact_text(" ".join(message.split()))[:LONGEST]


def code_of(error: BaseException) -> ErrorCode:
    """The code of an error."""
    cause = unwrapped(error)
    if isinstance(cause, OSError | ModuleNotFoundError):
        return "CONFIG_ERROR"
    return next((code for kind, code in _CODES if isinstance(cause, kind)), "INTERNAL")


def is_usage(error: BaseException) -> bool:
    """Whoever started the program can do something about it."""
    is_missing = isinstance(unwrapped(error), MissingKeyError)
    return is_missing or code_of(error) in {"VALIDATION_ERROR", "SESSION_NOT_FOUND", "CONFIG_ERROR"}


def failure_of(error: BaseException) -> facts.Failure:
    """The failure that an error is."""
    code = code_of(error)
    return facts.Failure(code, sentence_of(error), guidance=AUTH_GUIDANCE if code == "AUTH_ERROR" else "")


def unwrapped(error: BaseException) -> BaseException:
    """Task groups wrap what happens inside of them, however lonely it is."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
