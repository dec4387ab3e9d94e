"""Tokens and cost of model calls, turns and the run.

The CLI's figures overlap. `result.usage` counts the main agent's calls of one turn. `total_cost_usd` and `modelUsage`
grow over the whole session, including earlier runs of a resumed one. `model_usage_since_last_result` is their growth,
including sub-agents and compaction; older versions and `--output-format json` omit it.
"""

from collections.abc import Mapping
from typing import Any, Self

import msgspec

from agent_mux.events.base import CostRecord
from agent_mux.sdk import facts
from agent_mux_adapters._dialects.tolerant import dollars, mapping, optional_whole, whole


def usage_of(raw: Mapping[str, Any]) -> facts.Usage:
    """Return the usage of a model call. The `input_tokens` of the API exclude cached tokens."""
    return facts.Usage(
        input_tokens=whole(raw.get("input_tokens")),
        output_tokens=whole(raw.get("output_tokens")),
        thinking_tokens=optional_whole(mapping(raw.get("output_tokens_details")).get("thinking_tokens")),
        cached_tokens=optional_whole(raw.get("cache_read_input_tokens")),
        cache_creation_tokens=optional_whole(raw.get("cache_creation_input_tokens")),
    )


def subagent_usage(raw: Mapping[str, Any]) -> tuple[facts.Fact, ...]:
    """Return the usage of a sub-agent's model call, which only the cost of the turn includes."""
    return (usage_of(raw),)


def uses_anything(usage: facts.Usage) -> bool:
    """Return whether any token was used."""
    counts = (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cache_creation_tokens)
    return any(counts) or bool(usage.thinking_tokens)


class ModelSpend(msgspec.Struct, frozen=True, kw_only=True):
    """Cost and tokens summed over models, with the counts of `modelUsage`."""

    usd: float = 0.0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    thinking: int | None = None

    @classmethod
    def of_models(cls, models: Mapping[str, Any]) -> Self:
        """Return the sum of a `modelUsage` object."""
        each = [mapping(model) for model in models.values()]
        thinking = [whole(model["thinkingTokens"]) for model in each if "thinkingTokens" in model]
        return cls(
            usd=sum(dollars(model.get("costUSD")) for model in each),
            input=sum(whole(model.get("inputTokens")) for model in each),
            output=sum(whole(model.get("outputTokens")) for model in each),
            cache_read=sum(whole(model.get("cacheReadInputTokens")) for model in each),
            cache_write=sum(whole(model.get("cacheCreationInputTokens")) for model in each),
            thinking=sum(thinking) if thinking else None,
        )

    def __bool__(self) -> bool:
        return any(msgspec.structs.astuple(self))

    def __add__(self, other: "ModelSpend") -> "ModelSpend":
        thinking = None if self.thinking is other.thinking is None else (self.thinking or 0) + (other.thinking or 0)
        return ModelSpend(
            usd=self.usd + other.usd,
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            thinking=thinking,
        )

    def since(self, earlier: "ModelSpend") -> "ModelSpend":
        """Return the difference; everything if the counters started again (`/clear`)."""
        if self.input < earlier.input or self.output < earlier.output:
            return self
        return ModelSpend(
            usd=max(self.usd - earlier.usd, 0.0),
            input=self.input - earlier.input,
            output=self.output - earlier.output,
            cache_read=max(self.cache_read - earlier.cache_read, 0),
            cache_write=max(self.cache_write - earlier.cache_write, 0),
            thinking=None if self.thinking is None else max(self.thinking - (earlier.thinking or 0), 0),
        )

    def record(self) -> CostRecord:
        """Return the sum as the agent's own (`native`) cost record."""
        return CostRecord(
            total_usd=self.usd,
            input_tokens=self.input,
            output_tokens=self.output,
            thinking_tokens=self.thinking,
            cached_tokens=self.cache_read,
            cache_creation_tokens=self.cache_write,
            source="native",
        )


class ClaudeUsage:
    """Accumulates what this run used."""

    def __init__(self, *, continues_session: bool) -> None:
        self._run = ModelSpend()
        self._native_total: ModelSpend | None = ModelSpend() if not continues_session else None
        """The CLI's cumulative figure at the last result; None when it includes an unknown amount of earlier runs."""
        self._emitted: list[int] = [0, 0, 0, 0]
        self._reported: list[int] = [0, 0, 0, 0]

    def model_call(self, raw: Mapping[str, Any]) -> tuple[facts.Fact, ...]:
        """Return the usage of one call of the main agent."""
        usage = usage_of(raw)
        if not uses_anything(usage):
            return ()
        self._emitted = [sum(pair) for pair in zip(self._emitted, _counts(usage), strict=True)]
        return (usage,)

    def unreported(self, line: Mapping[str, Any]) -> tuple[facts.Fact, ...]:
        """Return the usage of the turn's calls that were not streamed.

        These are calls without partial messages, or repeated without streaming.
        """
        usage = usage_of(mapping(line.get("usage")))
        self._reported = [sum(pair) for pair in zip(self._reported, _counts(usage), strict=True)]
        if not uses_anything(usage):
            self._emitted = list(self._reported)  # the result of an interrupted turn omits its calls
        rest = [reported - emitted for reported, emitted in zip(self._reported, self._emitted, strict=True)]
        if min(rest) < 0 or not any(rest):
            return ()
        everything = not any(self._emitted)
        self._emitted = list(self._reported)
        return (
            facts.Usage(
                input_tokens=rest[0],
                output_tokens=rest[1],
                thinking_tokens=usage.thinking_tokens if everything else None,
                cached_tokens=rest[2],
                cache_creation_tokens=rest[3],
                of_one_call=False,
            ),
        )

    def spend_at_result(self, line: Mapping[str, Any]) -> tuple[CostRecord | None, tuple[facts.Fact, ...]]:
        """Return the cost since the last result, and the cost of the run so far.

        None and no facts when nothing was spent.
        """
        spend = self._spend_since(line)
        if spend is None:
            return _tokens_only(usage_of(mapping(line.get("usage")))), ()
        if not spend:
            return None, ()
        self._run += spend
        return spend.record(), (facts.RunCost(self._run.record()),)

    def _spend_since(self, line: Mapping[str, Any]) -> ModelSpend | None:
        total = ModelSpend.of_models(mapping(line.get("modelUsage")))
        total = msgspec.structs.replace(total, usd=dollars(line.get("total_cost_usd")))
        before, self._native_total = self._native_total, total
        delta = line.get("model_usage_since_last_result")
        if isinstance(delta, dict):
            return ModelSpend.of_models(delta)
        if before is not None:
            return total.since(before)
        alone = (total.input, total.output) == _counts(usage_of(mapping(line.get("usage"))))[:2]
        return total if alone else None


def _counts(usage: facts.Usage) -> tuple[int, int, int, int]:
    return usage.input_tokens, usage.output_tokens, usage.cached_tokens or 0, usage.cache_creation_tokens or 0


def _tokens_only(usage: facts.Usage) -> CostRecord | None:
    if not uses_anything(usage):
        return None
    return CostRecord(
        total_usd=0.0,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        thinking_tokens=usage.thinking_tokens,
        cached_tokens=usage.cached_tokens,
        cache_creation_tokens=usage.cache_creation_tokens,
        source="unknown",
    )
