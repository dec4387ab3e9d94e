"""Selection of the messages to send so that a request fits the context window.

Pass the unmodified history to `fit`, and apply other changes (stale reads, images) to its result.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agent_loop.behavior import DEFAULT_CONTEXT_TOKENS, ContextSettings
from agent_loop.context.compaction import CompactionStrategy, Summarize, TieredCompaction
from agent_loop.context.estimation import ContextTracker, Estimator
from agent_loop.context.overlay import Overlay, load_overlay, make_overlay, save_overlay
from agent_loop.context.splitting import find_pairing_problem
from agent_loop.context.tool_outputs import elide_old_outputs
from agent_loop.errors import MessageError
from agent_loop.messages import ExtensionMessage, Message
from agent_loop.usage import Usage

FILLING_SHARE = 0.85
"""Share of the maximum above which the context counts as nearly full."""
CLEAR_REDUCTION = 0.9
"""Maximum share of the size before for a compaction to be worth a retry."""

FORCED_SHARE = 0.7
"""Maximum size of the next attempt, as a share of the request that the provider rejected as too long."""
LEARNED_SHARE = 0.95
"""Maximum size of all later requests, as a share of the request that the provider rejected as too long."""
View = tuple[Message, ...]


class AppliedCompaction(msgspec.Struct, frozen=True):
    """A compaction that was applied, for the `ContextCompacted` event."""

    tier: str
    tokens_before: int
    tokens_after: int
    summary: str = ""
    summary_failure: str = ""
    """Why a digest replaces the summary; empty otherwise."""

    @property
    def is_clear(self) -> bool:
        """Whether the reduction is large enough for the provider to accept the request."""
        return self.tokens_after <= self.tokens_before * CLEAR_REDUCTION


class FittedContext(msgspec.Struct, frozen=True):
    """The messages to send, and their size."""

    messages: tuple[Message, ...]
    used_tokens: int
    """Tokens of the whole request."""
    max_tokens: int
    """Maximum tokens of the whole request."""
    compaction: AppliedCompaction | None = None
    """Compaction applied by this call; None if only earlier compactions apply."""
    is_exhausted: bool = False
    """Whether a forced compaction was not effective: a retry cannot succeed."""

    @property
    def is_filling(self) -> bool:
        """Whether the context is nearly full."""
        return self.used_tokens >= self.max_tokens * FILLING_SHARE


class ContextManager:
    """The context of one conversation. It keeps a compaction and reuses it in later requests."""

    def __init__(
        self,
        settings: ContextSettings,
        *,
        strategy: CompactionStrategy | None = None,
        summarize: Summarize | None = None,
        window: int | None = None,
        estimator: Estimator | None = None,
    ) -> None:
        """`window`: tokens that the model accepts in a request; None if unknown."""
        self._settings = settings
        self._estimator = estimator or Estimator()
        self._strategy = strategy or TieredCompaction(settings, summarize, self._estimator)
        self._tracker = ContextTracker(self._estimator)
        self._max_tokens = _max_tokens(settings.max_context_tokens, window)
        self._refused: int | None = None
        self._overlay: Overlay | None = None
        self._covered: View = ()
        self._sent: tuple[View, int, int] = ((), 0, 0)
        self._stubs = 0

    async def fit(self, messages: Sequence[Message], *, overhead_tokens: int = 0, force: bool = False) -> FittedContext:
        """Return the messages to send, besides `overhead_tokens` for system prompt, tools and reserves.

        `force`: the provider rejected the last request as too long, so make it clearly smaller. Raises `MessageError`
        if a custom strategy separates tool calls from their results.
        """
        view, compaction = self._apply_tail(self._view(messages))
        used, budget = self._tracker.used(view), self._budget(overhead_tokens)
        if force:
            self._refused = min(used, used if self._refused is None else self._refused)
            budget = min(budget, int(used * FORCED_SHARE))
        if self._must_shrink(used > budget, force=force):
            view, smaller = await self._compact(messages, view, budget / max(1, used))
            used = self._tracker.used(view)
            compaction = smaller or compaction
            exhausted = force and not (smaller is not None and smaller.is_clear)
        else:
            exhausted = force
        self._sent = (view, len(messages), overhead_tokens)
        self._estimator.retain_only(view)
        return FittedContext(view, used + overhead_tokens, self._max_tokens, compaction, exhausted)

    def record(self, usage: Usage, message_count: int) -> None:
        """Record the provider's token count for the messages that `fit` returned last.

        `message_count`: length of the history or of the sent messages; a count for any other length is ignored.
        """
        view, history_count, overhead = self._sent
        if message_count in {history_count, len(view), sum(not isinstance(each, ExtensionMessage) for each in view)}:
            self._tracker.record(usage.prompt_tokens, view, overhead)

    def use_window(self, window: int | None) -> None:
        """Change the tokens that the model accepts in a request, because another model is used."""
        self._max_tokens, self._refused = _max_tokens(self._settings.max_context_tokens, window), None

    def reset(self) -> None:
        """Discard the compaction and the recorded counts."""
        self._overlay, self._covered = None, ()
        self._tracker.reset()

    def save(self, messages: Sequence[Message]) -> dict[str, Any] | None:
        """Return the compaction of this history as plain data for `AgentState.extra`, or None."""
        return save_overlay(self._overlay, messages) if self._overlay is not None and self._applies(messages) else None

    def load(self, data: Mapping[str, Any], messages: Sequence[Message]) -> bool:
        """Restore a saved compaction. Return False, without changes, if it belongs to another history or is invalid."""
        overlay = load_overlay(data, messages)
        if overlay is not None:
            self._set_overlay(overlay, messages)
        return overlay is not None

    def _view(self, messages: Sequence[Message]) -> View:
        if not self._applies(messages):
            self.reset()
        return tuple(messages) if self._overlay is None else self._overlay.apply(messages)

    def _applies(self, messages: Sequence[Message]) -> bool:
        # Tuples compare elements by identity first, so that this is fast for thousands of messages.
        return tuple(messages[: len(self._covered)]) == self._covered

    def _set_overlay(self, overlay: Overlay, messages: Sequence[Message]) -> None:
        self._overlay, self._covered = overlay, tuple(messages[: overlay.covered])
        self._tracker.reset()

    def _budget(self, overhead: int) -> int:
        """Return the tokens for messages. The system prompt's reserve is at most half of a small window."""
        reserve = max(overhead, min(self._settings.system_prompt_tokens, self._max_tokens // 2))
        budget = max(0, self._max_tokens - reserve)
        return budget if self._refused is None else min(budget, int(self._refused * LEARNED_SHARE))

    def _must_shrink(self, too_large: bool, *, force: bool) -> bool:
        strategy = self._settings.strategy
        return strategy != "off" and (force or (too_large and strategy == "tiered"))

    def _apply_tail(self, view: View) -> tuple[View, AppliedCompaction | None]:
        """Return the view without old tool outputs, if that is the strategy, and what was newly elided."""
        settings = self._settings
        if settings.strategy != "tail":
            return view, None
        smaller = tuple(elide_old_outputs(view, threshold=settings.tail_threshold, keep_turns=settings.tail_keep_turns))
        stubs = sum(one is not other for one, other in zip(view, smaller, strict=True))
        is_new, self._stubs = stubs > self._stubs, stubs
        if not is_new:
            return smaller, None
        self._tracker.reset()
        return smaller, AppliedCompaction("tail", self._tracker.estimate(view), self._tracker.estimate(smaller))

    async def _compact(
        self, messages: Sequence[Message], view: View, share: float
    ) -> tuple[View, AppliedCompaction | None]:
        """Return the view compacted to this share of its tokens, or unchanged if it cannot be smaller."""
        tokens = self._estimator.total(view)
        compacted = await self._strategy.compact(view, int(tokens * share))
        if compacted is None or self._estimator.total(compacted.messages) >= tokens:
            return view, None
        if find_pairing_problem(view) is None and (problem := find_pairing_problem(compacted.messages)) is not None:
            raise MessageError(
                f"the compaction strategy {compacted.tier!r} made a conversation that cannot be sent: {problem}"
            )
        fresh = len(messages) - (self._overlay.covered if self._overlay is not None else 0)
        self._set_overlay(make_overlay(view, compacted.messages, len(messages), fresh), messages)
        before, after = self._tracker.estimate(view), self._tracker.estimate(compacted.messages)
        return compacted.messages, AppliedCompaction(
            compacted.tier, before, after, compacted.summary, compacted.summary_failure
        )


def request_window(context_window: int | None, max_answer: int | None) -> int | None:
    """Return the part of a context window for the request, in tokens. The answer gets at most half of the window."""
    return None if context_window is None else context_window - min(max_answer or 0, context_window // 2)


def _max_tokens(wanted: int | None, window: int | None) -> int:
    if wanted is None:
        return DEFAULT_CONTEXT_TOKENS if window is None else window
    return wanted if window is None else min(wanted, window)
