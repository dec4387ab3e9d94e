"""Sub-agents. `delegate_task` starts them in the background and returns; their report begins a turn of its own.

Of what happens inside of them, the gateway shows a preview of each tool call and the first line of what they say.
"""

from collections.abc import Mapping
from typing import Any

from agent_mux.facts import Fact, Ignored, SubagentBegin, SubagentDone
from agent_mux_adapters._dialects.tolerant import mapping, rows, text
from agent_mux_adapters.hermes.calls import error_of
from agent_mux_adapters.hermes.meter import Meter

NAME = "subagent"  # they have no names
COMPLETED = "completed"
_OVER = frozenset({"exited", "killed", "already_exited"})
_BY_THEMSELVES = "the sub-agents tell of themselves"
_INSIDE = "a preview of what happens inside of a sub-agent"


class Delegation:
    """The sub-agents of one run, each begun once and reported once."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._running: set[str] = set()

    def told(self, kind: str, payload: Mapping[str, Any]) -> tuple[Fact, ...] | None:
        """`subagent.*`; None when it is not known."""
        agent = text(payload.get("subagent_id"))
        if payload.get("parent_id") and kind != "subagent.complete":
            return (Ignored(kind, "a sub-agent of a sub-agent"),)
        match kind:
            case "subagent.start" if agent and agent not in self._running:
                self._running.add(agent)
                return (SubagentBegin(agent, NAME, text(payload.get("goal"))),)
            case "subagent.complete" if agent:
                return self._over(agent, payload)
            case "subagent.start" | "subagent.complete":
                return None
            case "subagent.spawn_requested" | "subagent.tool" | "subagent.thinking" | "subagent.progress":
                return (Ignored(kind, _INSIDE),)
        return None

    def called(self, payload: Mapping[str, Any]) -> tuple[Fact, ...]:
        """`delegate_task` returned: an error means that nobody was started."""
        error = error_of(payload.get("result"))
        if error is None:
            return (Ignored("tool.complete", _BY_THEMSELVES),)
        call = text(payload.get("tool_id"))
        return SubagentBegin(call, NAME, goals_of(mapping(payload.get("args")))), SubagentDone(call, error=error)

    def _over(self, agent: str, payload: Mapping[str, Any]) -> tuple[Fact, ...]:
        cost = self._meter.subagent_over(payload)
        if payload.get("parent_id"):
            return (Ignored("subagent.complete", "a sub-agent of a sub-agent"),)
        summary = text(payload.get("summary")) or text(payload.get("text"))
        begun = () if agent in self._running else (SubagentBegin(agent, NAME, text(payload.get("goal"))),)
        status = text(payload.get("status"))
        if status == COMPLETED:
            return *begun, SubagentDone(agent, summary, cost=cost)
        return *begun, SubagentDone(agent, error=summary or status or "the sub-agent did not say why", cost=cost)


def goals_of(arguments: Mapping[str, Any]) -> str:
    """What `delegate_task` is asked: one goal, or several."""
    goals = [text(task.get("goal")) for task in (arguments, *rows(arguments.get("tasks")))]
    return "\n".join(goal for goal in goals if goal)


def background_id(payload: Mapping[str, Any]) -> str | None:
    """What was started in the background and will report by itself; None when nothing was."""
    result = mapping(payload.get("result"))
    if result.get("mode") == "background":
        return text(result.get("delegation_id")) or None
    if result.get("notify_on_complete") is True:
        return text(result.get("session_id")) or None
    return None


def collected_id(payload: Mapping[str, Any]) -> str | None:
    """The background process whose end the model saw by itself, or brought about: it will not report any more."""
    result, arguments = mapping(payload.get("result")), mapping(payload.get("args"))
    if payload.get("name") != "process" or arguments.get("action") not in ("wait", "log", "kill"):
        return None
    return text(arguments.get("session_id")) or None if result.get("status") in _OVER else None
