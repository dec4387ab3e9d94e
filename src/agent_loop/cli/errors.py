"""Errors of the program: usage errors, and any error as one sentence and as a code of the event contract."""

from agent_loop.errors import (
    AgentLoopError,
    AuthenticationError,
    ConfigurationError,
    ContentFilteredError,
    ContextExceededError,
    EmptyAnswerError,
    MissingKeyError,
    QuotaExceededError,
    RateLimitedError,
    SessionNotFoundError,
)
from agent_mux.errors import ErrorCode

MAX_MESSAGE = 2000
"""The longest error message in characters."""


class UsageError(Exception):
    """A mistake in the command line, the settings or a named file. `str()` is the whole sentence."""


class OutputError(Exception):
    """Standard output cannot be written, although it has a reader: the disk is full, for example."""

    def __init__(self, cause: OSError) -> None:
        """Take the error of the write."""
        super().__init__(f"standard output cannot be written: {cause.strerror}")


_CODES: tuple[tuple[type[Exception], ErrorCode], ...] = (
    (SessionNotFoundError, "SESSION_NOT_FOUND"),
    (MissingKeyError, "AUTH_ERROR"),
    (ConfigurationError, "VALIDATION_ERROR"),
    (UsageError, "VALIDATION_ERROR"),
    (AuthenticationError, "AUTH_ERROR"),
    (RateLimitedError, "RATE_LIMITED"),
    (QuotaExceededError, "RATE_LIMITED"),
    (ContentFilteredError, "CONTENT_FILTERED"),
    (EmptyAnswerError, "EMPTY_ANSWER"),
    (ContextExceededError, "CONTEXT_EXCEEDED"),
    (AgentLoopError, "AGENT_CRASH"),
)


def message_of(error: BaseException) -> str:
    """Return a description of the error on one line, with secrets redacted."""
    from agent_mux.redaction import redact_text  # noqa: PLC0415  # `--help` imports this module and needs no redaction

    cause = unwrap(error)
    if isinstance(cause, SessionNotFoundError):
        message = f"{cause}; `amux-agent sessions` lists those that are stored"
    elif isinstance(cause, ConfigurationError) and cause.variables:
        # The keyword that `str(cause)` names is one of `provider_named`; a run has only its environment.
        names = " or ".join(cause.variables)
        message = f"{cause.need}; set {names} in the environment, or in `env` of the run"
    elif isinstance(cause, AgentLoopError | UsageError | OutputError):
        message = str(cause) or type(cause).__name__
    elif isinstance(cause, OSError):
        message = f"{cause.filename}: {cause.strerror}" if cause.filename else str(cause)
    elif isinstance(cause, ModuleNotFoundError):
        message = f"{cause}; install the dependencies of this model with: pip install 'agent-mux[native]'"
    else:
        message = f"internal error of amux-agent: {type(cause).__name__}: {cause}"
    return redact_text(" ".join(message.split()))[:MAX_MESSAGE]


def code_of(error: BaseException) -> ErrorCode:
    """Return the code of an error in the event contract."""
    cause = unwrap(error)
    if isinstance(cause, OSError | ModuleNotFoundError):
        return "CONFIG_ERROR"
    return next((code for kind, code in _CODES if isinstance(cause, kind)), "INTERNAL")


def is_usage_error(error: BaseException) -> bool:
    """Whether the user can fix the error by changing the command line or the settings."""
    return code_of(error) in {"VALIDATION_ERROR", "SESSION_NOT_FOUND", "CONFIG_ERROR"}


def unwrap(error: BaseException) -> BaseException:
    """Return the first exception in exception groups, in which task groups wrap even a single exception."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
