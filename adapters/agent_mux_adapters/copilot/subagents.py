"""Sub-agents, which calls of the tool `task` start. The id of the call is our id of the sub-agent.

The sub-agent's own events carry another id, which `subagent.started` maps to the call. A sub-agent in the foreground
reports as the result of its call. The call of one in the background returns at once; its last message is its report
when it completes.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux.events.base import CostRecord
from agent_mux.sdk.facts import Fact, Ignored, SubagentBegin, SubagentDone
from agent_mux_adapters._dialects.tolerant import mapping, text

DEFAULT_AGENT = "agent"
_BACKGROUND = "background"


class CopilotSubagents:
    """The sub-agents of one run. Each begins once and reports once."""

    def __init__(self) -> None:
        self._reported: set[str] = set()
        self._begun: set[str] = set()
        self._in_background: set[str] = set()
        self._calls: dict[str, str] = {}

    def call_of(self, agent_id: str) -> str:
        """Return the id of the call that started this sub-agent, or `agent_id` itself while that is unknown."""
        return self._calls.get(agent_id, agent_id)

    def begin(self, call_id: str, arguments: Any) -> tuple[Fact, ...]:
        """Return the begin of a sub-agent from the input of its call; empty when it has begun before."""
        if call_id in self._begun:
            return ()
        self._begun.add(call_id)
        fields = mapping(arguments)
        return (SubagentBegin(call_id, text(fields.get("agent_type")) or DEFAULT_AGENT, text(fields.get("prompt"))),)

    def started(self, agent_id: str, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Handle `subagent.started`: map the agent's id to its call."""
        call_id = text(data.get("toolCallId")) or agent_id
        self._calls[agent_id] = call_id
        if data.get("executionMode") == _BACKGROUND:
            self._in_background.add(call_id)
        name = text(data.get("agentType")) or text(data.get("agentName"))
        begun = self.begin(call_id, {"agent_type": name, "prompt": text(data.get("agentDescription"))})
        return begun or (Ignored("subagent.started", "the call that starts the sub-agent reports it"),)

    def call_returned(self, call_id: str, result: str, error: str | None, cost: CostRecord | None) -> tuple[Fact, ...]:
        """Return the report of a sub-agent in the foreground from the result of its call."""
        if error is None and call_id in self._in_background:
            return (Ignored("tool.execution_complete", "the sub-agent was started; it reports when it completes"),)
        return self._report(call_id, result, error, cost)

    def completed(self, data: Mapping[str, Any], last_message: str, cost: CostRecord | None) -> tuple[Fact, ...]:
        """Handle `subagent.completed`, for which the last message of the sub-agent is the report."""
        cancelled = "the sub-agent was cancelled" if data.get("cancelled") is True else None
        return self._report(text(data.get("toolCallId")), last_message, cancelled, cost)

    def failed(self, data: Mapping[str, Any], cost: CostRecord | None) -> tuple[Fact, ...]:
        """Handle `subagent.failed`: return the error of the sub-agent."""
        error = text(data.get("error")) or "the sub-agent failed"
        return self._report(text(data.get("toolCallId")), "", error, cost)

    def _report(self, call_id: str, summary: str, error: str | None, cost: CostRecord | None) -> tuple[Fact, ...]:
        if call_id in self._reported:
            return (Ignored("sub-agent", "the sub-agent has reported before"),)
        self._reported.add(call_id)
        return (SubagentDone(call_id, "" if error is not None else summary, error, cost),)
