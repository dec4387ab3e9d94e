"""What comes of fitting a history into the window."""
# DOC: """What of a history is sent, so that it fits the window. Source: phi-core, "ContextManager", section 3.3; zidane.
#
#      Give `fit` the history as it is, and do what else changes messages (stale reads, images) to what it returns.
#      """

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agent_loop.behavior import ContextSettings
from agent_loop.context.compaction import CompactionStrategy, Summarize, TieredCompaction
from agent_loop.context.estimation import ContextTracker, Estimator
from agent_loop.context.overlay import Overlay, load_overlay, make_overlay, save_overlay
from agent_loop.context.splitting import find_pairing_problem
from agent_loop.context.tool_outputs import elide_old_outputs
from agent_loop.errors import MessageError
from agent_loop.messages import ExtensionMessage, Message
from agent_loop.usage import Usage

FILLING_SHARE = 0.85
"""Of the window: above this the context is nearly full. Source: hooks seed, section 6.4."""
CLEAR_REDUCTION = 0.9
"""Of what a provider refused: with more than that it makes no sense to ask again."""


class AppliedCompaction(msgspec.Struct, frozen=True):
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
        return self.tokens_after <= self.tokens_before * CLEAR_REDUCTION


class FittedContext(msgspec.Struct, frozen=True):
    """What to send."""

    messages: tuple[Message, ...]
    used_tokens: int
    """Of the whole request."""
    max_tokens: int
    """What the whole request may take."""
    compaction: AppliedCompaction | None = None
    """What was done this time; what was left out before and still is, is nothing new."""
    is_exhausted: bool = False
    """It was forced, and cannot be made clearly smaller: asking again is in vain."""

    @property
    def is_filling(self) -> bool:
        """The context is nearly full: `ContextFilling`."""
        return self.used_tokens >= self.max_tokens * FILLING_SHARE


FORCED_SHARE = 0.7
"""Of what a provider refused as too long: what the next attempt should have at most."""
LEARNED_SHARE = 0.95
"""Of what a provider refused as too long: what it may be given ever after."""

View = tuple[Message, ...]


class ContextManager:
    """Of one conversation. It keeps what it made of the history, and takes it as it is next time."""

    def __init__(
        self,
        settings: ContextSettings,
        *,
        strategy: CompactionStrategy | None = None,
        summarize: Summarize | None = None,
        window: int | None = None,
        estimator: Estimator | None = None,
    ) -> None:
        self._settings = settings
        self._estimator = estimator or Estimator()
        self._strategy = strategy or TieredCompaction(settings, summarize, self._estimator)
        self._tracker = ContextTracker(self._estimator)
        self._max_tokens = min(settings.max_context_tokens, window or settings.max_context_tokens)
        self._refused: int | None = None
        self._overlay: Overlay | None = None
        self._covered: View = ()
        self._sent: tuple[View, int, int] = ((), 0, 0)
        self._stubs = 0

    async def fit(self, messages: Sequence[Message], *, overhead_tokens: int = 0, force: bool = False) -> FittedContext:
        """What of the history to send, beside so many tokens of system prompt, tools, and what else must be reserved.

        `force`: the provider refused what was sent last as too long, so make it clearly smaller. Raises `MessageError`
        where a strategy of yours tears calls from their results.
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
        """The provider counted this for what `fit` returned last.

        `message_count`: of the history, or of what was sent of it; a count of anything else is not believed.
        """
        view, history_count, overhead = self._sent
        if message_count in {history_count, len(view), sum(not isinstance(each, ExtensionMessage) for each in view)}:
            self._tracker.record(usage.prompt_tokens, view, overhead)

    def reset(self) -> None:
        """Forget what was made of the history: the next one is another."""
        self._overlay, self._covered = None, ()
        self._tracker.reset()

    def save(self, messages: Sequence[Message]) -> dict[str, Any] | None:
        """What was made of this history, as plain data for `AgentState.extra["context"]`; None: nothing."""
        return save_overlay(self._overlay, messages) if self._overlay is not None and self._applies(messages) else None

    def load(self, data: Mapping[str, Any], messages: Sequence[Message]) -> bool:
        """Go on with what was saved. False: it is of another history, or no such data, and nothing is changed."""
        overlay = load_overlay(data, messages)
        if overlay is not None:
            self._set_overlay(overlay, messages)
        return overlay is not None

    def _view(self, messages: Sequence[Message]) -> View:
        if not self._applies(messages):
            self.reset()
        return tuple(messages) if self._overlay is None else self._overlay.apply(messages)

    def _applies(self, messages: Sequence[Message]) -> bool:
        # The messages are compared by identity first, so that this takes microseconds for thousands.
        return tuple(messages[: len(self._covered)]) == self._covered

    def _set_overlay(self, overlay: Overlay, messages: Sequence[Message]) -> None:
        self._overlay, self._covered = overlay, tuple(messages[: overlay.covered])
        self._tracker.reset()

    def _budget(self, overhead: int) -> int:
        """Tokens for the messages. The reserve for the system prompt is at most half of a small window."""
        reserve = max(overhead, min(self._settings.system_prompt_tokens, self._max_tokens // 2))
        budget = max(0, self._max_tokens - reserve)
        return budget if self._refused is None else min(budget, int(self._refused * LEARNED_SHARE))

    def _must_shrink(self, too_large: bool, *, force: bool) -> bool:
        strategy = self._settings.strategy
        return strategy != "off" and (force or (too_large and strategy == "tiered"))

    def _apply_tail(self, view: View) -> tuple[View, AppliedCompaction | None]:
        """Where that is the strategy: the view without old tool outputs, and what is new about it."""
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
        """The view in this share of its tokens, or as near as it goes; as it is where it cannot be smaller."""
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
