"""Token counts. Codex counts over the whole thread, earlier runs included; facts carry the increments of this run."""

from collections.abc import Iterable
from typing import Any

import msgspec

from agent_mux.events.base import CostRecord
from agent_mux.sdk.facts import RunCost, Usage
from agent_mux_adapters.codex.wire import CodexTokens

NO_TOKENS = CodexTokens()


class TokenCounter:
    """A cumulative counter and its increments. Its value before the run may be unknown."""

    def __init__(self, before: CodexTokens | None) -> None:
        """`before`: what the thread had used before this run; None when unknown."""
        self._total = before

    @property
    def is_known(self) -> bool:
        """Whether the counter has a value."""
        return self._total is not None

    def set(self, total: CodexTokens) -> None:
        """Set the counter without an increment: the tokens were not used by this run."""
        self._total = total

    def advance(self, total: CodexTokens, last: CodexTokens | None) -> CodexTokens | None:
        """Set the counter and return the increment; None when it cannot be known.

        The increment is `last` (the last model call) only when the previous value is unknown or the counter was
        reset: Codex repeats `last` for the same call.
        """
        before, self._total = self._total, total
        if before is None:
            return last
        added = _difference(total, before)
        return last if added is None else added


def usage_of(tokens: CodexTokens, *, of_one_call: bool = True) -> Usage | None:
    """Return a usage fact; None when no token was used. OpenAI's input count includes cached tokens, ours does not."""
    if not (tokens.input_tokens or tokens.output_tokens):
        return None
    return Usage(
        _uncached(tokens),
        tokens.output_tokens,
        thinking_tokens=tokens.reasoning_output_tokens,
        cached_tokens=tokens.cached_input_tokens,
        cache_creation_tokens=tokens.cache_write_input_tokens,
        of_one_call=of_one_call,
    )


def cost_of(tokens: CodexTokens) -> CostRecord:
    """Return a cost record without a price: Codex reports tokens only."""
    return CostRecord(
        total_usd=0.0,
        input_tokens=_uncached(tokens),
        output_tokens=tokens.output_tokens,
        thinking_tokens=tokens.reasoning_output_tokens,
        cached_tokens=tokens.cached_input_tokens,
        cache_creation_tokens=tokens.cache_write_input_tokens,
        source="unknown",
    )


def cost_of_run(spent: Iterable[CodexTokens]) -> tuple[RunCost, ...]:
    """Return the cost of a run from the tokens of its threads; empty when they used none."""
    total = NO_TOKENS
    for tokens in spent:
        total = sum_of(total, tokens)
    return (RunCost(cost_of(total)),) if total != NO_TOKENS else ()


def sum_of(left: CodexTokens, right: CodexTokens) -> CodexTokens:
    """Add two sets of counts."""
    return CodexTokens(*(a + b for a, b in zip(_counts(left), _counts(right), strict=True)))


def _difference(total: CodexTokens, before: CodexTokens) -> CodexTokens | None:
    counts = [a - b for a, b in zip(_counts(total), _counts(before), strict=True)]
    # When a call fails on a full context, the first count is the size of the context. Only the others show a reset.
    return None if any(count < 0 for count in counts[1:]) else CodexTokens(*counts)


def _counts(tokens: CodexTokens) -> tuple[Any, ...]:
    return msgspec.structs.astuple(tokens)


def _uncached(tokens: CodexTokens) -> int:
    return max(tokens.input_tokens - tokens.cached_input_tokens - tokens.cache_write_input_tokens, 0)
