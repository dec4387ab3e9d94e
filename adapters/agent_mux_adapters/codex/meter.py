"""Token counts. Codex counts over the whole thread, earlier runs included; we report what each step of it added."""

from typing import Any

import msgspec

from agent_mux.events.cost import CostRecord
from agent_mux.facts import Usage
from agent_mux_adapters.codex.wire import Tokens


class Meter:
    """Increments of a cumulative counter whose value before the run may be unknown."""

    def __init__(self, before: Tokens | None) -> None:
        """`before`: what the thread had used before this run; None when nobody said."""
        self._total = before

    def set(self, total: Tokens) -> None:
        """The counter stands here, for reasons that are not this run's."""
        self._total = total

    def advance(self, total: Tokens, last: Tokens | None) -> Tokens | None:
        """The counter stands here now. Returns the increment; None when it cannot be known.

        `last`, the last model call, is the increment only where the counter is new to us or was set back: it is told
        again and again for the same call.
        """
        before, self._total = self._total, total
        if before is None:
            return last
        added = _difference(total, before)
        return last if added is None else added


def usage_of(tokens: Tokens, *, of_one_call: bool = True) -> Usage | None:
    """The fact; None when no token was used. OpenAI's input count includes the cached tokens, ours does not."""
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


def cost_of(tokens: Tokens) -> CostRecord:
    """The tokens as a cost: Codex never says what they cost."""
    return CostRecord(
        total_usd=0.0,
        input_tokens=_uncached(tokens),
        output_tokens=tokens.output_tokens,
        thinking_tokens=tokens.reasoning_output_tokens,
        cached_tokens=tokens.cached_input_tokens,
        cache_creation_tokens=tokens.cache_write_input_tokens,
        source="unknown",
    )


def sum_of(left: Tokens, right: Tokens) -> Tokens:
    """Both together."""
    return Tokens(*(a + b for a, b in zip(_counts(left), _counts(right), strict=True)))


def _difference(total: Tokens, before: Tokens) -> Tokens | None:
    counts = [a - b for a, b in zip(_counts(total), _counts(before), strict=True)]
    # The first count is the size of the context where a call failed on it, so only the others tell a set-back.
    return None if any(count < 0 for count in counts[1:]) else Tokens(*counts)


def _counts(tokens: Tokens) -> tuple[Any, ...]:
    return msgspec.structs.astuple(tokens)


def _uncached(tokens: Tokens) -> int:
    return max(tokens.input_tokens - tokens.cached_input_tokens - tokens.cache_write_input_tokens, 0)
