"""What comes of fitting a history into the window."""

import msgspec

from agent_loop.messages import Message

FILLING_SHARE = 0.85
"""Of the window: above this the context is nearly full. Source: hooks seed, section 6.4."""
CLEARLY_SMALLER = 0.9
"""Of what a provider refused: with more than that it makes no sense to ask again."""


class Compacted(msgspec.Struct, frozen=True):
    """What was done to the context, for `ContextCompacted`."""

    tier: str
    tokens_before: int
    tokens_after: int
    summary: str = ""
    summary_failure: str = ""
    """Why there is a digest where a summary was wanted."""

    @property
    def is_clear(self) -> bool:
        """It made a difference that a provider would notice."""
        return self.tokens_after <= self.tokens_before * CLEARLY_SMALLER


class Fitted(msgspec.Struct, frozen=True):
    """What to send."""

    messages: tuple[Message, ...]
    used_tokens: int
    """Of the whole request."""
    max_tokens: int
    """What the whole request may take."""
    compaction: Compacted | None = None
    """What was done this time; what was left out before and still is, is nothing new."""
    is_exhausted: bool = False
    """It was forced, and cannot be made clearly smaller: asking again is in vain."""

    @property
    def is_filling(self) -> bool:
        """The context is nearly full: `ContextFilling`."""
        return self.used_tokens >= self.max_tokens * FILLING_SHARE
