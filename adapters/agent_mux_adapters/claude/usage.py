"""Tokens and money: what one model call used, and what one turn cost.

The CLI's figures overlap. `result.usage` counts the main agent's calls of one turn; `total_cost_usd` and `modelUsage`
grow over the whole session, earlier runs of a resumed one included; `model_usage_since_last_result` is what they grew
by, sub-agents and compaction included. Older versions, and `--output-format json`, leave the last one out.
"""

from collections.abc import Mapping
from typing import Any, Self

import msgspec

from agent_mux import facts
from agent_mux.events.cost import CostRecord
from agent_mux_adapters._dialects.tolerant import dollars, mapping, optional_whole, whole


def usage_of(raw: Mapping[str, Any]) -> facts.Usage:
    """The usage object of the model's API. Its `input_tokens` leave out what a cache gave or took."""
    return facts.Usage(
        input_tokens=whole(raw.get("input_tokens")),
        output_tokens=whole(raw.get("output_tokens")),
        thinking_tokens=optional_whole(mapping(raw.get("output_tokens_details")).get("thinking_tokens")),
        cached_tokens=optional_whole(raw.get("cache_read_input_tokens")),
        cache_creation_tokens=optional_whole(raw.get("cache_creation_input_tokens")),
    )


def subagent_usage(raw: Mapping[str, Any]) -> tuple[facts.Fact, ...]:
    """A call inside a sub-agent, which is in nobody's sum but the turn's."""
    return (usage_of(raw),)


def uses_anything(usage: facts.Usage) -> bool:
    """At least one token."""
    counts = (usage.input_tokens, usage.output_tokens, usage.cached_tokens, usage.cache_creation_tokens)
    return any(counts) or bool(usage.thinking_tokens)


class ModelSpend(msgspec.Struct, frozen=True, kw_only=True):
    """A sum over models, as `modelUsage` counts."""

    usd: float = 0.0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    thinking: int | None = None

    @classmethod
    def of_models(cls, models: Mapping[str, Any]) -> Self:
        """The sum of a `modelUsage` object."""
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
        """What was added; all of it where the counters began again (`/clear`)."""
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
        """As the events say it: the agent's own figure."""
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
    """What this run used so far."""

    def __init__(self, *, continues_session: bool) -> None:
        self._run = ModelSpend()
        self._native_total: ModelSpend | None = ModelSpend() if not continues_session else None
        """The CLI's cumulative figure at the last result; None: unknown, for it includes earlier runs."""
        self._told: list[int] = [0, 0, 0, 0]
        self._reported: list[int] = [0, 0, 0, 0]

    def model_call(self, raw: Mapping[str, Any]) -> tuple[facts.Fact, ...]:
        """One call of the main agent, with its final figures."""
        usage = usage_of(raw)
        if not uses_anything(usage):
            return ()
        self._told = [sum(pair) for pair in zip(self._told, _counts(usage), strict=True)]
        return (usage,)

    def untold(self, line: Mapping[str, Any]) -> tuple[facts.Fact, ...]:
        """The calls of the turn that no stream reported (no partial messages, or a call repeated without streaming)."""
        usage = usage_of(mapping(line.get("usage")))
        self._reported = [sum(pair) for pair in zip(self._reported, _counts(usage), strict=True)]
        if not uses_anything(usage):
            self._told = list(self._reported)  # an interrupted turn reports nothing, whatever its calls were
        rest = [reported - told for reported, told in zip(self._reported, self._told, strict=True)]
        if min(rest) < 0 or not any(rest):
            return ()
        everything = not any(self._told)
        self._told = list(self._reported)
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

    def spent_until(self, line: Mapping[str, Any]) -> tuple[CostRecord | None, tuple[facts.Fact, ...]]:
        """What was spent since the last result, and the cost of the run by now. Nothing where nothing was."""
        spent = self._spent_since(line)
        if spent is None:
            return _tokens_only(usage_of(mapping(line.get("usage")))), ()
        if not spent:
            return None, ()
        self._run += spent
        return spent.record(), (facts.RunCost(self._run.record()),)

    def _spent_since(self, line: Mapping[str, Any]) -> ModelSpend | None:
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
