"""Run lifecycle and control events. Source: agent-events spec, section 20.

Rate and context limits events. Source: agent-events spec, section 19.


Errors events. Source: agent-events spec, section 21.


Interaction events. Source: agent-events spec, section 18.


Diagnostics events. Source: agent-events spec, section 22.
"""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from agent_mux.errors import ErrorCode
from agent_mux.events.base import BaseEvent, Milliseconds, Tokens


class InterruptedEvent(BaseEvent, frozen=True):
    """The run ended by an interruption. Terminal. Source: agent-events spec, section 20."""

    type: ClassVar[Literal["interrupted"]] = "interrupted"


class AbortedEvent(BaseEvent, frozen=True):
    """The run was aborted. Terminal. Source: agent-events spec, section 20."""

    type: ClassVar[Literal["aborted"]] = "aborted"


class PausedEvent(BaseEvent, frozen=True):
    """The run is stopped and can go on. Source: agent-events spec, section 20."""

    type: ClassVar[Literal["paused"]] = "paused"


class ResumedEvent(BaseEvent, frozen=True):
    """The run goes on. Source: agent-events spec, section 20."""

    type: ClassVar[Literal["resumed"]] = "resumed"


class TimeoutEvent(BaseEvent, frozen=True):
    """The run ran out of time. Terminal. Source: agent-events spec, section 20."""

    type: ClassVar[Literal["timeout"]] = "timeout"

    kind: Literal["run", "inactivity"]
    """Which limit was hit."""


class TurnLimitEvent(BaseEvent, frozen=True):
    """The agent stopped at its turn limit. Terminal. Source: agent-events spec, section 20."""

    type: ClassVar[Literal["turn_limit"]] = "turn_limit"

    max_turns: Annotated[int, Meta(ge=0)]
    """The configured limit; 0 where unknown."""


class StreamFallbackEvent(BaseEvent, frozen=True):
    """A kind of output comes whole instead of streamed; once per kind. Source: agent-events spec, section 20."""

    type: ClassVar[Literal["stream_fallback"]] = "stream_fallback"

    capability: Literal["text", "tool_calls", "thinking"]
    """What is not streamed."""
    reason: str
    """Why."""


class RateLimitedEvent(BaseEvent, frozen=True):
    """The provider slows the agent down. Source: agent-events spec, section 19."""

    type: ClassVar[Literal["rate_limited"]] = "rate_limited"

    retry_after_ms: Milliseconds | None = None
    """Suggested wait."""


class ContextLimitWarningEvent(BaseEvent, frozen=True):
    """The context window fills up. Source: agent-events spec, section 19."""

    type: ClassVar[Literal["context_limit_warning"]] = "context_limit_warning"

    used_tokens: Tokens
    """In use."""
    max_tokens: Tokens
    """The window."""
    pct_used: Annotated[float, Meta(ge=0)]
    """0-100."""


class ContextCompactedEvent(BaseEvent, frozen=True):
    """The agent compressed its context. Source: agent-events spec, section 19."""

    type: ClassVar[Literal["context_compacted"]] = "context_compacted"

    summary: str
    """What was removed or compressed."""
    tokens_saved: Tokens
    """Freed; 0 where the agent does not say."""


class RetryEvent(BaseEvent, frozen=True):
    """An attempt failed and will be repeated. Source: agent-events spec, section 19."""

    type: ClassVar[Literal["retry"]] = "retry"

    attempt: Annotated[int, Meta(ge=1)]
    """1-based."""
    max_attempts: Annotated[int, Meta(ge=0)]
    """0 where unknown."""
    reason: str
    """For example `rate_limited`."""
    delay_ms: Milliseconds
    """Wait before the attempt."""


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


class InputRequiredEvent(BaseEvent, frozen=True):
    """The agent asks a question and waits. Source: agent-events spec, section 18.1."""

    type: ClassVar[Literal["input_required"]] = "input_required"

    interaction_id: str
    """Answer with `run.interaction.respond(interaction_id, ...)`."""
    question: str
    """What it asks."""
    source: Literal["agent", "tool"]
    """Who asks."""
    context: str | None = None
    """What it is about."""


class ApprovalRequestEvent(BaseEvent, frozen=True):
    """The agent asks for permission and waits. Source: agent-events spec, section 18.1."""

    type: ClassVar[Literal["approval_request"]] = "approval_request"

    interaction_id: str
    """Shared by request and decision."""
    action: str
    """Short: what it wants to do."""
    detail: str
    """Exactly what: the whole command, path or input."""
    risk_level: Literal["low", "medium", "high"]
    """low: reads; medium: writes and ordinary commands; high: destructive, network, privileged."""
    tool_name: str | None = None
    """The tool."""


class ApprovalGrantedEvent(BaseEvent, frozen=True):
    """Permission was given. Source: agent-events spec, section 18.1."""

    type: ClassVar[Literal["approval_granted"]] = "approval_granted"

    interaction_id: str
    """The request."""


class ApprovalDeniedEvent(BaseEvent, frozen=True):
    """Permission was refused, or the request was dropped. Source: agent-events spec, section 18.1."""

    type: ClassVar[Literal["approval_denied"]] = "approval_denied"

    interaction_id: str
    """The request."""
    reason: str | None = None
    """Why."""


class DebugEvent(BaseEvent, frozen=True):
    """A note of the mux about its own work. Source: agent-events spec, section 22."""

    type: ClassVar[Literal["debug"]] = "debug"

    level: Literal["verbose", "info", "warn"]
    """Severity."""
    message: str
    """The note."""


class LogEvent(BaseEvent, frozen=True):
    """A line of the agent that belongs to no protocol. Source: agent-events spec, section 22."""

    type: ClassVar[Literal["log"]] = "log"

    source: Literal["stdout", "stderr"]
    """Which stream."""
    line: str
    """The line."""
