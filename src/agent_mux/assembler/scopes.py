"""What can happen inside a turn of the main agent, or inside a sub-agent: prose, tools and their facts.

Sub-agents: spawned once, ended once, possibly turns later; their inside is shown only on request. §13.
"""

from collections.abc import Callable
from typing import Any

from agent_mux.assembler.emitter import Emitter, StreamContext, possible_cost
from agent_mux.assembler.messages import Prose
from agent_mux.assembler.tools import UNFINISHED, Tools
from agent_mux.events.tools import SubagentErrorEvent, SubagentResultEvent, SubagentSpawnEvent
from agent_mux.sdk import facts


class Scope:
    """Prose and tools of one agent; the main stream and each visible sub-agent have one."""

    __slots__ = ("_handlers", "prose", "tools")

    def __init__(
        self, emitter: Emitter, context: StreamContext, used_ids: set[str], subagent: str | None = None
    ) -> None:
        self.prose = Prose(emitter, buffered=context.buffered, subagent=subagent)
        self.tools = Tools(emitter, context, used_ids, subagent)
        self._handlers = self._make_handlers()

    def accept(self, fact: facts.Fact) -> None:
        """Turn one fact about the content of a turn into events. Facts of other kinds say nothing here."""
        handler = self._handlers.get(fact.__class__)
        if handler is not None:
            handler(fact)

    def _make_handlers(self) -> dict[type, Callable[[Any], None]]:
        prose, tools = self.prose, self.tools
        return {
            facts.TextDelta: lambda fact: prose.say(fact.text) if fact.text else None,
            facts.TextEnd: lambda _: prose.end_message(),
            facts.Text: lambda fact: self._whole_message(fact.text),
            facts.ThinkingDelta: lambda fact: prose.think(fact.text, fact.effort) if fact.text else None,
            facts.ThinkingEnd: lambda _: prose.end_thought(),
            facts.Thinking: lambda fact: self._whole_thought(fact.text, fact.effort),
            facts.ToolBegin: lambda fact: tools.begin(fact.call_id, fact.name),
            facts.ToolInput: lambda fact: tools.add_input(fact.call_id, fact.delta),
            facts.ToolReady: tools.make_ready,
            facts.ToolOutput: tools.add_output,
            facts.ToolDone: tools.end,
            facts.CommandBegan: tools.commands.begin,
            facts.CommandOutput: tools.commands.show,
            facts.CommandEnded: tools.commands.end,
            facts.FileTouched: lambda fact: tools.touch(fact.effect),
            facts.McpBegin: tools.begin_mcp,
            facts.McpDone: tools.end_mcp,
        }

    def abandon(self, why: str) -> None:
        """A model call is given up: what it left half-said is closed as it is."""
        self.prose.close()
        self.tools.abandon_inputs(why)

    def close(self, why: str = UNFINISHED) -> None:
        """Close everything."""
        self.prose.close()
        self.tools.close(why)

    def _whole_message(self, text: str) -> None:
        if text:
            self.prose.end_message()
            self.prose.say(text)
            self.prose.end_message()

    def _whole_thought(self, text: str, effort: str | None) -> None:
        if text:
            self.prose.end_thought()
            self.prose.think(text, effort)
            self.prose.end_thought()


NEVER_REPORTED = "no result: the run ended before the sub-agent reported"


class Subagents:
    """The open sub-agents of a run, each with the scope of its inside when that is shown."""

    def __init__(self, emitter: Emitter, context: StreamContext, used_ids: set[str]) -> None:
        self._emitter = emitter
        self._context = context
        self._used_ids = used_ids
        self._names: dict[str, str] = {}
        self._scopes: dict[str, Scope] = {}
        self._used: set[str] = set()

    @property
    def any_open(self) -> bool:
        """At least one has not reported."""
        return bool(self._names)

    def is_new(self, subagent_id: str) -> bool:
        """No sub-agent had this id yet."""
        return subagent_id not in self._used

    def is_open(self, subagent_id: str) -> bool:
        """This one has not reported."""
        return subagent_id in self._names

    def begin(self, fact: facts.SubagentBegin) -> None:
        """A task was delegated."""
        self._used.add(fact.subagent_id)
        self._names[fact.subagent_id] = fact.name
        if self._context.include_subagent_events:
            self._scopes[fact.subagent_id] = Scope(self._emitter, self._context, self._used_ids, fact.subagent_id)
        self._emitter.emit(SubagentSpawnEvent, fact.subagent_id, fact.name, fact.prompt)

    def accept(self, fact: facts.InSubagent) -> None:
        """Something happened inside."""
        scope = self._scopes.get(fact.subagent_id)
        if scope is not None:
            scope.accept(fact.fact)

    def end(self, fact: facts.SubagentDone) -> None:
        """It reported, or failed."""
        name = self._names.pop(fact.subagent_id)
        scope = self._scopes.pop(fact.subagent_id, None)
        if scope is not None:
            scope.close()
        if fact.error is None:
            self._emitter.emit(SubagentResultEvent, fact.subagent_id, name, fact.summary, possible_cost(fact.cost))
        else:
            self._emitter.emit(SubagentErrorEvent, fact.subagent_id, name, fact.error)

    def close(self) -> None:
        """Nobody will report any more."""
        for subagent_id in list(self._names):
            self.end(facts.SubagentDone(subagent_id, error=NEVER_REPORTED))
