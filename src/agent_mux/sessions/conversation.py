"""A stored session as a conversation: prompts, answers, thinking, tool calls and their results."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from agent_mux.sdk import facts
from agent_mux.sdk.models import Price
from agent_mux.sdk.sessions import ModelCalled, PromptSent, SessionEntry, SessionReader
from agent_mux.sessions.summary import SessionSummary, Summarizer

Role = Literal["user", "assistant"]


class ToolUse(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True):
    """One tool call and its result."""

    id: str
    name: Annotated[str, Meta(description="The tool's name; `<server>/<tool>` for a tool of an MCP server.")]
    input: Any = None
    output: Any = None
    error: Annotated[
        str | None, Meta(description="Why the call failed. A call with neither output nor error never got a result.")
    ] = None
    duration_ms: int | None = None


class SessionMessage(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True):
    """A prompt, or the text, thinking and tool calls of one model call."""

    role: Role
    at: Annotated[int | None, Meta(description="Milliseconds since the epoch.")] = None
    text: str = ""
    thinking: str = ""
    tools: list[ToolUse] = []
    model: str | None = None
    error: Annotated[str | None, Meta(description="Why the turn failed, as the agent reported it.")] = None
    turn: Annotated[int, Meta(description="Zero-based index of the prompt to which the message belongs.")] = 0


class Session(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A stored session with all its messages."""

    summary: SessionSummary
    """Identity, origin, size and cost."""
    messages: list[SessionMessage]
    """Prompts and answers, in order."""


class ConversationBuilder:
    """Collects the messages of a session, and its summary, while it is read."""

    def __init__(self, prices: Mapping[str, Price]) -> None:
        self.summarizer = Summarizer(prices)
        self.messages: list[SessionMessage] = []
        self._open_tools: dict[str, ToolUse] = {}
        self._turn = -1
        self._at: int | None = None
        self._next_model: str | None = None
        """The model of the call whose message has not begun."""
        self._is_complete = True
        """Whether the last message is complete, so that further content begins another one."""
        self._handlers: dict[type, Callable[[Any], None]] = {
            PromptSent: self._add_prompt,
            ModelCalled: self._set_model,
            facts.StepBegin: self._begin_step,
            facts.WholeText: self._add_text,
            facts.WholeThinking: self._add_thinking,
            facts.ToolReady: lambda fact: self._begin_tool(fact.call_id, fact.name, fact.input),
            facts.McpBegin: lambda fact: self._begin_tool(fact.call_id, f"{fact.server}/{fact.tool}", fact.input),
            facts.SubagentBegin: lambda fact: self._begin_tool(fact.subagent_id, fact.name, {"prompt": fact.prompt}),
            facts.ToolDone: lambda fact: self._end_tool(fact.call_id, fact.output, fact.error, fact.duration_ms),
            facts.TurnFailed: self._set_error,
            facts.McpDone: lambda fact: self._end_tool(fact.call_id, fact.output, fact.error),
            facts.SubagentDone: lambda fact: self._end_tool(fact.subagent_id, fact.summary, fact.error),
        }

    def read(self, cursor: SessionReader) -> None:
        """Read all entries that the cursor yields."""
        for entry in cursor.read():
            self.receive(entry)

    def receive(self, entry: SessionEntry) -> None:
        """Process one entry; entries must arrive in stored order."""
        self.summarizer.receive(entry)
        self._at = entry.at
        handler = self._handlers.get(entry.fact.__class__)
        if handler is not None:
            handler(entry.fact)

    def _add_prompt(self, fact: PromptSent) -> None:
        self._turn += 1
        self.messages.append(SessionMessage(role="user", at=self._at, text=fact.text, turn=self._turn))
        self._is_complete = True

    def _begin_step(self, _: facts.StepBegin) -> None:
        self._is_complete = True

    def _answer(self) -> SessionMessage:
        if self._is_complete:
            self._is_complete = False
            model, self._next_model = self._next_model, None
            self.messages.append(SessionMessage(role="assistant", at=self._at, turn=max(self._turn, 0), model=model))
        return self.messages[-1]

    def _add_text(self, fact: facts.WholeText) -> None:
        message = self._answer()
        message.text = f"{message.text}\n\n{fact.text}" if message.text else fact.text

    def _add_thinking(self, fact: facts.WholeThinking) -> None:
        message = self._answer()
        message.thinking = f"{message.thinking}\n\n{fact.text}" if message.thinking else fact.text

    def _set_error(self, fact: facts.TurnFailed) -> None:
        self._answer().error = fact.failure.message

    def _set_model(self, fact: ModelCalled) -> None:
        # Depending on the agent, the model is stored before or after the content of the call.
        if fact.is_inside:
            return
        if not self._is_complete:
            self.messages[-1].model = fact.model or None
        else:
            self._next_model = fact.model or None

    def _begin_tool(self, call_id: str, name: str, arguments: Any) -> None:
        use = self._open_tools[call_id] = ToolUse(id=call_id, name=name, input=arguments)
        self._answer().tools.append(use)

    def _end_tool(self, call_id: str, output: Any, error: str | None, duration_ms: int | None = None) -> None:
        use = self._open_tools.pop(call_id, None)
        if use is not None:
            use.output, use.error, use.duration_ms = output, error, duration_ms
