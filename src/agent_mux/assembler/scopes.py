"""The content of a turn, for the main agent and for each visible sub-agent; the sub-agent events themselves.

See docs/spec/events.md, section 13.
"""

from collections.abc import Callable
from typing import Any

from agent_mux.assembler.costs import sanitize_cost
from agent_mux.assembler.emitter import Emitter, StreamContext
from agent_mux.assembler.masks import Masks
from agent_mux.assembler.messages import MessageAssembler
from agent_mux.assembler.tools import UNFINISHED, ToolCallAssembler
from agent_mux.events.tools import SubagentErrorEvent, SubagentResultEvent, SubagentSpawnEvent
from agent_mux.sdk import facts

NEVER_REPORTED = "no result: the run ended before the sub-agent reported"


class AgentScope:
    """The messages and tool calls of one agent. The main stream and each visible sub-agent have one scope."""

    __slots__ = ("_handlers", "messages", "tools")

    def __init__(
        self, emitter: Emitter, context: StreamContext, masks: Masks, used_ids: set[str], subagent: str | None = None
    ) -> None:
        self.messages = MessageAssembler(emitter, masks, buffered=context.buffered, subagent=subagent)
        self.tools = ToolCallAssembler(emitter, context, masks, used_ids, subagent)
        self._handlers = self._make_handlers()

    def receive(self, fact: facts.Fact) -> None:
        """Emit the events of one fact about the content of a turn; ignore other facts."""
        handler = self._handlers.get(fact.__class__)
        if handler is not None:
            handler(fact)

    def _make_handlers(self) -> dict[type, Callable[[Any], None]]:
        messages, tools = self.messages, self.tools
        return {
            facts.TextDelta: lambda fact: messages.add_text(fact.text) if fact.text else None,
            facts.TextEnd: lambda _: messages.end_message(),
            facts.WholeText: lambda fact: self._add_whole_message(fact.text),
            facts.ThinkingDelta: lambda fact: messages.add_thinking(fact.text, fact.effort) if fact.text else None,
            facts.ThinkingEnd: lambda _: messages.end_thinking(),
            facts.WholeThinking: lambda fact: self._add_whole_thinking(fact.text, fact.effort),
            facts.ToolBegin: lambda fact: tools.begin(fact.call_id, fact.name),
            facts.ToolInput: lambda fact: tools.add_input(fact.call_id, fact.delta),
            facts.ToolReady: tools.make_ready,
            facts.ToolOutput: tools.add_output,
            facts.ToolDone: tools.end,
            facts.CommandBegan: tools.commands.begin,
            facts.CommandOutput: tools.commands.add_output,
            facts.CommandEnded: tools.commands.end,
            facts.FileTouched: lambda fact: tools.touch_file(fact.effect),
            facts.McpBegin: tools.begin_mcp,
            facts.McpDone: tools.end_mcp,
        }

    def abandon(self, reason: str) -> None:
        """Close what an abandoned model call left incomplete: its message and its tool inputs."""
        self.messages.close(abandoned=True)
        self.tools.abandon_inputs(reason)

    def flush(self) -> None:
        """Emit everything that is held back as the possible beginning of a secret."""
        self.messages.flush()
        self.tools.flush()

    def close(self, reason: str = UNFINISHED) -> None:
        """Close everything that is open."""
        self.messages.close()
        self.tools.close(reason)

    def _add_whole_message(self, text: str) -> None:
        if text:
            self.messages.end_message()
            self.messages.add_text(text)
            self.messages.end_message()

    def _add_whole_thinking(self, text: str, effort: str | None) -> None:
        if text:
            self.messages.end_thinking()
            self.messages.add_thinking(text, effort)
            self.messages.end_thinking()


class SubagentAssembler:
    """Emits the sub-agent events of a run and keeps the scopes of the open sub-agents, if these are shown.

    A delegation may span several turns.
    """

    def __init__(self, emitter: Emitter, context: StreamContext, masks: Masks, used_ids: set[str]) -> None:
        self._emitter = emitter
        self._context = context
        self._masks = masks
        self._used_ids = used_ids
        self._names: dict[str, str] = {}
        self._scopes: dict[str, AgentScope] = {}
        self._used: set[str] = set()

    @property
    def any_open(self) -> bool:
        """Whether at least one sub-agent has not reported."""
        return bool(self._names)

    def is_new(self, subagent_id: str) -> bool:
        """Return whether no sub-agent of the run has had this id."""
        return subagent_id not in self._used

    def is_open(self, subagent_id: str) -> bool:
        """Return whether this sub-agent has started and not reported."""
        return subagent_id in self._names

    def begin(self, fact: facts.SubagentBegin) -> None:
        """Start a sub-agent, and its scope if its inside is shown."""
        self._used.add(fact.subagent_id)
        self._names[fact.subagent_id] = fact.name
        if self._context.include_subagent_events:
            scope = AgentScope(self._emitter, self._context, self._masks, self._used_ids, fact.subagent_id)
            self._scopes[fact.subagent_id] = scope
        self._emitter.emit(SubagentSpawnEvent, fact.subagent_id, fact.name, fact.prompt)

    def receive(self, fact: facts.InSubagent) -> None:
        """Emit the events of a fact inside a sub-agent; ignore it if the inside is not shown."""
        scope = self._scopes.get(fact.subagent_id)
        if scope is not None:
            scope.receive(fact.fact)

    def flush(self) -> None:
        """Emit what is held back inside of the sub-agents."""
        for scope in self._scopes.values():
            scope.flush()

    def end(self, fact: facts.SubagentDone) -> None:
        """End an open sub-agent with its report or its error."""
        name = self._names.pop(fact.subagent_id)
        scope = self._scopes.pop(fact.subagent_id, None)
        if scope is not None:
            scope.close()
        if fact.error is None:
            self._emitter.emit(SubagentResultEvent, fact.subagent_id, name, fact.summary, sanitize_cost(fact.cost))
        else:
            self._emitter.emit(SubagentErrorEvent, fact.subagent_id, name, fact.error)

    def close(self) -> None:
        """End all open sub-agents with an error."""
        for subagent_id in list(self._names):
            self.end(facts.SubagentDone(subagent_id, error=NEVER_REPORTED))
