"""One agent, the main one or a sub-agent: what it says, thinks, calls and uses."""

from collections.abc import Mapping
from typing import Any

from agent_mux.facts import Fact, Ignored, RateLimited, Retrying, StepBegin, StepDone
from agent_mux_adapters._dialects.tolerant import need_text, rows, text
from agent_mux_adapters.copilot.calls import Calls
from agent_mux_adapters.copilot.delegation import Delegation
from agent_mux_adapters.copilot.failures import reason_of
from agent_mux_adapters.copilot.meter import Tokens, tokens_of
from agent_mux_adapters.copilot.prose import Prose
from agent_mux_adapters.copilot.wire import DeltaEvent

_RATE_LIMIT = "rate_limit"
_TOLD_WHOLE = Ignored("assistant.tool_call_delta", "the call is told when its input is complete")


class Agent:
    """What is known of an agent while its events come in."""

    def __init__(self, delegation: Delegation) -> None:
        self.prose = Prose()
        self.calls = Calls(delegation)
        self.answer = ""
        """Its last message."""
        self.spent = Tokens()
        """In this run."""
        self.spent_in_turn = Tokens()
        self._retries = 0
        self._why = ""
        """Why the last model call failed."""

    # -- model calls

    def step_begins(self) -> tuple[Fact, ...]:
        """`assistant.turn_start`: what Copilot calls a turn is a model call and its tools."""
        self._retries = 0
        self.prose.call_begins()
        return *self.prose.pause(), StepBegin()

    def step_over(self) -> tuple[Fact, ...]:
        """`assistant.turn_end`. A call without a result keeps its step open: it was cut off."""
        if self.calls.any_open:
            return (*self.prose.pause(),) or (Ignored("assistant.turn_end", "a call of this step has no result"),)
        return *self.prose.pause(), StepDone()

    def call_begins(self) -> tuple[Fact, ...]:
        """`model.call_start`: for the first time in a step, or again."""
        self.prose.call_begins()
        return (Ignored("model.call_start", "the step is told by assistant.turn_start"),)

    def call_failed(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """`model.call_failure`: it is tried again, or the turn fails."""
        self._why = reason_of(data)
        return (Ignored("model.call_failure", "what follows says whether it is tried again"),)

    def retries(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """`assistant.turn_retry`: what was half-said is said anew."""
        self._retries += 1
        self.prose.abandon()
        reason = text(data.get("reason"))
        limited = (RateLimited(),) if reason == _RATE_LIMIT else ()
        return *limited, Retrying(self._retries, 0, self._why or reason or "the model call failed")

    def used(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """`assistant.usage`, or the model call of a compaction."""
        tokens = tokens_of(data)
        self.spent += tokens
        self.spent_in_turn += tokens
        if tokens == Tokens():
            return (Ignored("assistant.usage", "no tokens were used"),)
        return (tokens.usage,)

    # -- what it says

    def delta(self, event: DeltaEvent) -> tuple[Fact, ...]:
        """A fragment."""
        data = event.data
        match event.type:
            case "assistant.message_delta":
                return self.prose.say(data.message_id or "message", data.delta_content)
            case "assistant.reasoning_delta":
                return self.prose.think(data.reasoning_id or "thought", data.delta_content)
            case "assistant.tool_call_delta" if data.tool_call_id:
                return self._input(data.tool_call_id, data.tool_name, data.input_delta)
        return (Ignored(event.type, "a byte count, or a fragment of nothing"),)

    def message(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """`assistant.message`: the whole message, and the calls that it makes."""
        content = text(data.get("content"))
        self.answer = content or self.answer
        said = self.prose.message_done(need_text(data, "messageId"), content, text(data.get("reasoningText")))
        requests = rows(data.get("toolRequests"))
        calls = [self.calls.requested(row, text(row.get("name"))) for row in requests if text(row.get("toolCallId"))]
        nothing = Ignored("assistant.message", "all of it was streamed")
        return (*said, *(fact for facts in calls for fact in facts)) or (nothing,)

    def thought(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """`assistant.reasoning`: the whole thought."""
        return self.prose.thought_done(need_text(data, "reasoningId"), text(data.get("content")))

    def input(self, data: Mapping[str, Any]) -> tuple[Fact, ...]:
        """`assistant.tool_call_delta`."""
        return self._input(need_text(data, "toolCallId"), text(data.get("toolName")), text(data.get("inputDelta")))

    def turn_over(self) -> tuple[Fact, ...]:
        """It handed back."""
        self.calls.turn_over()
        self.spent_in_turn = Tokens()
        return self.prose.pause()

    # -- inside

    def _input(self, call_id: str, name: str, fragment: str) -> tuple[Fact, ...]:
        return (*self.prose.pause(), *self.calls.input(call_id, name, fragment)) or (_TOLD_WHOLE,)
