"""Errors events. Source: agent-events spec, section 21."""

from typing import ClassVar, Literal

from agent_mux.errors import ErrorCode
from agent_mux.events.base import BaseEvent, Milliseconds, Tokens


class AuthErrorEvent(BaseEvent, frozen=True):
    """The agent could not authenticate. Terminal. Source: agent-events spec, section 21."""

    type: ClassVar[Literal["auth_error"]] = "auth_error"

    message: str
    """What the agent said."""
    guidance: str
    """What to do about it."""


class RateLimitErrorEvent(BaseEvent, frozen=True):
    """A rate limit was final. Source: agent-events spec, section 21."""

    type: ClassVar[Literal["rate_limit_error"]] = "rate_limit_error"

    message: str
    """What the agent said."""
    retry_after_ms: Milliseconds | None = None
    """Suggested wait."""


class ContextExceededEvent(BaseEvent, frozen=True):
    """The context window is full. Terminal. Source: agent-events spec, section 21."""

    type: ClassVar[Literal["context_exceeded"]] = "context_exceeded"

    used_tokens: Tokens
    """In use; 0 where unknown."""
    max_tokens: Tokens
    """The window; 0 where unknown."""


class CrashEvent(BaseEvent, frozen=True):
    """The agent died without its closing message. Terminal. Source: agent-events spec, section 21."""

    type: ClassVar[Literal["crash"]] = "crash"

    exit_code: int
    """Its exit code; minus the signal number when killed; -1 when it never started."""
    stderr: str
    """The tail of its standard error."""


class ErrorEvent(BaseEvent, frozen=True):
    """Any other failure; terminal unless recoverable. Source: agent-events spec, section 21."""

    type: ClassVar[Literal["error"]] = "error"

    code: ErrorCode
    """Machine-readable."""
    message: str
    """What happened."""
    recoverable: bool
    """The run goes on."""
