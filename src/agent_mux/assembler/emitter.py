"""What the assembler knows about its run: plain data, handed in and journaled.

Where events come out: run id, agent, time and scope are put on them here.


Figures as an agent may print them, as figures that can be: never negative, never infinite.
"""

from hashlib import blake2b
from math import isfinite
from typing import Any

import msgspec
from msgspec.structs import replace
from ulid import ULID

from agent_mux.events import AgentEvent
from agent_mux.events.base import BaseEvent, CostRecord
from agent_mux.sdk.facts import Capability, Usage
from agent_mux.sdk.models import Price


class StreamContext(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that shape the event stream of one run."""

    run_id: str
    agent: str
    display_name: str = ""
    cwd: str = ""
    streams: frozenset[Capability] = frozenset({"text", "tool_calls", "thinking"})
    """What the native protocol delivers in fragments."""
    buffered: bool = False
    """`stream=False`: every message, thought and tool input comes whole."""
    show_approvals: bool = True
    """False in plain `yolo` mode: nothing is asked, so nothing is shown."""
    show_requests: bool = True
    """False in `deny` mode: only the denial is shown."""
    permission_pending: bool = False
    """A tool may still be denied after it is ready: its command has not started before there is evidence."""
    interactive: bool = False
    """The run goes on after a failed or interrupted turn."""
    include_subagent_events: bool = False
    resumed: bool = False
    forked_from: str | None = None
    max_turns: int = 0
    model: str | None = None
    """What was asked for; the agent may say that it uses another one."""
    prices: dict[str, Price] = {}
    """By model, for what the agent does not price itself."""
    auth_guidance: str = ""
    """What a person does about an authentication failure of this agent."""


class Emitter:
    """Collects the events of one run. Time is handed in and never goes back."""

    __slots__ = ("_ids", "agent", "now", "out", "raw", "run_id")

    def __init__(self, run_id: str, agent: str) -> None:
        self.run_id = run_id
        self.agent = agent
        self.now = 1
        self.raw: str | None = None
        """The native line that is being read, in debug mode."""
        self.out: list[AgentEvent] = []
        self._ids = 0

    def emit(self, kind: type[BaseEvent], *values: Any, subagent: str | None = None) -> None:
        """Make an event of its own fields, in order."""
        event: Any = kind(self.run_id, self.agent, self.now, *values)
        if subagent is not None or self.raw is not None:
            event = _labelled(event, subagent, self.raw)
        self.out.append(event)

    def new_id(self) -> str:
        """A ULID that depends on nothing but the run, the time and how many there were: deriving gives the same."""
        self._ids += 1
        seed = blake2b(f"{self.run_id}/{self._ids}".encode(), digest_size=10).digest()
        return str(ULID.from_bytes(self.now.to_bytes(6, "big") + seed))


def _labelled(event: BaseEvent, subagent: str | None, raw: str | None) -> BaseEvent:
    labels = {"raw": raw} if raw is not None else {}
    return replace(event, **labels, **({"subagent_id": subagent} if subagent is not None else {}))


def possible(value: int) -> int:
    """A count that can be."""
    return max(value, 0)


def possible_or_none(value: int | None) -> int | None:
    """A count that can be, or that nobody said."""
    return None if value is None else max(value, 0)


def possible_usage(usage: Usage) -> Usage:
    """Tokens that can be."""
    return Usage(
        possible(usage.input_tokens),
        possible(usage.output_tokens),
        possible_or_none(usage.thinking_tokens),
        possible_or_none(usage.cached_tokens),
        possible_or_none(usage.cache_creation_tokens),
        usage.of_one_call,
    )


def possible_cost(cost: CostRecord | None) -> CostRecord | None:
    """A cost that can be; money that cannot be is unknown."""
    if cost is None:
        return None
    sound = isfinite(cost.total_usd) and cost.total_usd >= 0
    return replace(
        cost,
        total_usd=cost.total_usd if sound else 0.0,
        source=cost.source if sound else "unknown",
        input_tokens=possible(cost.input_tokens),
        output_tokens=possible(cost.output_tokens),
        thinking_tokens=possible_or_none(cost.thinking_tokens),
        cached_tokens=possible_or_none(cost.cached_tokens),
        cache_creation_tokens=possible_or_none(cost.cache_creation_tokens),
    )
