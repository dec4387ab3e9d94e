"""Sub-agents: delegated by a call of `task`, whose id is theirs.

Their own events carry another id, told by `subagent.started`. One that runs in the foreground reports as the result of
its call. One that runs in the background has a result that only says it was started; it has reported when it completed,
by its last message.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux.events.cost import CostRecord
from agent_mux.facts import Fact, Ignored, SubagentBegin, SubagentDone
from agent_mux_adapters._dialects.tolerant import mapping, text

DEFAULT_AGENT = "agent"
_BACKGROUND = "background"
_SINCE_REPORTED = "the sub-agent has reported before"


class Delegation:
    """The sub-agents of one run, each begun once and reported once."""

    def __init__(self) -> None:
        self._reported: set[str] = set()
        self._begun: set[str] = set()
        self._in_background: set[str] = set()
        self._calls: dict[str, str] = {}

    def call_of(self, agent_id: str) -> str:
        """The call that made this sub-agent: what we know it by."""
        return self._calls.get(agent_id, agent_id)

    def begin(self, call_id: str, arguments: Any) -> tuple[Fact, ...]:
        """A task is delegated."""
        if call_id in self._begun:
            return ()
        self._begun.add(call_id)
        said = mapping(arguments)
        return (SubagentBegin(call_id, text(said.get("agent_type")) or DEFAULT_AGENT, text(said.get("prompt"))),)

    def started(self, agent_id: str, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """`subagent.started`."""
        call_id = text(data.get("toolCallId")) or agent_id
        self._calls[agent_id] = call_id
        if data.get("executionMode") == _BACKGROUND:
            self._in_background.add(call_id)
        name = text(data.get("agentType")) or text(data.get("agentName"))
        begun = self.begin(call_id, {"agent_type": name, "prompt": text(data.get("agentDescription"))})
        return begun or (Ignored("subagent.started", "told by the call that delegates"),)

    def returned(self, call_id: str, shown: str, error: str | None, cost: CostRecord | None) -> tuple[Fact, ...]:
        """The call of `task` ended."""
        if error is None and call_id in self._in_background:
            return (Ignored("tool.execution_complete", "the sub-agent was started; it reports when it completes"),)
        return self._report(call_id, shown, error, cost)

    def completed(self, data: Mapping[str, Any], answer: str, cost: CostRecord | None) -> tuple[Fact, ...]:
        """`subagent.completed`. `answer`: its last message."""
        cancelled = "the sub-agent was cancelled" if data.get("cancelled") is True else None
        return self._report(text(data.get("toolCallId")), answer, cancelled, cost)

    def failed(self, data: Mapping[str, Any], cost: CostRecord | None) -> tuple[Fact, ...]:
        """`subagent.failed`."""
        why = text(data.get("error")) or "the sub-agent failed"
        return self._report(text(data.get("toolCallId")), "", why, cost)

    def _report(self, call_id: str, summary: str, error: str | None, cost: CostRecord | None) -> tuple[Fact, ...]:
        if call_id in self._reported:
            return (Ignored("sub-agent", _SINCE_REPORTED),)
        self._reported.add(call_id)
        return (SubagentDone(call_id, "" if error is not None else summary, error, cost),)
