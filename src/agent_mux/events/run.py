"""The events of run control, limits, errors, interactions and diagnostics.

See docs/spec/events.md, sections 18 to 22.
"""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from agent_mux.errors import ErrorCode
from agent_mux.events.base import BaseEvent, Milliseconds, Tokens


class InterruptedEvent(BaseEvent, frozen=True):
    """The run ended by an interruption. Terminal. See docs/spec/events.md, section 20."""

    type: ClassVar[Literal["interrupted"]] = "interrupted"


class AbortedEvent(BaseEvent, frozen=True):
    """The run was aborted. Terminal. See docs/spec/events.md, section 20."""

    type: ClassVar[Literal["aborted"]] = "aborted"


class PausedEvent(BaseEvent, frozen=True):
    """All processes of the run were stopped; they can be continued. See docs/spec/events.md, section 20."""

    type: ClassVar[Literal["paused"]] = "paused"


class ResumedEvent(BaseEvent, frozen=True):
    """All processes of the run were continued. See docs/spec/events.md, section 20."""

    type: ClassVar[Literal["resumed"]] = "resumed"


class TimeoutEvent(BaseEvent, frozen=True):
    """The run reached a time limit. Terminal. See docs/spec/events.md, section 20."""

    type: ClassVar[Literal["timeout"]] = "timeout"

    kind: Literal["run", "inactivity"]
    """The limit that was reached."""


class TurnLimitEvent(BaseEvent, frozen=True):
    """The agent reached its limit on model calls. Terminal. See docs/spec/events.md, section 20."""

    type: ClassVar[Literal["turn_limit"]] = "turn_limit"

    max_turns: Annotated[int, Meta(ge=0)]
    """The configured limit; 0 when unknown."""


class StreamFallbackEvent(BaseEvent, frozen=True):
    """A kind of output arrives whole instead of in fragments; at most once per kind.

    See docs/spec/events.md, section 20.
    """

    type: ClassVar[Literal["stream_fallback"]] = "stream_fallback"

    capability: Literal["text", "tool_calls", "thinking"]
    """The kind of output that is not streamed."""
    reason: str
    """Why the output is not streamed."""


class RateLimitedEvent(BaseEvent, frozen=True):
    """The provider delays the agent because of a rate limit. See docs/spec/events.md, section 19."""

    type: ClassVar[Literal["rate_limited"]] = "rate_limited"

    retry_after_ms: Milliseconds | None = None
    """Suggested delay, where given."""


class ContextLimitWarningEvent(BaseEvent, frozen=True):
    """The context window is filling up. See docs/spec/events.md, section 19."""

    type: ClassVar[Literal["context_limit_warning"]] = "context_limit_warning"

    used_tokens: Tokens
    """Number of tokens in use."""
    max_tokens: Tokens
    """Size of the context window."""
    pct_used: Annotated[float, Meta(ge=0)]
    """Share of the window in use, 0 to 100."""


class ContextCompactedEvent(BaseEvent, frozen=True):
    """The agent compressed its context. See docs/spec/events.md, section 19."""

    type: ClassVar[Literal["context_compacted"]] = "context_compacted"

    summary: str
    """Description of what was removed or compressed."""
    tokens_saved: Tokens
    """Number of tokens freed; 0 when unknown."""


class RetryEvent(BaseEvent, frozen=True):
    """An attempt failed and will be repeated. See docs/spec/events.md, section 19."""

    type: ClassVar[Literal["retry"]] = "retry"

    attempt: Annotated[int, Meta(ge=1)]
    """Number of the attempt that failed, from 1."""
    max_attempts: Annotated[int, Meta(ge=0)]
    """Maximum number of attempts; 0 when unknown."""
    reason: str
    """Why the attempt failed, for example `rate_limited`."""
    delay_ms: Milliseconds
    """Time until the next attempt."""


class AuthErrorEvent(BaseEvent, frozen=True):
    """The agent could not authenticate. Terminal. See docs/spec/events.md, section 21."""

    type: ClassVar[Literal["auth_error"]] = "auth_error"

    message: str
    """Error message of the agent."""
    guidance: str
    """What a person can do about it."""


class RateLimitErrorEvent(BaseEvent, frozen=True):
    """A rate limit ended the attempt; followed by `retry` or `session_end`. See docs/spec/events.md, section 21."""

    type: ClassVar[Literal["rate_limit_error"]] = "rate_limit_error"

    message: str
    """Error message of the agent."""
    retry_after_ms: Milliseconds | None = None
    """Suggested delay, where given."""


class ContextExceededEvent(BaseEvent, frozen=True):
    """The context window is full. Terminal. See docs/spec/events.md, section 21."""

    type: ClassVar[Literal["context_exceeded"]] = "context_exceeded"

    used_tokens: Tokens
    """Number of tokens in use; 0 when unknown."""
    max_tokens: Tokens
    """Size of the context window; 0 when unknown."""


class CrashEvent(BaseEvent, frozen=True):
    """The agent's process ended without its closing message, or never started. Terminal.

    See docs/spec/events.md, section 21.
    """

    type: ClassVar[Literal["crash"]] = "crash"

    exit_code: int
    """Exit code; the negated signal number if a signal ended the process; -1 if it never started."""
    stderr: str
    """End of the process's standard error, or the reason why it could not start."""


class ErrorEvent(BaseEvent, frozen=True):
    """Any other failure. Terminal unless recoverable. See docs/spec/events.md, section 21."""

    type: ClassVar[Literal["error"]] = "error"

    code: ErrorCode
    """Machine-readable error code."""
    message: str
    """Error message for people."""
    recoverable: bool
    """Whether the run continues."""


class InputRequiredEvent(BaseEvent, frozen=True):
    """The agent asks a question and waits for the answer. See docs/spec/events.md, section 18.1."""

    type: ClassVar[Literal["input_required"]] = "input_required"

    interaction_id: str
    """Id to pass to `run.interaction.respond`."""
    question: str
    """The question."""
    source: Literal["agent", "tool"]
    """Who asks: the agent itself or one of its tools."""
    context: str | None = None
    """Context of the question, where known."""


class ApprovalRequestEvent(BaseEvent, frozen=True):
    """The agent asks for permission and waits for the decision. See docs/spec/events.md, section 18.1."""

    type: ClassVar[Literal["approval_request"]] = "approval_request"

    interaction_id: str
    """Id that the request and its decision share."""
    action: str
    """Short description of the action."""
    detail: str
    """The whole command, path or input."""
    risk_level: Literal["low", "medium", "high"]
    """low: reads; medium: writes and ordinary commands; high: destructive, network or privileged actions."""
    tool_name: str | None = None
    """Name of the tool, where known."""


class ApprovalGrantedEvent(BaseEvent, frozen=True):
    """Permission was granted. See docs/spec/events.md, section 18.1."""

    type: ClassVar[Literal["approval_granted"]] = "approval_granted"

    interaction_id: str
    """Id of the request."""


class ApprovalDeniedEvent(BaseEvent, frozen=True):
    """Permission was denied, or the request ended without an answer. See docs/spec/events.md, section 18.1."""

    type: ClassVar[Literal["approval_denied"]] = "approval_denied"

    interaction_id: str
    """Id of the request."""
    reason: str | None = None
    """Why permission was denied."""


class DebugEvent(BaseEvent, frozen=True):
    """A note of agent-mux about its own work. See docs/spec/events.md, section 22."""

    type: ClassVar[Literal["debug"]] = "debug"

    level: Literal["verbose", "info", "warn"]
    """Severity of the note."""
    message: str
    """Text of the note."""


class LogEvent(BaseEvent, frozen=True):
    """A line of the agent's output that is not part of its protocol. See docs/spec/events.md, section 22."""

    type: ClassVar[Literal["log"]] = "log"

    source: Literal["stdout", "stderr"]
    """The stream that contained the line."""
    line: str
    """The line without its line break."""
