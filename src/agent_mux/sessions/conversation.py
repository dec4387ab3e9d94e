"""A session as a conversation: prompts, answers, thoughts, tool calls and what came of them."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from agent_mux.sdk import facts
from agent_mux.sdk.models import Price
from agent_mux.sdk.sessions import Cursor, Entry, ModelCalled, Prompted
from agent_mux.sessions.summary import SessionSummary, Summarizer

Role = Literal["user", "assistant"]


class ToolUse(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True):
    """One call of a tool."""

    id: str
    name: str
    """Of a tool of an MCP server: `<server>/<tool>`."""
    input: Any = None
    output: Any = None
    error: str | None = None
    """Why it failed. With no output and no error nothing came of it: it was never answered."""
    duration_ms: int | None = None


class SessionMessage(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True):
    """A prompt, or what one model call said and did."""

    role: Role
    at: int | None = None
    """Milliseconds since the epoch."""
    text: str = ""
    thinking: str = ""
    tools: list[ToolUse] = []
    model: str | None = None
    error: str | None = None
    """Why the turn failed, in the words of the agent."""
    turn: int = 0
    """Zero-based: which prompt it belongs to."""


class Session(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A stored session, whole."""

    summary: SessionSummary
    messages: list[SessionMessage]


class Conversation:
    """Collects the messages of a session as it is read."""

    def __init__(self, prices: Mapping[str, Price]) -> None:
        self.summarizer = Summarizer(prices)
        self.messages: list[SessionMessage] = []
        self._open: dict[str, ToolUse] = {}
        self._turn = -1
        self._at: int | None = None
        self._model: str | None = None
        """Of the call whose message is not begun yet."""
        self._is_complete = True
        """The next thing that is said begins another message."""
        self._handlers: dict[type, Callable[[Any], None]] = {
            Prompted: self._prompted,
            ModelCalled: self._called,
            facts.StepBegin: self._step,
            facts.Text: self._text,
            facts.Thinking: self._thinking,
            facts.ToolReady: lambda fact: self._tool(fact.call_id, fact.name, fact.input),
            facts.McpBegin: lambda fact: self._tool(fact.call_id, f"{fact.server}/{fact.tool}", fact.input),
            facts.SubagentBegin: lambda fact: self._tool(fact.subagent_id, fact.name, {"prompt": fact.prompt}),
            facts.ToolDone: self._tool_done,
            facts.TurnFailed: self._failed,
            facts.McpDone: lambda fact: self._done(fact.call_id, fact.output, fact.error),
            facts.SubagentDone: lambda fact: self._done(fact.subagent_id, fact.summary, fact.error),
        }

    def read(self, cursor: Cursor) -> None:
        """All that there is."""
        for entry in cursor.read():
            self.take(entry)

    def take(self, entry: Entry) -> None:
        """One more entry."""
        self.summarizer.take(entry)
        self._at = entry.at
        handler = self._handlers.get(entry.fact.__class__)
        if handler is not None:
            handler(entry.fact)

    def _prompted(self, fact: Prompted) -> None:
        self._turn += 1
        self.messages.append(SessionMessage(role="user", at=self._at, text=fact.text, turn=self._turn))
        self._is_complete = True

    def _step(self, _: facts.StepBegin) -> None:
        self._is_complete = True

    def _message(self) -> SessionMessage:
        if self._is_complete:
            self._is_complete = False
            model, self._model = self._model, None
            self.messages.append(SessionMessage(role="assistant", at=self._at, turn=max(self._turn, 0), model=model))
        return self.messages[-1]

    def _text(self, fact: facts.Text) -> None:
        message = self._message()
        message.text = f"{message.text}\n\n{fact.text}" if message.text else fact.text

    def _thinking(self, fact: facts.Thinking) -> None:
        message = self._message()
        message.thinking = f"{message.thinking}\n\n{fact.text}" if message.thinking else fact.text

    def _failed(self, fact: facts.TurnFailed) -> None:
        self._message().error = fact.failure.message

    def _called(self, fact: ModelCalled) -> None:
        """Told before or after what the call said, as the agent stores it."""
        if fact.is_inside:
            return
        if not self._is_complete:
            self.messages[-1].model = fact.model or None
        else:
            self._model = fact.model or None

    def _tool(self, call_id: str, name: str, arguments: Any) -> None:
        use = self._open[call_id] = ToolUse(id=call_id, name=name, input=arguments)
        self._message().tools.append(use)

    def _tool_done(self, fact: facts.ToolDone) -> None:
        self._done(fact.call_id, fact.output, fact.error, fact.duration_ms)

    def _done(self, call_id: str, output: Any, error: str | None, duration_ms: int | None = None) -> None:
        use = self._open.pop(call_id, None)
        if use is not None:
            use.output, use.error, use.duration_ms = output, error, duration_ms
