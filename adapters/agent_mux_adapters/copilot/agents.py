"""The main agent and its sub-agents: their model calls, messages, tool calls and tokens. They share one stream."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from agent_mux.events.base import CostRecord
from agent_mux.sdk.facts import (
    Fact,
    Ignored,
    InSubagent,
    McpBegin,
    McpDone,
    RateLimited,
    Retrying,
    StepBegin,
    StepDone,
    SubagentBegin,
    SubagentDone,
    TextDelta,
    TextEnd,
    ThinkingDelta,
    ThinkingEnd,
    ToolBegin,
    ToolDone,
    ToolInput,
    ToolOutput,
    ToolReady,
    WholeText,
    WholeThinking,
)
from agent_mux_adapters._dialects.tolerant import mapping, need_text, rows, text
from agent_mux_adapters.copilot.messages import CopilotMessages
from agent_mux_adapters.copilot.subagents import CopilotSubagents
from agent_mux_adapters.copilot.tools import CopilotToolCalls
from agent_mux_adapters.copilot.usage import CopilotTokens, tokens_of
from agent_mux_adapters.copilot.wire import DeltaEvent

_RATE_LIMIT = "rate_limit"
_INPUT_NOT_STREAMED = Ignored("assistant.tool_call_delta", "shown when the input is complete")
_FACTS_INSIDE = (
    McpBegin, McpDone, WholeText, TextDelta, TextEnd, WholeThinking, ThinkingDelta, ThinkingEnd, ToolBegin, ToolDone,
    ToolInput, ToolOutput, ToolReady,
)  # fmt: skip
"""The facts of a sub-agent that are shown, nested in it."""
_FACTS_OF_THE_RUN = (SubagentBegin, SubagentDone)
"""Facts that are never nested: sub-agents of a sub-agent belong to the run."""
_HIDDEN = "only the content of sub-agents is shown"


class CopilotAgent:
    """One agent, the main one or a sub-agent."""

    def __init__(self, subagents: CopilotSubagents) -> None:
        self.messages = CopilotMessages()
        self.calls = CopilotToolCalls(subagents)
        self.last_message = ""
        self.finish_reason = ""
        """Why the last answer of the model ended, in the provider's terms; empty until it is reported."""
        self.spent = CopilotTokens()
        """The tokens of this run."""
        self.spent_in_turn = CopilotTokens()
        self._retries = 0
        self._failure_reason = ""
        """Why the last model call failed."""

    # -- model calls

    def step_started(self) -> tuple[Fact, ...]:
        """Handle `assistant.turn_start`: a "turn" of Copilot is a model call and its tool calls, which is our step."""
        self._retries = 0
        self.messages.begin_model_call()
        return *self.messages.close(), StepBegin()

    def step_ended(self) -> tuple[Fact, ...]:
        """Handle `assistant.turn_end`. A tool call without a result was cut off, and keeps its step open."""
        if self.calls.any_open:
            return (*self.messages.close(),) or (Ignored("assistant.turn_end", "a call of this step has no result"),)
        return *self.messages.close(), StepDone()

    def model_call_started(self) -> tuple[Fact, ...]:
        """Handle `model.call_start`: the first call of a step, or a retry."""
        self.messages.begin_model_call()
        return (Ignored("model.call_start", "assistant.turn_start begins the step"),)

    def model_call_failed(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Handle `model.call_failure`: a retry or the failure of the turn will follow."""
        self._failure_reason = _failure_reason_of(data)
        return (Ignored("model.call_failure", "a retry or the end of the turn follows"),)

    def retrying(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Handle `assistant.turn_retry`: the model repeats what it had streamed of its answer."""
        self._retries += 1
        self.messages.abandon()
        reason = text(data.get("reason"))
        limited = (RateLimited(),) if reason == _RATE_LIMIT else ()
        return *limited, Retrying(self._retries, 0, self._failure_reason or reason or "the model call failed")

    def tokens_used(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Handle `assistant.usage`, or the tokens of a compaction."""
        self.finish_reason = text(data.get("finishReason")) or self.finish_reason
        tokens = tokens_of(data)
        self.spent += tokens
        self.spent_in_turn += tokens
        if tokens == CopilotTokens():
            return (Ignored("assistant.usage", "no tokens were used"),)
        return (tokens.usage,)

    # -- messages, thoughts and tool calls

    def delta(self, event: DeltaEvent) -> tuple[Fact, ...]:
        """Return the facts for a fragment of a message, a thought, or the input of a call."""
        data = event.data
        match event.type:
            case "assistant.message_delta":
                return self.messages.message_delta(data.message_id or "message", data.delta_content)
            case "assistant.reasoning_delta":
                return self.messages.thought_delta(data.reasoning_id or "thought", data.delta_content)
            case "assistant.tool_call_delta" if data.tool_call_id:
                return self._input_delta(data.tool_call_id, data.tool_name, data.input_delta)
        return (Ignored(event.type, "a byte count, or a fragment of nothing"),)

    def message_completed(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Handle `assistant.message`: return the part that was not streamed, and the tool calls of the message."""
        content = text(data.get("content"))
        self.last_message = content or self.last_message
        facts = self.messages.complete_message(need_text(data, "messageId"), content, text(data.get("reasoningText")))
        requests = rows(data.get("toolRequests"))
        calls = [self.calls.begin(row, text(row.get("name"))) for row in requests if text(row.get("toolCallId"))]
        nothing = Ignored("assistant.message", "all of it was streamed")
        return (*facts, *(fact for call in calls for fact in call)) or (nothing,)

    def thought_completed(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Handle `assistant.reasoning`: return the part that was not streamed."""
        return self.messages.complete_thought(need_text(data, "reasoningId"), text(data.get("content")))

    def input_delta(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Handle an `assistant.tool_call_delta` that the typed decoder did not accept."""
        return self._input_delta(
            need_text(data, "toolCallId"), text(data.get("toolName")), text(data.get("inputDelta"))
        )

    def turn_over(self) -> tuple[Fact, ...]:
        """Close the open message, and reset what belongs to the turn."""
        self.calls.turn_over()
        self.spent_in_turn = CopilotTokens()
        return self.messages.close()

    def _input_delta(self, call_id: str, name: str, fragment: str) -> tuple[Fact, ...]:
        facts = (*self.messages.close(), *self.calls.input_delta(call_id, name, fragment))
        return facts or (_INPUT_NOT_STREAMED,)


def _failure_reason_of(data: Mapping[str, Any]) -> str:
    """Return the message in a `model.call_failure`, from the provider's error: JSON in a string, or plain text."""
    raw = text(data.get("errorMessage"))
    try:
        error = msgspec.json.decode(raw.encode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return raw
    return text(error) or text(mapping(error).get("message")) or raw


class CopilotAgents:
    """All agents of one run, and the nesting of the facts of sub-agents."""

    def __init__(self) -> None:
        self.subagents = CopilotSubagents()
        self.main = CopilotAgent(self.subagents)
        self._inner: dict[str, CopilotAgent] = {}
        """The sub-agents, by the id of the call that started them."""

    def get(self, agent_id: str) -> CopilotAgent:
        """Return the agent with this id, new if needed. An empty id is the main agent's."""
        if not agent_id:
            return self.main
        call_id = self.subagents.call_of(agent_id)
        agent = self._inner.get(call_id)
        if agent is None:
            agent = self._inner[call_id] = CopilotAgent(self.subagents)
        return agent

    def place(self, agent_id: str, facts: Iterable[Fact]) -> tuple[Fact, ...]:
        """Return the facts of an agent as facts of the run: those of a sub-agent nested in it."""
        if not agent_id:
            return tuple(facts)
        call_id = self.subagents.call_of(agent_id)
        placed = tuple(InSubagent(call_id, fact) if isinstance(fact, _FACTS_INSIDE) else fact for fact in facts)
        shown = tuple(fact for fact in placed if isinstance(fact, (InSubagent, *_FACTS_OF_THE_RUN)))
        return shown or tuple(fact for fact in placed if isinstance(fact, Ignored)) or (Ignored("sub-agent", _HIDDEN),)

    def subagent_started(self, agent_id: str, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Handle `subagent.started`: return the begin of the sub-agent."""
        return self.subagents.started(agent_id, data)

    def subagent_completed(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Handle `subagent.completed`: return the report with the sub-agent's last message and cost."""
        agent = self.get(text(data.get("toolCallId")))
        return self.subagents.completed(data, agent.last_message, agent.spent.cost)

    def subagent_failed(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """Handle `subagent.failed`: return the report with the error and the sub-agent's cost."""
        return self.subagents.failed(data, self.cost_of(text(data.get("toolCallId"))))

    def cost_of(self, call_id: str) -> CostRecord | None:
        """Return the cost of the sub-agent of this call; None when it is unknown or used no tokens."""
        agent = self._inner.get(call_id)
        return None if agent is None else agent.spent.cost

    @property
    def cost(self) -> CostRecord | None:
        """The cost of all agents in this run; None when they used no tokens."""
        total = self.main.spent
        for agent in self._inner.values():
            total += agent.spent
        return total.cost if total != CopilotTokens() else None
