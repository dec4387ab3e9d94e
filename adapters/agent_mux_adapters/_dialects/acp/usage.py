"""Tokens and cost, from responses to prompts and from `usage_update`."""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec.structs import replace

from agent_mux.events.base import CostRecord
from agent_mux.sdk.facts import Usage
from agent_mux_adapters._dialects.tolerant import dollars, mapping, optional_whole, whole

_PARTS = ("inputTokens", "outputTokens", "thoughtTokens", "cachedReadTokens", "cachedWriteTokens")
_COUNTS = ("input_tokens", "output_tokens", "thinking_tokens", "cached_tokens", "cache_creation_tokens")
NO_TOKENS = Usage(0, 0)


def default_usage(result: Mapping[str, Any]) -> Usage | None:
    """Return the `usage` of a response, or of the `_meta` of an update; None when it has no counts."""
    fields = mapping(result.get("usage"))
    return usage_of(fields) if any(fields.get(part) is not None for part in _PARTS) else None


def usage_of(fields: Mapping[str, Any]) -> Usage:
    """Return the tokens with our meaning of the counts.

    Agents differ in whether the input includes cached tokens, and the output thinking tokens; the total shows which it
    is.
    """
    thinking, cached, cache_written = (optional_whole(fields.get(part)) for part in _PARTS[2:])
    input_tokens, output_tokens = whole(fields.get("inputTokens")), whole(fields.get("outputTokens"))
    thought, in_cache = thinking or 0, (cached or 0) + (cache_written or 0)
    beyond = whole(fields.get("totalTokens")) - input_tokens - output_tokens
    if beyond in (thought, thought + in_cache) and beyond != in_cache:
        output_tokens += thought
    if beyond not in (in_cache, in_cache + thought):
        input_tokens = max(input_tokens - in_cache, 0)
    return Usage(input_tokens, output_tokens, thinking, cached, cache_written)


def plus(left: Usage, right: Usage) -> Usage:
    """Return the sum; a count that neither side has stays None."""
    return _combined(left, right, 1)


def minus(left: Usage, right: Usage) -> Usage:
    """Return the difference; counts never become negative."""
    return _combined(left, right, -1)


def _combined(left: Usage, right: Usage, sign: int) -> Usage:
    input_tokens, output_tokens, thinking, cached, cache_written = (
        None if a is None and b is None else max((a or 0) + sign * (b or 0), 0)
        for a, b in ((getattr(left, name), getattr(right, name)) for name in _COUNTS)
    )
    return Usage(input_tokens or 0, output_tokens or 0, thinking, cached, cache_written)


class AcpUsage:
    """Accumulates the usage of the turn and of the run."""

    def __init__(self, *, is_cumulative: bool) -> None:
        self._is_cumulative = is_cumulative
        self._prior_dollars: float | None = 0.0
        """The session's cost in dollars before this run; None when unknown."""
        self._dollars: float | None = None
        self._reported_dollars = 0.0
        self._session_tokens = NO_TOKENS
        self._run = NO_TOKENS
        self._turn = NO_TOKENS
        self._counted_by_call = False
        self._has_subagents = False

    def resume_session(self) -> None:
        """Note that the session is resumed: the cost reported before the first prompt is that of earlier runs."""
        self._prior_dollars = self._dollars

    def record_cost(self, cost: Any) -> None:
        """Record the `cost` of a `usage_update`, which counts the whole session."""
        fields = mapping(cost)
        amount = fields.get("amount")
        # Without a price for the model, agents report a cost of 0, which means unknown.
        if fields.get("currency") == "USD" and dollars(amount):
            self._dollars = dollars(amount)

    def add_call(self, usage: Usage, *, inside: bool = False) -> Usage:
        """Add and return the tokens of one model call. `inside` is true for a call of a sub-agent."""
        self._counted_by_call = True
        self._has_subagents = self._has_subagents or inside
        return self._add(usage)

    def add_turn(self, usage: Usage | None) -> Usage | None:
        """Add the tokens of a response; return None when the model calls were counted one by one."""
        if usage is None or self._counted_by_call or usage == NO_TOKENS:
            return None
        if self._is_cumulative:
            usage, self._session_tokens = minus(usage, self._session_tokens), usage
        return replace(self._add(usage), of_one_call=False)

    def close_turn(self) -> tuple[CostRecord | None, CostRecord | None]:
        """Return the cost of the turn and of the run; None where the agent reports no session cost.

        Without prices, a turn with sub-agents still gets a record of unknown cost: their tokens cost money but are not
        in the main agent's usage.
        """
        turn, self._turn, self._counted_by_call = self._turn, NO_TOKENS, False
        delegated, self._has_subagents = self._has_subagents, False
        if self._dollars is None or self._prior_dollars is None:
            return _record(0.0, turn, source="unknown") if delegated else None, None
        so_far = max(self._dollars - self._prior_dollars, 0.0)
        turn_cost = _record(max(so_far - self._reported_dollars, 0.0), turn)
        self._reported_dollars = so_far
        return turn_cost, _record(so_far, self._run)

    def _add(self, usage: Usage) -> Usage:
        self._turn, self._run = plus(self._turn, usage), plus(self._run, usage)
        return usage


def _record(dollars: float, usage: Usage, *, source: Literal["native", "unknown"] = "native") -> CostRecord:
    return CostRecord(
        total_usd=dollars,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        thinking_tokens=usage.thinking_tokens,
        cached_tokens=usage.cached_tokens,
        cache_creation_tokens=usage.cache_creation_tokens,
        source=source,
    )
