"""The events of run control, limits, errors, interactions and diagnostics.

See docs/spec/events.md, sections 18 to 22.
"""

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, field

from agent_mux.errors import ErrorCode
from agent_mux.events.base import BaseEvent, Milliseconds, Tokens, TruncatedBytes


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

    kind: Annotated[Literal["run", "inactivity"], Meta(description="The limit that was reached.")]


class TurnLimitEvent(BaseEvent, frozen=True):
    """The agent reached its limit on model calls. Terminal. See docs/spec/events.md, section 20."""

    type: ClassVar[Literal["turn_limit"]] = "turn_limit"

    max_turns: Annotated[int, Meta(ge=0, description="The configured limit; 0 when unknown.")]


class StreamFallbackEvent(BaseEvent, frozen=True):
    """A kind of output arrives whole instead of in fragments; at most once per kind.

    See docs/spec/events.md, section 20.
    """

    type: ClassVar[Literal["stream_fallback"]] = "stream_fallback"

    capability: Annotated[
        Literal["text", "tool_calls", "thinking"], Meta(description="The kind of output that is not streamed.")
    ]
    reason: Annotated[str, Meta(description="Why the output is not streamed.")]


class RateLimitedEvent(BaseEvent, frozen=True):
    """The provider delays the agent because of a rate limit. See docs/spec/events.md, section 19."""

    type: ClassVar[Literal["rate_limited"]] = "rate_limited"

    retry_after_ms: Annotated[Milliseconds | None, Meta(description="Suggested delay, where given.")] = None


class ContextLimitWarningEvent(BaseEvent, frozen=True):
    """The context window is filling up. See docs/spec/events.md, section 19."""

    type: ClassVar[Literal["context_limit_warning"]] = "context_limit_warning"

    used_tokens: Annotated[Tokens, Meta(description="Number of tokens in use.")]
    max_tokens: Annotated[Tokens, Meta(description="Size of the context window.")]
    pct_used: Annotated[float, Meta(ge=0, description="Share of the window in use, 0 to 100.")]


class ContextCompactedEvent(BaseEvent, frozen=True):
    """The agent compressed its context. See docs/spec/events.md, section 19."""

    type: ClassVar[Literal["context_compacted"]] = "context_compacted"

    summary: Annotated[str, Meta(description="Description of what was removed or compressed.")]
    tokens_saved: Annotated[Tokens, Meta(description="Number of tokens freed; 0 when unknown.")]


class RetryEvent(BaseEvent, frozen=True):
    """An attempt failed and will be repeated. See docs/spec/events.md, section 19."""

    type: ClassVar[Literal["retry"]] = "retry"

    attempt: Annotated[int, Meta(ge=1, description="Number of the attempt that failed, from 1.")]
    max_attempts: Annotated[int, Meta(ge=0, description="Maximum number of attempts; 0 when unknown.")]
    reason: Annotated[str, Meta(description="Why the attempt failed, for example `rate_limited`.")]
    delay_ms: Annotated[Milliseconds, Meta(description="Time until the next attempt; 0 when unknown.")]
    next_agent: Annotated[
        str | None, Meta(description="Agent of the next attempt, if the run falls back to another agent or model.")
    ] = None
    next_model: Annotated[str | None, Meta(description="Model of the next attempt, if the run falls back to it.")] = (
        None
    )


class AuthErrorEvent(BaseEvent, frozen=True):
    """The agent could not authenticate. Terminal. See docs/spec/events.md, section 21."""

    type: ClassVar[Literal["auth_error"]] = "auth_error"

    message: Annotated[str, Meta(description="Error message of the agent.")]
    guidance: Annotated[str, Meta(description="What a person can do about it.")]


class RateLimitErrorEvent(BaseEvent, frozen=True):
    """A rate limit ended the attempt; followed by `retry` or `session_end`. See docs/spec/events.md, section 21."""

    type: ClassVar[Literal["rate_limit_error"]] = "rate_limit_error"

    message: Annotated[str, Meta(description="Error message of the agent.")]
    retry_after_ms: Annotated[Milliseconds | None, Meta(description="Suggested delay, where given.")] = None


class ContextExceededEvent(BaseEvent, frozen=True):
    """The context window is full. Terminal. See docs/spec/events.md, section 21."""

    type: ClassVar[Literal["context_exceeded"]] = "context_exceeded"

    used_tokens: Annotated[Tokens, Meta(description="Number of tokens in use; 0 when unknown.")]
    max_tokens: Annotated[Tokens, Meta(description="Size of the context window; 0 when unknown.")]


class CrashEvent(BaseEvent, frozen=True):
    """The agent's process ended without its closing message, or never started. Terminal.

    See docs/spec/events.md, section 21.
    """

    type: ClassVar[Literal["crash"]] = "crash"

    exit_code: Annotated[
        int,
        Meta(
            description=("Exit code; the negated signal number if a signal ended the process; -1 if it never started.")
        ),
    ]
    stderr: Annotated[
        str, Meta(description="End of the process's standard error, or the reason why it could not start.")
    ]


class ErrorEvent(BaseEvent, frozen=True):
    """Any other failure. Terminal unless recoverable. See docs/spec/events.md, section 21."""

    type: ClassVar[Literal["error"]] = "error"

    code: Annotated[ErrorCode, Meta(description="Machine-readable error code.")]
    message: Annotated[str, Meta(description="Error message for people.")]
    recoverable: Annotated[bool, Meta(description="Whether the run continues.")]


class InputRequiredEvent(BaseEvent, frozen=True):
    """The agent asks a question and waits for the answer. See docs/spec/events.md, section 18.1."""

    type: ClassVar[Literal["input_required"]] = "input_required"

    interaction_id: Annotated[str, Meta(description="Id to pass to `run.interaction.respond`.")]
    question: Annotated[str, Meta(description="The question.")]
    source: Annotated[Literal["agent", "tool"], Meta(description="Who asks: the agent itself or one of its tools.")]
    context: Annotated[str | None, Meta(description="Context of the question, where known.")] = None


class ApprovalRequestEvent(BaseEvent, frozen=True):
    """The agent asks for permission and waits for the decision. See docs/spec/events.md, section 18.1."""

    type: ClassVar[Literal["approval_request"]] = "approval_request"

    interaction_id: Annotated[str, Meta(description="Id that the request and its decision share.")]
    action: Annotated[str, Meta(description="Short description of the action.")]
    detail: Annotated[str, Meta(description="The whole command, path or input.")]
    risk_level: Annotated[
        Literal["low", "medium", "high"],
        Meta(
            description=(
                "low: reads; medium: writes and ordinary commands; high: destructive, network or privileged actions."
            )
        ),
    ]
    tool_name: Annotated[str | None, Meta(description="Name of the tool, where known.")] = None
    tool_call_id: Annotated[str | None, Meta(description="Id of the tool call that waits, where known.")] = None
    command: Annotated[str | None, Meta(description="The command line that would run.")] = None
    paths: Annotated[list[str], Meta(description="The files concerned, where known.")] = field(default_factory=list)
    tool_input: Annotated[Any, Meta(description="The input of the tool, where known; long texts in it are cut.")] = None
    diff: Annotated[
        str | None, Meta(description="The unified diff of the files that would change; a long one is cut.")
    ] = None


class ApprovalGrantedEvent(BaseEvent, frozen=True):
    """Permission was granted. See docs/spec/events.md, section 18.1."""

    type: ClassVar[Literal["approval_granted"]] = "approval_granted"

    interaction_id: Annotated[str, Meta(description="Id of the request.")]


class ApprovalDeniedEvent(BaseEvent, frozen=True):
    """Permission was denied, or the request ended without an answer. See docs/spec/events.md, section 18.1."""

    type: ClassVar[Literal["approval_denied"]] = "approval_denied"

    interaction_id: Annotated[str, Meta(description="Id of the request.")]
    reason: Annotated[str | None, Meta(description="Why permission was denied.")] = None


class DebugEvent(BaseEvent, frozen=True):
    """A note of agent-mux about its own work. See docs/spec/events.md, section 22."""

    type: ClassVar[Literal["debug"]] = "debug"

    level: Annotated[Literal["verbose", "info", "warn"], Meta(description="Severity of the note.")]
    message: Annotated[str, Meta(description="Text of the note.")]


class LogEvent(BaseEvent, frozen=True):
    """A line of the agent's output that is not part of its protocol. See docs/spec/events.md, section 22."""

    type: ClassVar[Literal["log"]] = "log"

    source: Annotated[Literal["stdout", "stderr"], Meta(description="The stream that contained the line.")]
    line: Annotated[str, Meta(description="The line without its line break.")]
    truncated_bytes: TruncatedBytes = None
