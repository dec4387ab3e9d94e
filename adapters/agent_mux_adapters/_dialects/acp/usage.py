"""Tokens and money, as ACP tells them: with the answer to a prompt, and in `usage_update`."""

from collections.abc import Mapping
from typing import Any, Literal

from msgspec.structs import replace

from agent_mux.events.cost import CostRecord
from agent_mux.facts import Usage
from agent_mux_adapters._dialects.tolerant import dollars, mapping, optional_whole, whole

_PARTS = ("inputTokens", "outputTokens", "thoughtTokens", "cachedReadTokens", "cachedWriteTokens")
_COUNTS = ("input_tokens", "output_tokens", "thinking_tokens", "cached_tokens", "cache_creation_tokens")
NO_TOKENS = Usage(0, 0)


def default_usage(result: Mapping[str, Any]) -> Usage | None:
    """The `usage` of an answer, or of the `_meta` of an update."""
    fields = mapping(result.get("usage"))
    return usage_of(fields) if any(fields.get(part) is not None for part in _PARTS) else None


def usage_of(fields: Mapping[str, Any]) -> Usage:
    """The tokens. Agents differ in whether cached ones are part of the input, and thoughts of the output.

    The total shows it.
    """
    thoughts, cached, written = (optional_whole(fields.get(part)) for part in _PARTS[2:])
    taken, given = whole(fields.get("inputTokens")), whole(fields.get("outputTokens"))
    thought, in_cache = thoughts or 0, (cached or 0) + (written or 0)
    apart = whole(fields.get("totalTokens")) - taken - given
    if apart in (thought, thought + in_cache) and apart != in_cache:
        given += thought
    if apart not in (in_cache, in_cache + thought):
        taken = max(taken - in_cache, 0)
    return Usage(taken, given, thoughts, cached, written)


def plus(left: Usage, right: Usage) -> Usage:
    """Both together; a count that neither has stays unknown."""
    return _combined(left, right, 1)


def minus(left: Usage, right: Usage) -> Usage:
    """What was added since `right`."""
    return _combined(left, right, -1)


def _combined(left: Usage, right: Usage, sign: int) -> Usage:
    taken, given, thoughts, cached, written = (
        None if a is None and b is None else max((a or 0) + sign * (b or 0), 0)
        for a, b in ((getattr(left, name), getattr(right, name)) for name in _COUNTS)
    )
    return Usage(taken or 0, given or 0, thoughts, cached, written)


class AcpUsage:
    """What the run used so far, and the turn."""

    def __init__(self, *, is_cumulative: bool) -> None:
        self._is_cumulative = is_cumulative
        self._before: float | None = 0.0
        """Dollars that the session had cost before this run; None: not known."""
        self._dollars: float | None = None
        self._told_dollars = 0.0
        self._session_tokens = NO_TOKENS
        self._run = NO_TOKENS
        self._turn = NO_TOKENS
        self._by_calls = False
        self._delegated = False

    def continued(self) -> None:
        """The session is an older one: what it had cost is what is told before the first prompt, if anything is."""
        self._before = self._dollars

    def saw_cost(self, cost: Any) -> None:
        """The `cost` of a `usage_update`: of the session so far."""
        fields = mapping(cost)
        amount = fields.get("amount")
        # Where a model has no price for the agent, the session costs nothing: that says nothing.
        if fields.get("currency") == "USD" and dollars(amount):
            self._dollars = dollars(amount)

    def of_call(self, usage: Usage, *, inside: bool = False) -> Usage:
        """The tokens of one model call. `inside`: of a sub-agent's."""
        self._by_calls = True
        self._delegated = self._delegated or inside
        return self._add(usage)

    def of_turn(self, usage: Usage | None) -> Usage | None:
        """The tokens of an answer: news only where the model calls were not told one by one."""
        if usage is None or self._by_calls or usage == NO_TOKENS:
            return None
        if self._is_cumulative:
            usage, self._session_tokens = minus(usage, self._session_tokens), usage
        return replace(self._add(usage), of_one_call=False)

    def close_turn(self) -> tuple[CostRecord | None, CostRecord | None]:
        """The cost of the turn and of the run, where the agent told what the session costs.

        Without prices, that of a turn is told when sub-agents took part: their tokens cost, but are no usage of the
        main agent's.
        """
        turn, self._turn, self._by_calls = self._turn, NO_TOKENS, False
        delegated, self._delegated = self._delegated, False
        if self._dollars is None or self._before is None:
            return _record(0.0, turn, source="unknown") if delegated else None, None
        so_far = max(self._dollars - self._before, 0.0)
        of_turn = _record(max(so_far - self._told_dollars, 0.0), turn)
        self._told_dollars = so_far
        return of_turn, _record(so_far, self._run)

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
