"""What can go wrong, as one tree. Errors carry data; `str()` composes the sentence.

AgentLoopError
├── ConfigurationError          the agent was built wrongly: an unknown hook name, an option out of range
│   └── MissingKeyError         a provider wants a key, and there is none
├── MessageError                a chain of messages that no provider would take
├── RunInProgressError          a second run was begun while one is going on
├── AbortedError                somebody aborted the run
├── ProviderError               the model could not answer, and nobody knows why it would if asked again
│   ├── ContextExceededError    the request is larger than the context window
│   ├── RateLimitedError        too many requests (retryable; may say when)
│   ├── AuthenticationError     the key is missing or wrong
│   ├── NetworkError            the connection failed, or the service is down for now (retryable)
│   └── ModelAbortedError       the provider ended the answer because it was told to
├── ToolError                   a tool failed; its message goes to the model, which may correct itself
│   ├── InvalidArgumentsError   the arguments are not what the tool takes
│   ├── ToolCancelledError      the tool was stopped before it was done
│   └── WorkspaceError          a path that leaves the workspace, or cannot be used
└── SessionError                a stored session cannot be used
    ├── SessionNotFoundError
    └── SessionLockedError      another process writes it
"""

from typing import ClassVar, Literal

__all__ = [
    "AbortedError",
    "AgentLoopError",
    "AuthenticationError",
    "ConfigurationError",
    "ContextExceededError",
    "InvalidArgumentsError",
    "MessageError",
    "MissingKeyError",
    "ModelAbortedError",
    "NetworkError",
    "ProviderError",
    "ProviderErrorKind",
    "RateLimitedError",
    "RunInProgressError",
    "SessionError",
    "SessionLockedError",
    "SessionNotFoundError",
    "ToolCancelledError",
    "ToolError",
    "WorkspaceError",
]

ProviderErrorKind = Literal["provider", "context_exceeded", "rate_limited", "auth", "network", "aborted"]


def error_text(error: BaseException) -> str:
    """What an error says; nothing where it cannot even say that: errors are written by anybody."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001  # its own `__str__`
        return ""


def first_error(error: Exception) -> Exception:
    """The error itself; of those that tools side by side raised together, the first."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    return error


class AgentLoopError(Exception):
    """Base of all errors of this package."""


class ConfigurationError(AgentLoopError):
    """The agent was built with something that cannot be; raised at construction, never in the middle of a run."""


class MissingKeyError(ConfigurationError):
    """A provider is to be asked that wants a key, and nobody gave one."""


class MessageError(AgentLoopError, ValueError):
    """A chain of messages that breaks the rules of the four roles."""

    def __init__(self, message: str, *, index: int | None = None) -> None:
        super().__init__(message)
        self.index = index
        """Place of the message in the chain, from 0; None: it is about the whole."""


class RunInProgressError(AgentLoopError):
    """One agent runs one loop at a time: say it with `steer()` or `follow_up()`."""


class AbortedError(AgentLoopError):
    """The run was aborted."""


class ProviderError(AgentLoopError):
    """The model could not answer. Source: zidane, "Typed errors"; phi-core, section 7."""

    kind: ClassVar[ProviderErrorKind] = "provider"
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, provider: str = "", status: int | None = None) -> None:
        super().__init__(message)
        self.provider = provider
        self.status = status
        """HTTP status, where there was one."""


class ContextExceededError(ProviderError):
    """The request is larger than the context window of the model. The loop compacts and asks once more."""

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
    """The provider wants fewer requests."""

    kind = "rate_limited"
    retryable = True

    def __init__(
        self, message: str, *, provider: str = "", status: int | None = None, retry_after: float | None = None
    ) -> None:
        super().__init__(message, provider=provider, status=status)
        self.retry_after = retry_after
        """Seconds that the provider asks to wait, where it says so."""


class AuthenticationError(ProviderError):
    """The key is missing, wrong, or may not use this model."""

    kind = "auth"


class NetworkError(ProviderError):
    """The connection failed or broke off, or the service answered that it is down (5xx)."""

    kind = "network"
    retryable = True


class ModelAbortedError(ProviderError):
    """The answer was broken off on request."""

    kind = "aborted"


class ToolError(AgentLoopError):
    """A tool could not do it. What it says goes to the model as an error result."""


class InvalidArgumentsError(ToolError):
    """The arguments are not what the tool takes, also after coercion."""


class ToolCancelledError(ToolError):
    """The tool stopped because the run was aborted."""


class WorkspaceError(ToolError):
    """A path that leaves the workspace, or that cannot be used as it was meant."""


class SessionError(AgentLoopError):
    """A stored session cannot be used."""


class SessionNotFoundError(SessionError):
    """No session of this id is stored."""

    def __init__(self, session_id: str, place: str = "") -> None:
        super().__init__(f"there is no session {session_id!r}{f' in {place}' if place else ''}")
        self.session_id = session_id


class SessionLockedError(SessionError):
    """Somebody else is writing this session."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"session {session_id!r} is being written by another process; try again when it is done")
        self.session_id = session_id
