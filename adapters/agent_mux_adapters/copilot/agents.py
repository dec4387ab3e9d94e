"""The agents of one run: the main one and its sub-agents, whose events share the stream."""

from collections.abc import Iterable, Mapping
from typing import Any

from agent_mux.events.cost import CostRecord
from agent_mux.facts import (
    Fact,
    Ignored,
    InSubagent,
    McpBegin,
    McpDone,
    SubagentBegin,
    SubagentDone,
    Text,
    TextDelta,
    TextEnd,
    Thinking,
    ThinkingDelta,
    ThinkingEnd,
    ToolBegin,
    ToolDone,
    ToolInput,
    ToolOutput,
    ToolReady,
)
from agent_mux_adapters._dialects.tolerant import text
from agent_mux_adapters.copilot.agent import Agent
from agent_mux_adapters.copilot.delegation import Delegation
from agent_mux_adapters.copilot.meter import Tokens

_CONTENT = (
    McpBegin, McpDone, Text, TextDelta, TextEnd, Thinking, ThinkingDelta, ThinkingEnd, ToolBegin, ToolDone, ToolInput,
    ToolOutput, ToolReady,
)  # fmt: skip
# A sub-agent's own sub-agents are sub-agents of the run.
_OF_THE_RUN = (SubagentBegin, SubagentDone)
_INSIDE = "about the work of a sub-agent, of which only the content is shown"


class Agents:
    """Which facts belong to whom."""

    def __init__(self) -> None:
        self.delegation = Delegation()
        self.main = Agent(self.delegation)
        self._inner: dict[str, Agent] = {}
        """By the id of the call that made the sub-agent."""

    def get(self, agent_id: str) -> Agent:
        """The agent that an event is about; an empty id is the main one's."""
        if not agent_id:
            return self.main
        call_id = self.delegation.call_of(agent_id)
        agent = self._inner.get(call_id)
        if agent is None:
            agent = self._inner[call_id] = Agent(self.delegation)
        return agent

    def tell(self, agent_id: str, facts: Iterable[Fact]) -> tuple[Fact, ...]:
        """The facts of an agent as facts of the run."""
        if not agent_id:
            return tuple(facts)
        call_id = self.delegation.call_of(agent_id)
        told = tuple(InSubagent(call_id, fact) if isinstance(fact, _CONTENT) else fact for fact in facts)
        shown = tuple(fact for fact in told if isinstance(fact, (InSubagent, *_OF_THE_RUN)))
        return shown or tuple(fact for fact in told if isinstance(fact, Ignored)) or (Ignored("sub-agent", _INSIDE),)

    def started(self, agent_id: str, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """`subagent.started`."""
        return self.delegation.started(agent_id, data)

    def completed(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """`subagent.completed`."""
        agent = self.get(text(data.get("toolCallId")))
        return self.delegation.completed(data, agent.answer, agent.spent.cost)

    def failed(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """`subagent.failed`."""
        return self.delegation.failed(data, self.cost_of(text(data.get("toolCallId"))))

    def cost_of(self, call_id: str) -> CostRecord | None:
        """What the sub-agent of this call used."""
        agent = self._inner.get(call_id)
        return None if agent is None else agent.spent.cost

    @property
    def cost(self) -> CostRecord | None:
        """What all of them used in this run."""
        total = self.main.spent
        for agent in self._inner.values():
            total += agent.spent
        return total.cost if total != Tokens() else None
