"""What can happen inside a turn of the main agent, or inside a sub-agent: prose, tools and their facts."""

from collections.abc import Callable
from typing import Any

from agent_mux.assembler.context import StreamContext
from agent_mux.assembler.emitter import Emitter
from agent_mux.assembler.prose import Prose
from agent_mux.assembler.tools import UNFINISHED, Tools
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
