"""Sub-agents and other background work of Hermes.

`delegate_task` starts sub-agents in the background and returns at once; their report begins a turn of its own. The same
holds for background processes that notify when they complete. Of the inside of a sub-agent, the gateway shows a preview
of each tool call and the first line of each message.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux.sdk.facts import Fact, Ignored, SubagentBegin, SubagentDone
from agent_mux_adapters._dialects.tolerant import mapping, rows, text
from agent_mux_adapters.hermes.tools import error_of
from agent_mux_adapters.hermes.usage import HermesUsage

SUBAGENT_NAME = "subagent"  # Hermes gives them no names
_COMPLETED = "completed"
_PROCESS_ENDED = frozenset({"exited", "killed", "already_exited"})
_NESTED = "a sub-agent of a sub-agent"
_REPORTED_BY_EVENTS = "reported by the events of the sub-agents"
_PREVIEW = "a preview of the inside of a sub-agent"


class HermesSubagents:
    """The sub-agents of one run; each begins once and reports once."""

    def __init__(self, usage: HermesUsage) -> None:
        self._usage = usage
        self._running: set[str] = set()

    def read_event(self, kind: str, payload: Mapping[str, Any]) -> tuple[Fact, ...] | None:
        """Return the facts of a `subagent.*` event; None when the event is unknown."""
        agent = text(payload.get("subagent_id"))
        if payload.get("parent_id") and kind != "subagent.complete":
            return (Ignored(kind, _NESTED),)
        match kind:
            case "subagent.start" if agent and agent not in self._running:
                self._running.add(agent)
                return (SubagentBegin(agent, SUBAGENT_NAME, text(payload.get("goal"))),)
            case "subagent.complete" if agent:
                return self._ended(agent, payload)
            case "subagent.start" | "subagent.complete":
                return None
            case "subagent.spawn_requested" | "subagent.tool" | "subagent.thinking" | "subagent.progress":
                return (Ignored(kind, _PREVIEW),)
        return None

    def delegation_returned(self, payload: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Return the facts of a `delegate_task` that returned: an error means that no sub-agent was started."""
        error = error_of(payload.get("result"))
        if error is None:
            return (Ignored("tool.complete", _REPORTED_BY_EVENTS),)
        call = text(payload.get("tool_id"))
        goals = goals_of(mapping(payload.get("args")))
        return SubagentBegin(call, SUBAGENT_NAME, goals), SubagentDone(call, error=error)

    def _ended(self, agent: str, payload: Mapping[str, Any]) -> tuple[Fact, ...]:
        cost = self._usage.subagent_ended(payload)
        if payload.get("parent_id"):
            return (Ignored("subagent.complete", _NESTED),)
        summary = text(payload.get("summary")) or text(payload.get("text"))
        is_begun = agent in self._running
        begin = () if is_begun else (SubagentBegin(agent, SUBAGENT_NAME, text(payload.get("goal"))),)
        status = text(payload.get("status"))
        if status == _COMPLETED:
            return *begin, SubagentDone(agent, summary, cost=cost)
        return *begin, SubagentDone(agent, error=summary or status or "the sub-agent gave no reason", cost=cost)


class BackgroundWork:
    """Background work whose end will begin a turn of its own, which a run has to wait for."""

    def __init__(self) -> None:
        self._running: set[str] = set()
        self._turns_due = 0

    def __bool__(self) -> bool:
        """Return whether such a turn is still to come."""
        return bool(self._running or self._turns_due)

    def started(self, work_id: str) -> None:
        """Add work that was started in the background."""
        self._running.add(work_id)

    def collected(self, work_id: str) -> None:
        """Drop work whose end the model has seen itself: it begins no turn."""
        self._running.discard(work_id)

    def reported(self, status: str) -> None:
        """Expect a turn for each piece of work that the status names as ended."""
        ended = {work_id for work_id in self._running if work_id in status}
        self._running -= ended
        self._turns_due += len(ended)

    def turn_started(self) -> None:
        """Count a turn that began without a prompt as the report of one piece of work."""
        if self._turns_due:
            self._turns_due -= 1
        elif self._running:
            self._running.pop()


def goals_of(arguments: Mapping[str, Any]) -> str:
    """Return the goals in the arguments of `delegate_task`, one per line: it takes one goal, or several tasks."""
    goals = [text(task.get("goal")) for task in (arguments, *rows(arguments.get("tasks")))]
    return "\n".join(goal for goal in goals if goal)


def background_id(payload: Mapping[str, Any]) -> str | None:
    """Return the id of the background work that a tool call started and that will report its end; None without any."""
    result = mapping(payload.get("result"))
    if result.get("mode") == "background":
        return text(result.get("delegation_id")) or None
    if result.get("notify_on_complete") is True:
        return text(result.get("session_id")) or None
    return None


def collected_id(payload: Mapping[str, Any]) -> str | None:
    """Return the id of the background process whose end a call of `process` returned; None without one.

    Such a process does not report its end any more.
    """
    result, arguments = mapping(payload.get("result")), mapping(payload.get("args"))
    if payload.get("name") != "process" or arguments.get("action") not in ("wait", "log", "kill"):
        return None
    return text(arguments.get("session_id")) or None if text(result.get("status")) in _PROCESS_ENDED else None
