"""Tokens and cost of each model call.

OpenCode's input tokens exclude those read from or written to a cache, and its output tokens exclude thinking.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux.events.base import CostRecord
from agent_mux.sdk.facts import Usage
from agent_mux_adapters._dialects.tolerant import dollars, mapping, whole


class OpencodeUsage:
    """The accumulated usage of model calls."""

    __slots__ = ("_cached", "_calls", "_input", "_output", "_thinking", "_usd", "_written")

    def __init__(self) -> None:
        self._calls = self._input = self._output = self._thinking = self._cached = self._written = 0
        self._usd = 0.0

    def add(self, usage: Usage, usd: float) -> None:
        """Add the usage of one call."""
        self._calls += 1
        self._input += usage.input_tokens
        self._output += usage.output_tokens
        self._thinking += usage.thinking_tokens or 0
        self._cached += usage.cached_tokens or 0
        self._written += usage.cache_creation_tokens or 0
        self._usd += usd

    @property
    def record(self) -> CostRecord | None:
        """The accumulated usage as a record; None without calls."""
        if not self._calls:
            return None
        return CostRecord(
            total_usd=self._usd,
            input_tokens=self._input,
            output_tokens=self._output,
            thinking_tokens=self._thinking,
            cached_tokens=self._cached,
            cache_creation_tokens=self._written,
            # OpenCode reports a cost of 0 for a model whose price is unknown.
            source="native" if self._usd else "unknown",
        )


def read_usage(step: Mapping[str, Any]) -> tuple[Usage, float]:
    """Read the tokens and the dollars of a `step-finish` part."""
    tokens = mapping(step.get("tokens"))
    cache = mapping(tokens.get("cache"))
    thinking = whole(tokens.get("reasoning"))
    usage = Usage(
        whole(tokens.get("input")),
        whole(tokens.get("output")) + thinking,
        thinking_tokens=thinking,
        cached_tokens=whole(cache.get("read")),
        cache_creation_tokens=whole(cache.get("write")),
    )
    return usage, dollars(step.get("cost"))
