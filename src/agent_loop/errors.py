"""The exceptions of the package, as one tree. Errors carry data; `str()` composes the sentence.

AgentLoopError
├── ConfigurationError          invalid options of an agent: an unknown hook name, a value out of range
│   └── MissingKeyError         a key is required and none was given
├── MessageError                a sequence of messages that providers reject
├── RunInProgressError          a second run was started while one is active
├── AbortedError                the run was aborted
├── ProviderError               the model call failed for a reason that is not known to be transient
│   ├── ContextExceededError    the request is larger than the context window
│   ├── RateLimitedError        too many requests (retryable; may state a delay)
│   ├── QuotaExceededError      the account has no credit or quota left
│   ├── AuthenticationError     the key is missing or invalid
│   ├── ContentFilteredError    the provider blocked the answer
│   ├── EmptyAnswerError        the model ended a run without any text
│   ├── NetworkError            the connection failed, or the service is unavailable (retryable)
│   └── ModelAbortedError       the provider ended the answer on request
├── ToolError                   a tool failed; its message is sent to the model
│   ├── ExecutionError          the execution context of a tool cannot be used
│   ├── InvalidArgumentsError   the arguments do not match the parameters
│   ├── McpServerError          an MCP server refused a call or cannot be reached
│   │   └── McpConnectionError  the connection to the server is lost
│   ├── ToolCancelledError      the tool was stopped because the run was aborted
│   └── WorkspaceError          a path outside of the workspace, or an unusable one
└── SessionError                a stored session cannot be used
    ├── SessionNotFoundError
    └── SessionLockedError      another process is writing it
"""

from collections.abc import Iterable
from typing import ClassVar, Literal

__all__ = [
    "AbortedError",
    "AgentLoopError",
    "AuthenticationError",
    "ConfigurationError",
    "ContentFilteredError",
    "ContextExceededError",
    "EmptyAnswerError",
    "ExecutionError",
    "InvalidArgumentsError",
    "McpConnectionError",
    "McpServerError",
    "MessageError",
    "MissingKeyError",
    "ModelAbortedError",
    "NetworkError",
    "ProviderError",
    "ProviderErrorKind",
    "QuotaExceededError",
    "RateLimitedError",
    "RunInProgressError",
    "SessionError",
    "SessionLockedError",
    "SessionNotFoundError",
    "ToolCancelledError",
    "ToolError",
    "WorkspaceError",
]

ProviderErrorKind = Literal[
    "provider", "context_exceeded", "rate_limited", "quota", "auth", "network", "aborted", "filtered", "empty"
]
REDACTED = "(redacted)"


def error_text(error: BaseException) -> str:
    """Return `str(error)`, or an empty string if the `__str__` of a foreign exception raises."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001  # its own `__str__`
        return ""


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return the text with each of the secrets replaced, the longest first."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, REDACTED)
    return text


def first_error(error: Exception) -> Exception:
    """Return the error, or the first one of an exception group that concurrent tools raised."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


class AgentLoopError(Exception):
    """Base class of all errors of this package."""


class ConfigurationError(AgentLoopError):
    """Invalid option of an agent; raised at construction, never during a run."""

    def __init__(self, message: str = "", *, need: str = "", variables: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.need = need
        """What is missing, as a sentence without the next step; empty if nothing is."""
        self.variables = variables
        """The environment variables of which one provides it."""


class MissingKeyError(ConfigurationError):
    """An API key is required and none was given: by the provider of a model, or to choose a model."""


class MessageError(AgentLoopError, ValueError):
    """A message, or a sequence of messages, that violates the rules of the roles."""

    def __init__(self, message: str, *, index: int | None = None) -> None:
        super().__init__(message)
        self.index = index
        """Position of the message in the sequence, from 0; None if the error concerns all messages."""


class RunInProgressError(AgentLoopError):
    """The agent already executes a run; use `steer()` or `follow_up()`."""


class AbortedError(AgentLoopError):
    """The run was aborted by `Agent.abort` or by a hook."""


class ProviderError(AgentLoopError):
    """The model call failed, and the error is not known to be transient."""

    kind: ClassVar[ProviderErrorKind] = "provider"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, provider: str = "", status: int | None = None) -> None:
        super().__init__(message)
        self.provider = provider
        self.status = status
        """HTTP status of the response, if any."""


class ContextExceededError(ProviderError):
    """The request exceeds the model's context window. The loop compacts the context and retries."""

    kind = "context_exceeded"

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        status: int | None = None,
        used_tokens: int | None = None,
        max_tokens: int | None = None,
    ) -> None:
        super().__init__(message, provider=provider, status=status)
        self.used_tokens = used_tokens
        self.max_tokens = max_tokens


class RateLimitedError(ProviderError):
    """The provider rejected the request because of its rate limit."""

    kind = "rate_limited"
    retryable = True

    def __init__(
        self, message: str, *, provider: str = "", status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, provider=provider, status=status)
        self.retry_after = retry_after
        """Seconds that the provider asks to wait, if it states them."""


class QuotaExceededError(ProviderError):
    """The account has no credit or quota left. Waiting seconds does not help, so that it is not retried."""

    kind = "quota"


class AuthenticationError(ProviderError):
    """The key is missing, invalid, or lacks access to this model."""

    kind = "auth"


class NetworkError(ProviderError):
    """The connection failed or was interrupted, or the service is unavailable (HTTP 5xx)."""

    kind = "network"
    retryable = True


class ModelAbortedError(ProviderError):
    """The provider ended the answer on request."""

    kind = "aborted"


class ContentFilteredError(ProviderError):
    """The provider blocked the answer, or ended it, because of its content."""

    kind = "filtered"


class EmptyAnswerError(ProviderError):
    """The model ended the run without text, and no earlier answer of the run has any."""

    kind = "empty"


class ToolError(AgentLoopError):
    """A tool failed. The model gets the message as an error result."""


class ExecutionError(ToolError):
    """The execution context of a tool cannot be started, or its connection is lost."""


class InvalidArgumentsError(ToolError):
    """The arguments do not match the tool's parameters, even after coercion."""


class McpServerError(ToolError):
    """An MCP server refused a call, answered with something invalid, or cannot be reached."""


class McpConnectionError(McpServerError):
    """The connection to an MCP server is lost."""


class ToolCancelledError(ToolError):
    """The tool stopped because the run was aborted."""


class WorkspaceError(ToolError):
    """A path outside of the workspace, or a path that cannot be used for the operation."""


class SessionError(AgentLoopError):
    """A stored session cannot be read, written or continued."""


class SessionNotFoundError(SessionError):
    """The store has no session with this id."""

    def __init__(self, session_id: str, place: str = "") -> None:
        super().__init__(f"session {session_id!r} not found{f' in {place}' if place else ''}")
        self.session_id = session_id


class SessionLockedError(SessionError):
    """Another process or agent is writing this session."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id!r} is being written by another process; try again later")
        self.session_id = session_id
