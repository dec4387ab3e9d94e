"""How full the context is: what the provider counted, and estimates for what came since.

Source: phi-core, `ContextTracker`.
"""

from collections.abc import Sequence

from agent_loop.context.estimation import Estimator
from agent_loop.messages import Message

MAX_SCALE = 4.0
"""A provider that counts more than this times our estimate is counting something else."""
MIN_TO_SCALE = 2_000
"""Tokens: of less than this, what we do not see of a request is too large a part for the two counts to be compared."""


class ContextTracker:
    """Of one conversation, in the form in which it is sent."""

    def __init__(self, estimator: Estimator | None = None) -> None:
        self._estimator = estimator or Estimator()
        self._reported: tuple[int, int] | None = None
        self.scale = 1.0
        """How many tokens the provider counts where we estimate one; at least 1."""

    def record(self, prompt_tokens: int, messages: Sequence[Message], overhead_tokens: int = 0) -> None:
        """The provider counted this for a request of these messages, besides the overhead. 0 is no count."""
        if prompt_tokens <= 0:
            return
        self._reported = (max(0, prompt_tokens - overhead_tokens), len(messages))
        estimated = self._estimator.total(messages) + overhead_tokens
        if estimated >= MIN_TO_SCALE:
            self.scale = min(MAX_SCALE, max(1.0, prompt_tokens / estimated))

    def reset(self) -> None:
        """What was sent last is not what will be sent: the provider's count no longer counts; its scale does."""
        self._reported = None

    def used(self, messages: Sequence[Message]) -> int:
        """Tokens of these messages, which begin with those that were recorded."""
        if self._reported is None or self._reported[1] > len(messages):
            return self.local(messages)
        tokens, count = self._reported
        return tokens + self.local(messages[count:])

    def local(self, messages: Sequence[Message]) -> int:
        """Our estimate alone, at the provider's scale."""
        return int(self._estimator.total(messages) * self.scale)
