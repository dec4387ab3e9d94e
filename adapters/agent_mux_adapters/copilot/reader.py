"""Session events as facts. Both protocols and stored sessions contain the same events."""

from collections.abc import Callable, Mapping
from typing import Any

from agent_mux.sdk.codec import CodecContext
from agent_mux.sdk.facts import Fact, Ignored
from agent_mux_adapters._dialects.tolerant import WrongShapeError, mapping, text
from agent_mux_adapters.copilot.agents import CopilotAgent, CopilotAgents
from agent_mux_adapters.copilot.approvals import CopilotApprovals, waiting_call_of
from agent_mux_adapters.copilot.notices import IGNORED, INTERNAL_COPY, read_notice
from agent_mux_adapters.copilot.outcome import CopilotTurnReader
from agent_mux_adapters.copilot.wire import DeltaData, DeltaEvent, agent_of

Data = Mapping[str, Any]
Facts = tuple[Fact, ...] | None
"""The facts of an event; None when it is unknown or has an unknown shape."""


def _fragment(kind: str) -> Callable[[CopilotAgent, Data], tuple[Fact, ...]]:
    """Return a handler of fragments that the typed decoder of the hot path did not accept."""

    def handle(agent: CopilotAgent, data: Data) -> tuple[Fact, ...]:
        fragment = data.get("deltaContent")
        if not isinstance(fragment, str):
            raise WrongShapeError("deltaContent")
        delta = DeltaData(text(data.get("messageId")), text(data.get("reasoningId")), fragment)
        return agent.delta(DeltaEvent(kind, delta))

    return handle


_AGENT_HANDLERS: Mapping[str, Callable[[CopilotAgent, Data], tuple[Fact, ...]]] = {
    "assistant.message": CopilotAgent.message_completed,
    "assistant.message_delta": _fragment("assistant.message_delta"),
    "assistant.message_start": lambda agent, _: (
        agent.messages.close() or (Ignored("assistant.message_start", "its fragments follow"),)
    ),
    "assistant.reasoning": CopilotAgent.thought_completed,
    "assistant.reasoning_delta": _fragment("assistant.reasoning_delta"),
    "assistant.tool_call_delta": CopilotAgent.input_delta,
    "assistant.turn_end": lambda agent, _: agent.step_ended(),
    "assistant.turn_retry": CopilotAgent.retrying,
    "assistant.turn_start": lambda agent, _: agent.step_started(),
    "assistant.usage": CopilotAgent.tokens_used,
    "model.call_failure": CopilotAgent.model_call_failed,
    "model.call_start": lambda agent, _: agent.model_call_started(),
    "tool.execution_start": lambda agent, data: agent.calls.begin(data, text(data.get("toolName"))),
    "tool.shell_output": lambda agent, data: agent.calls.output(data),
}
"""Events of any agent, the main one or a sub-agent."""
_OPENING_A_TURN = frozenset({"assistant.message", "assistant.turn_start", "tool.execution_start"})
"""Events of the main agent that occur only in a turn."""


class CopilotReader:
    """Reader of session events, which returns their facts."""

    def __init__(self, context: CodecContext, approvals: CopilotApprovals) -> None:
        self._cwd = context.cwd
        self._agents = CopilotAgents()
        self._approvals = approvals
        self.turns = CopilotTurnReader(self._agents, context.output_schema)
        self._main_handlers: Mapping[str, Callable[[Data], tuple[Fact, ...]]] = {
            "assistant.idle": self._idle,
            "session.compaction_complete": self.turns.compacted,
            "session.error": self.turns.failed,
            "session.idle": self._session_idle,
            "session.truncation": self.turns.truncated,
            "session.usage_info": self.turns.context_measured,
            "user.message": self.turns.prompted,
        }

    def delta(self, event: DeltaEvent) -> tuple[Fact, ...]:
        """Return the facts for a fragment of a message, a thought or an input. This is the hot path."""
        if event.agent_id is None:
            return self._agents.main.delta(event)
        return self._agents.place(event.agent_id, self._agents.get(event.agent_id).delta(event))

    def read(self, event: Mapping[str, Any]) -> Facts:
        """Return the facts for an event; None when its type or its shape is unknown."""
        kind, agent_id = text(event.get("type")), agent_of(event)
        try:
            return self._read(kind, agent_id, mapping(event.get("data")))
        except WrongShapeError:
            return None

    def finish(self) -> tuple[Fact, ...]:
        """Return the facts that were kept back, when the process has exited."""
        return self.turns.finish()

    def _read(self, kind: str, agent_id: str, data: Data) -> Facts:
        handler = _AGENT_HANDLERS.get(kind)
        if handler is not None:
            opened = self.turns.open() if not agent_id and kind in _OPENING_A_TURN else ()
            return *opened, *self._agents.place(agent_id, handler(self._agents.get(agent_id), data))
        main_handler = self._main_handlers.get(kind)
        if main_handler is not None:
            return main_handler(data) if not agent_id else (Ignored(kind, "an event of a sub-agent"),)
        notice = read_notice(kind, data)
        if notice is not None:
            return notice
        if kind in IGNORED:
            return (Ignored(kind, IGNORED[kind]),)
        return self._read_other(kind, agent_id, data)

    def _read_other(self, kind: str, agent_id: str, data: Data) -> Facts:  # noqa: PLR0911  # a table
        match kind:
            case "tool.execution_complete":
                cost = self._agents.cost_of(text(data.get("toolCallId")))
                return self._agents.place(agent_id, self._agents.get(agent_id).calls.complete(data, self._cwd, cost))
            case "subagent.started":
                return self._agents.subagent_started(agent_id, data)
            case "subagent.completed":
                return self._agents.subagent_completed(data)
            case "subagent.failed":
                return self._agents.subagent_failed(data)
            case "permission.requested":
                tool = self._agents.get(agent_id).calls.name_of(waiting_call_of(data))
                return self._approvals.permission_requested(data, tool, is_inside=bool(agent_id))
            case "permission.completed":
                return self._approvals.permission_completed(data)
            case "user_input.requested":
                self._agents.get(agent_id).calls.question_asked(text(data.get("toolCallId")))
                return (Ignored(kind, "userInput.request asks the question"),)
        if kind.startswith("model.") and data.get("kind") == kind.removeprefix("model."):
            return (Ignored(kind, INTERNAL_COPY),)
        return None

    def _idle(self, data: Data) -> tuple[Fact, ...]:
        withdrawn = self._approvals.turn_over()
        return *withdrawn, *self.turns.over(data), *self._approvals.still_waiting()

    def _session_idle(self, data: Data) -> tuple[Fact, ...]:
        """Handle `session.idle`, which closes the turn in releases without `assistant.idle`."""
        if self.turns.is_pending:
            return self._idle(data)
        return (
            Ignored("session.idle", "assistant.idle ended the turn; this reports that the background is idle, too"),
        )
