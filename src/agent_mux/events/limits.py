"""Rate and context limits events. Source: agent-events spec, section 19."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from agent_mux.events.base import BaseEvent, Milliseconds, Tokens


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
