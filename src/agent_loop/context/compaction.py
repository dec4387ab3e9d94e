"""Compaction of a history in tiers, each of which omits more than the one before.

1. "tool_outputs": outputs in the middle are shortened to a number of lines.

2. "summary": the middle is replaced by a summary.

3. "middle": the middle is replaced by a marker. If that is still too large, outputs in the kept parts are shortened as
well, and then fewer messages are kept.

A tier suffices if it leaves spare tokens: a history that barely fits would be compacted again in the next turn.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Protocol

import msgspec

from agent_loop.behavior import ContextSettings
from agent_loop.context.estimation import MESSAGE_TOKENS, Estimator
from agent_loop.context.notes import notes_in
from agent_loop.context.splitting import Split, safe_cuts, split
from agent_loop.context.summaries import (
    digest,
    latest_request,
    parse_stand_in,
    shorten,
    stand_in_message,
    without_images,
)
from agent_loop.messages import Message, UserMessage

Summarize = Callable[[Sequence[Message]], Awaitable[str]]
"""Return a summary of a part of a history, which may begin with an answer. May raise; a digest replaces it then."""

TARGET_SHARE = 0.8
"""Maximum share of the budget that a tier should use."""
SUMMARY_TOKENS = 3_000
"""Maximum tokens of a summary, about 2,000 words."""
MIN_SUMMARY_TOKENS = 60
"""With fewer tokens available a marker replaces the summary, whose frame would use most of them."""
MIN_TOKENS_TO_SUMMARIZE = 200
"""A smaller part is digested locally instead of summarized by the model."""
LAST_RESORT_LIMITS = ((10_000, False), (2_000, True), (400, True))
"""(Characters of each output, whether images are removed) for the last attempts."""


class Compaction(msgspec.Struct, frozen=True):
    """The result of a compaction."""

    messages: tuple[Message, ...]
    tier: str
    summary: str = ""
    summary_failure: str = ""
    """Why a digest replaces the summary; empty otherwise."""


class CompactionStrategy(Protocol):
    """Interface of custom compaction strategies."""

    async def compact(self, messages: Sequence[Message], budget: int) -> Compaction | None:
        """Return the messages in at most `budget` tokens by `estimate_message`, or as close as possible.

        None means that compaction is impossible. Kept messages must be the same objects. Apart from system messages,
        the result begins with a user message, and each tool call in it has its result.
        """
        ...


class TieredCompaction:
    """The built-in strategy, with the tiers that this module's docstring lists."""

    def __init__(
        self, settings: ContextSettings, summarize: Summarize | None = None, estimator: Estimator | None = None
    ) -> None:
        self._settings = settings
        self._summarize = summarize
        self._estimator = estimator or Estimator()

    async def compact(self, messages: Sequence[Message], budget: int) -> Compaction | None:
        """Return the first tier that leaves spare tokens, else the first that fits, else the smallest."""
        parts = split(messages, self._settings.keep_first, self._settings.keep_recent)
        candidates: list[Compaction] = []
        if parts.middle:
            candidates.append(self._cut_outputs(parts))
            free_tokens = min(SUMMARY_TOKENS, self._free_tokens(parts, int(budget * TARGET_SHARE)))
            if self._tokens(candidates[-1]) > budget * TARGET_SHARE and free_tokens >= MIN_SUMMARY_TOKENS:
                candidates.append(await self._summarize_middle(parts, free_tokens, budget))
            if self._tokens(candidates[-1]) > budget * TARGET_SHARE:
                candidates.append(self._drop_middle(parts, budget))
        return self._first_fitting(candidates, budget) or self._last_resort(messages, candidates, budget)

    def _first_fitting(self, candidates: Sequence[Compaction], budget: int) -> Compaction | None:
        by_limit = ((each, limit) for limit in (budget * TARGET_SHARE, budget) for each in candidates)
        return next((each for each, limit in by_limit if self._tokens(each) <= limit), None)

    def _last_resort(self, messages: Sequence[Message], candidates: list[Compaction], budget: int) -> Compaction | None:
        for candidate in self._last_resort_candidates(messages, budget):
            if self._tokens(candidate) <= budget:
                return candidate
            candidates.append(candidate)
        return min(candidates, key=self._tokens, default=None)

    def _tokens(self, compaction: Compaction) -> int:
        return self._estimator.total(compaction.messages)

    def _free_tokens(self, parts: Split, budget: int) -> int:
        return budget - self._estimator.total((*parts.first, *parts.pinned, *parts.recent)) - MESSAGE_TOKENS

    def _cut_outputs(self, parts: Split) -> Compaction:
        middle = (shorten(each, self._settings.tool_output_max_lines) for each in parts.middle)
        return Compaction((*parts.first, *middle, *parts.recent), "tool_outputs")

    def _drop_middle(self, parts: Split, budget: int) -> Compaction:
        request, notes = latest_request(parts.middle, parts.recent), notes_in(parts.middle, parts.recent)
        marker = stand_in_message("", request, self._free_tokens(parts, budget), notes)
        return Compaction((*parts.first, *parts.pinned, marker, *parts.recent), "middle")

    async def _summarize_middle(self, parts: Split, free_tokens: int, budget: int) -> Compaction:
        text, failure = await self._request_summary(parts.middle, budget)
        request = latest_request(parts.middle, parts.recent)
        body = text or digest(parts.middle, free_tokens - MIN_SUMMARY_TOKENS)
        message = stand_in_message(body, request, free_tokens, notes_in(parts.middle, parts.recent))
        together = (*parts.first, *parts.pinned, message, *parts.recent)
        return Compaction(together, "summary", parse_stand_in(message)[0], failure)

    async def _request_summary(self, middle: Sequence[Message], budget: int) -> tuple[str, str]:
        """Return the summary and an empty string, or an empty string and the reason of a failure."""
        old_messages = self._summarizable(
            [shorten(each, self._settings.tool_output_max_lines) for each in middle], budget
        )
        if self._summarize is None or self._estimator.total(old_messages) < MIN_TOKENS_TO_SUMMARIZE:
            return "", ""
        try:
            return (await self._summarize(old_messages)).strip(), ""
        except Exception as error:  # noqa: BLE001  # reported with the result; a digest replaces the summary
            return "", f"{type(error).__name__}: {error}"

    def _summarizable(self, middle: Sequence[Message], budget: int) -> Sequence[Message]:
        """Return earlier summaries and the newest messages that fit into one request."""
        earlier = [each for each in middle if isinstance(each, UserMessage) and each.origin == "compaction"]
        rest = [each for each in middle if not any(each is one for one in earlier)]
        free_tokens = budget - self._estimator.total(earlier)
        left = self._estimator.total(rest)
        begin = 0
        for cut in safe_cuts(rest):
            left -= self._estimator.total(rest[begin:cut])
            begin = cut
            if left <= free_tokens:
                break
        return [*earlier, *rest[begin:]]

    def _last_resort_candidates(self, messages: Sequence[Message], budget: int) -> Iterator[Compaction]:
        """Yield ever smaller candidates: shorter outputs, fewer messages, minimal outputs."""
        settings = self._settings
        lines, kept = settings.tool_output_max_lines, settings.keep_recent
        yield self._keep_ends(messages, settings.keep_first, kept, budget, lambda each: shorten(each, lines))
        while kept > 1:
            kept //= 2
            yield self._keep_ends(messages, 0, kept, budget, lambda each: shorten(each, lines))
        for characters, no_images in LAST_RESORT_LIMITS:
            yield self._keep_ends(messages, 0, 1, budget, _output_shortener(lines, characters, no_images=no_images))

    def _keep_ends(
        self, messages: Sequence[Message], first: int, recent: int, budget: int, cut: Callable[[Message], Message]
    ) -> Compaction:
        whole = split(messages, first, recent)
        parts = Split(tuple(map(cut, whole.first)), whole.middle, tuple(map(cut, whole.recent)))
        if not parts.middle:
            return Compaction((*parts.first, *parts.recent), "middle")
        return self._drop_middle(parts, budget)


def _output_shortener(lines: int, characters: int, *, no_images: bool) -> Callable[[Message], Message]:
    def cut(message: Message) -> Message:
        smaller = shorten(message, lines, characters)
        return without_images(smaller) if no_images else smaller

    return cut
