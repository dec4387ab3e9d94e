"""Making a history fit, in tiers: each leaves out more than the one before. Source: phi-core, `compact_messages`.

1. "tool_outputs": outputs in the middle are cut to some lines.
2. "summary": the middle becomes a summary.
3. "middle": the middle is dropped, with a marker in its place; where even that is too much, outputs in the parts that
   are kept are cut as well, and then fewer messages are kept.

A tier is enough when it leaves some room: a history that just fits would have to be compacted again next turn.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Protocol

import msgspec

from agent_loop.behavior import ContextSettings
from agent_loop.context.estimation import MESSAGE_TOKENS, Estimator
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
"""Says what matters of these messages (a part of a history: it may begin with an answer). May raise: a digest does."""

TARGET_SHARE = 0.8
"""Of the budget: what a tier should leave at most."""
SUMMARY_TOKENS = 3_000
"""The most that a summary may take: about 2,000 words. Source: hooks seed, section 6.4."""
MIN_SUMMARY_TOKENS = 60
"""Tokens; where there is no room for more, the marker says as much. The frame of a summary takes most of it."""
MIN_TOKENS_TO_SUMMARIZE = 200
"""Tokens; less is left to the digest, which costs nothing."""
LAST_RESORT_LIMITS = ((10_000, False), (2_000, True), (400, True))
"""Characters of each output, and whether pictures go, when nothing else helps."""


class Compaction(msgspec.Struct, frozen=True):
    """A history made smaller."""

    messages: tuple[Message, ...]
    tier: str
    summary: str = ""
    summary_failure: str = ""
    """Why there is a digest where a summary was wanted."""


class CompactionStrategy(Protocol):
    """Another way to make a history smaller. Source: phi-core, `CompactionStrategy`."""

    async def compact(self, messages: Sequence[Message], budget: int) -> Compaction | None:
        """The messages in at most so many tokens by `estimate_message`, or as near as it goes; None: it cannot be done.

        Messages that stay must be the same objects. The result begins with a user message, apart from system messages,
        and each tool call in it has its result.
        """
        ...


class TieredCompaction:
    """The strategy that comes with this package."""

    def __init__(
        self, settings: ContextSettings, summarize: Summarize | None = None, estimator: Estimator | None = None
    ) -> None:
        self._settings = settings
        self._summarize = summarize
        self._estimator = estimator or Estimator()

    async def compact(self, messages: Sequence[Message], budget: int) -> Compaction | None:
        """The first tier that leaves room; else the first that fits; else the smallest."""
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
        marker = stand_in_message("", latest_request(parts.middle, parts.recent), self._free_tokens(parts, budget))
        return Compaction((*parts.first, *parts.pinned, marker, *parts.recent), "middle")

    async def _summarize_middle(self, parts: Split, free_tokens: int, budget: int) -> Compaction:
        text, failure = await self._request_summary(parts.middle, budget)
        request = latest_request(parts.middle, parts.recent)
        message = stand_in_message(text or digest(parts.middle, free_tokens - MIN_SUMMARY_TOKENS), request, free_tokens)
        together = (*parts.first, *parts.pinned, message, *parts.recent)
        return Compaction(together, "summary", parse_stand_in(message)[0], failure)

    async def _request_summary(self, middle: Sequence[Message], budget: int) -> tuple[str, str]:
        """The summary, or nothing and why not."""
        old_messages = self._summarizable(
            [shorten(each, self._settings.tool_output_max_lines) for each in middle], budget
        )
        if self._summarize is None or self._estimator.total(old_messages) < MIN_TOKENS_TO_SUMMARIZE:
            return "", ""
        try:
            return (await self._summarize(old_messages)).strip(), ""
        except Exception as error:  # noqa: BLE001  # told along; a digest takes its place. Source: hooks seed, 6.4
            return "", f"{type(error).__name__}: {error}"

    def _summarizable(self, middle: Sequence[Message], budget: int) -> Sequence[Message]:
        """What of the middle a model can be asked to summarize: earlier summaries, and the newest that still fit."""
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
        """Ever less: outputs cut everywhere, then fewer messages, then outputs cut to almost nothing."""
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
