"""What can happen inside a turn of the main agent, or inside a sub-agent: prose, tools and their facts."""

from agent_mux import facts
from agent_mux.assembler.context import StreamContext
from agent_mux.assembler.emitter import Emitter
from agent_mux.assembler.prose import Prose
from agent_mux.assembler.tools import UNFINISHED, Tools


class Scope:
    """Prose and tools of one agent; the main stream and each visible sub-agent have one."""

    __slots__ = ("prose", "tools")

    def __init__(self, emitter: Emitter, context: StreamContext, subagent: str | None = None) -> None:
        self.prose = Prose(emitter, buffered=context.buffered, subagent=subagent)
        self.tools = Tools(
            emitter,
            cwd=context.cwd,
            buffered=context.buffered,
            permission_pending=context.permission_pending,
            subagent=subagent,
        )

    def accept(self, fact: facts.Fact) -> None:
        """Turn one fact about the content of a turn into events. Facts of other kinds say nothing here."""
        match fact:
            case facts.TextDelta(text):
                if text:
                    self.prose.say(text)
            case facts.TextEnd():
                self.prose.end_message()
            case facts.Text(text):
                self._whole_message(text)
            case facts.ThinkingDelta(text):
                if text:
                    self.prose.think(text)
            case facts.ThinkingEnd():
                self.prose.end_thought()
            case facts.Thinking(text, effort):
                self._whole_thought(text, effort)
            case facts.ToolBegin(call_id, name):
                self.tools.begin(call_id, name)
            case facts.ToolInput(call_id, delta):
                self.tools.add_input(call_id, delta)
            case facts.ToolReady():
                self.tools.make_ready(fact)
            case facts.ToolOutput():
                self.tools.add_output(fact)
            case facts.ToolDone():
                self.tools.end(fact)
            case facts.McpBegin():
                self.tools.begin_mcp(fact)
            case facts.McpDone():
                self.tools.end_mcp(fact)

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
