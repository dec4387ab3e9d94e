"""Token counts of model calls. Copilot's input count includes what was read from the cache and written to it.

Copilot reports the price of a call in premium requests and AI credits, never in money.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from agent_mux.events.base import CostRecord
from agent_mux.sdk.facts import Usage
from agent_mux_adapters._dialects.tolerant import whole


class CopilotTokens(msgspec.Struct, frozen=True, gc=False):
    """Tokens of one or more model calls."""

    input: int = 0
    """Neither read from the cache nor written to it."""
    output: int = 0
    thinking: int = 0
    """Part of the output."""
    cached: int = 0
    cache_creation: int = 0

    def __add__(self, other: "CopilotTokens") -> "CopilotTokens":
        """Add the counts of other calls."""
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return CopilotTokens(*(left + right for left, right in pairs))

    def __sub__(self, other: "CopilotTokens") -> "CopilotTokens":
        """Return the counts without those of other calls, which must not be greater."""
        pairs = zip(msgspec.structs.astuple(self), msgspec.structs.astuple(other), strict=True)
        return CopilotTokens(*(left - right for left, right in pairs))

    @property
    def usage(self) -> Usage:
        """The counts as a fact about one call."""
        return Usage(self.input, self.output, self.thinking, self.cached, self.cache_creation)

    @property
    def cost(self) -> CostRecord | None:
        """The counts as a cost without a price; None when no tokens were used."""
        if self == CopilotTokens():
            return None
        return CostRecord(
            total_usd=0.0,
            input_tokens=self.input,
            output_tokens=self.output,
            thinking_tokens=self.thinking,
            cached_tokens=self.cached,
            cache_creation_tokens=self.cache_creation,
            source="unknown",
        )


def tokens_of(data: Mapping[str, Any]) -> CopilotTokens:
    """Read the counts of `assistant.usage` or of a compaction."""
    read, written = whole(data.get("cacheReadTokens")), whole(data.get("cacheWriteTokens"))
    return CopilotTokens(
        max(whole(data.get("inputTokens")) - read - written, 0),
        whole(data.get("outputTokens")),
        whole(data.get("reasoningTokens")),
        read,
        written,
    )
