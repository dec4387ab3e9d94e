"""Tokens. Each model call of the main agent says its own; `result.usage` is the sum over the whole session.

The sum includes sub-agents, attempts that were given up and calls that nobody sees (the agent's memory), but also
earlier runs of a session that is continued.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux.sdk import facts
from agent_mux_adapters._dialects.tolerant import whole

Facts = tuple[facts.Fact, ...]
Counts = tuple[int, int, int]
"""Input that was not read from a cache, output, input that was."""
NOTHING: Counts = (0, 0, 0)


def counts_of(usage: Mapping[str, Any]) -> Counts:
    """The figures of a `usage` object, whose `input_tokens` include what a cache gave."""
    cached = whole(usage.get("cache_read_input_tokens"))
    return max(whole(usage.get("input_tokens")) - cached, 0), whole(usage.get("output_tokens")), cached


def told(counts: Counts) -> Facts:
    """As a fact; nothing where nothing was used."""
    if not any(counts):
        return ()
    return (facts.Usage(input_tokens=counts[0], output_tokens=counts[1], cached_tokens=counts[2]),)


class Meter:
    """What the main agent's model calls have told, and what the results say on top of it."""

    def __init__(self, *, is_new: bool) -> None:
        """`is_new`: the session is known to begin with this run."""
        self._told = NOTHING
        self._total = NOTHING if is_new else None
        """The sum at the last result; None: not known, for it may include earlier runs."""
        self.saw_more = False
        """In this turn a sub-agent worked, or an attempt was given up: they used tokens that no call told."""

    def model_call(self, usage: Mapping[str, Any]) -> Facts:
        """One call of the main agent."""
        counts = counts_of(usage)
        self._told = _plus(self._told, counts)
        return told(counts)

    def turn(self, usage: Mapping[str, Any]) -> Facts:
        """A result: the tokens of the turn that no call told, where it is known that they are of this run."""
        total, before = counts_of(usage), self._total
        if not any(total):
            return ()  # an interrupted turn says nothing
        spoken, self._told, self._total = self._told, NOTHING, total
        saw_more, self.saw_more = self.saw_more, False
        if before is None and not saw_more:
            return ()
        before = before or NOTHING
        rest = _plus(total, _plus(before, spoken), sign=-1)
        return told(rest) if min(rest) >= 0 else ()


def _plus(one: Counts, other: Counts, sign: int = 1) -> Counts:
    return one[0] + sign * other[0], one[1] + sign * other[1], one[2] + sign * other[2]
