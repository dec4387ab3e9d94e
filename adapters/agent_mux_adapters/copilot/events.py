"""The session's events as facts: the same ones in both protocols."""

from collections.abc import Callable, Mapping
from typing import Any

from agent_mux.adapter import CodecContext
from agent_mux.facts import Fact, Ignored
from agent_mux_adapters._dialects.tolerant import WrongShapeError, mapping, text
from agent_mux_adapters.copilot.agent import Agent
from agent_mux_adapters.copilot.agents import Agents
from agent_mux_adapters.copilot.notices import NOTICES, notice
from agent_mux_adapters.copilot.permissions import waiting_call
from agent_mux_adapters.copilot.requests import Requests
from agent_mux_adapters.copilot.silent import COPY, SILENT
from agent_mux_adapters.copilot.turns import Turns
from agent_mux_adapters.copilot.wire import DeltaData, DeltaEvent, agent_of

Data = Mapping[str, Any]
Told = tuple[Fact, ...] | None


def _fragment(kind: str) -> Callable[[Agent, Data], tuple[Fact, ...]]:
    """A fragment that did not fit the typed decode of the hot path."""

    def tell(agent: Agent, data: Data) -> tuple[Fact, ...]:
        fragment = data.get("deltaContent")
        if not isinstance(fragment, str):
            raise WrongShapeError("deltaContent")
        found = DeltaData(text(data.get("messageId")), text(data.get("reasoningId")), fragment)
        return agent.delta(DeltaEvent(kind, found))

    return tell


_WORK: Mapping[str, Callable[[Agent, Data], tuple[Fact, ...]]] = {
    "assistant.message": Agent.message,
    "assistant.message_delta": _fragment("assistant.message_delta"),
    "assistant.message_start": lambda agent, _: (
        agent.prose.pause() or (Ignored("assistant.message_start", "its fragments follow"),)
    ),
    "assistant.reasoning": Agent.thought,
    "assistant.reasoning_delta": _fragment("assistant.reasoning_delta"),
    "assistant.tool_call_delta": Agent.input,
    "assistant.turn_end": lambda agent, _: agent.step_over(),
    "assistant.turn_retry": Agent.retries,
    "assistant.turn_start": lambda agent, _: agent.step_begins(),
    "assistant.usage": Agent.used,
    "model.call_failure": Agent.call_failed,
    "model.call_start": lambda agent, _: agent.call_begins(),
    "tool.execution_start": lambda agent, data: agent.calls.requested(data, text(data.get("toolName"))),
    "tool.shell_output": lambda agent, data: agent.calls.output(data),
}
"""What an agent does."""
_OPENING = frozenset({"assistant.message", "assistant.turn_start", "tool.execution_start"})
"""What the main agent does only in a turn."""


class SessionEvents:
    """Turns events into facts."""

    def __init__(self, context: CodecContext, requests: Requests) -> None:
        self._cwd = context.cwd
        self._agents = Agents()
        self._requests = requests
        self.turns = Turns(self._agents, context.output_schema)
        self._of_main: Mapping[str, Callable[[Data], tuple[Fact, ...]]] = {
            "assistant.idle": self._idle,
            "session.compaction_complete": self.turns.compacted,
            "session.error": self.turns.failed,
            "session.truncation": self.turns.truncated,
            "session.usage_info": self.turns.context,
            "user.message": self.turns.prompted,
        }

    def delta(self, event: DeltaEvent) -> tuple[Fact, ...]:
        """A fragment of a message, a thought or an input: the hot path."""
        if event.agent_id is None:
            return self._agents.main.delta(event)
        return self._agents.tell(event.agent_id, self._agents.get(event.agent_id).delta(event))

    def tell(self, event: Mapping[str, Any]) -> Told:
        """Any event. None when it is not known, or does not have its known shape."""
        kind, agent_id = text(event.get("type")), agent_of(event)
        try:
            return self._tell(kind, agent_id, mapping(event.get("data")))
        except WrongShapeError:
            return None

    def finish(self) -> tuple[Fact, ...]:
        """The process is gone."""
        return self.turns.finish()

    def _tell(self, kind: str, agent_id: str, data: Data) -> Told:
        work = _WORK.get(kind)
        if work is not None:
            held = self.turns.begins() if not agent_id and kind in _OPENING else ()
            return *held, *self._agents.tell(agent_id, work(self._agents.get(agent_id), data))
        about_main = self._of_main.get(kind)
        if about_main is not None:
            return about_main(data) if not agent_id else (Ignored(kind, "inside of a sub-agent"),)
        if kind in NOTICES:
            return notice(kind, data)
        if kind in SILENT:
            return (Ignored(kind, SILENT[kind]),)
        return self._others(kind, agent_id, data)

    def _others(self, kind: str, agent_id: str, data: Data) -> Told:  # noqa: PLR0911  # a table
        match kind:
            case "tool.execution_complete":
                cost = self._agents.cost_of(text(data.get("toolCallId")))
                return self._agents.tell(agent_id, self._agents.get(agent_id).calls.completed(data, self._cwd, cost))
            case "subagent.started":
                return self._agents.started(agent_id, data)
            case "subagent.completed":
                return self._agents.completed(data)
            case "subagent.failed":
                return self._agents.failed(data)
            case "permission.requested":
                tool = self._agents.get(agent_id).calls.name_of(waiting_call(data))
                return self._requests.permission_requested(data, tool, is_inside=bool(agent_id))
            case "permission.completed":
                return self._requests.permission_completed(data)
            case "user_input.requested":
                self._agents.get(agent_id).calls.asked(text(data.get("toolCallId")))
                return (Ignored(kind, "userInput.request asks the question"),)
        if kind.startswith("model.") and data.get("kind") == kind.removeprefix("model."):
            return (Ignored(kind, COPY),)
        return None

    def _idle(self, data: Data) -> tuple[Fact, ...]:
        withdrawn = self._requests.turn_over()
        return *withdrawn, *self.turns.over(data), *self._requests.still_waiting()
