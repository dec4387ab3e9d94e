"""Turns, cost and tokens of a conversation, counted from its events."""

from typing import Any

import msgspec

from agent_mux.api.event_lines import money
from agent_mux.events import BaseEvent, CostEvent, CostRecord, TokenUsageEvent, TurnStartEvent
from agent_mux.run.result import TokenUsage


class ConversationUsage:
    """The totals of a conversation so far."""

    def __init__(self) -> None:
        self.turns = 0
        self.cost: CostRecord | None = None
        self.usage: TokenUsage | None = None

    def add(self, event: BaseEvent) -> None:
        """Add the figures of an event, if it has any."""
        match event:
            case TurnStartEvent():
                self.turns = event.turn_index + 1
            case CostEvent():
                self.cost = event.cost
            case TokenUsageEvent():
                self.usage = (self.usage or TokenUsage()).plus(event)

    def spent(self) -> str:
        """Format cost and tokens as one line of text."""
        figures = [money(self.cost) or "cost unknown"]
        if self.usage is not None:
            figures.append(f"{self.usage.input_tokens:,} tokens in, {self.usage.output_tokens:,} out")
            if self.usage.cached_tokens is not None:
                figures.append(f"{self.usage.cached_tokens:,} cached")
        else:
            figures.append("no tokens counted yet")
        return ", ".join(figures)

    def to_dict(self) -> dict[str, Any]:
        """Return the totals as JSON fields: camelCase, without absent ones."""
        plain: dict[str, Any] = {"turnCount": self.turns}
        if self.cost is not None:
            plain["cost"] = msgspec.to_builtins(self.cost)
        if self.usage is not None:
            plain["tokenUsage"] = self.usage.to_dict()
        return plain
