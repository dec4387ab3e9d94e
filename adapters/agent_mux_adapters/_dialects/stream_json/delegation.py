"""Sub-agents: delegated by a call of a tool, and back with its result."""

from collections.abc import Mapping
from typing import Any

from agent_mux import facts
from agent_mux_adapters._dialects.stream_json.results import Result
from agent_mux_adapters._dialects.tolerant import text

DEFAULT_AGENT = "general-purpose"


class Delegation:
    """The sub-agents that have not reported yet. To be subclassed where a report comes otherwise than as the result."""

    def __init__(self) -> None:
        self._waiting: set[str] = set()

    def begin(self, call_id: str, arguments: Mapping[str, Any]) -> facts.Fact:
        """A task is delegated."""
        self._waiting.add(call_id)
        name = text(arguments.get("subagent_type")) or DEFAULT_AGENT
        return facts.SubagentBegin(call_id, name, text(arguments.get("prompt")))

    def result(self, result: Result) -> tuple[facts.Fact, ...]:
        """The result of the call."""
        if result.call_id not in self._waiting:
            return ()
        self._waiting.discard(result.call_id)
        if result.failed:
            return (facts.SubagentDone(result.call_id, error=result.error),)
        return (facts.SubagentDone(result.call_id, result.shown),)
