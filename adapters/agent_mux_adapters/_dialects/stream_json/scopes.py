"""The messages of the main agent and, apart from them, of its sub-agents: told apart by `parent_tool_use_id`."""

from collections.abc import Callable, Mapping
from typing import Any

from agent_mux import facts
from agent_mux_adapters._dialects.stream_json.messages import MessageReader
from agent_mux_adapters._dialects.tolerant import mapping, need_mapping, text

Facts = tuple[facts.Fact, ...]


class Scopes:
    """A reader for each agent. `new_reader` makes the one of a sub-agent."""

    def __init__(self, main: MessageReader, new_reader: Callable[[], MessageReader]) -> None:
        self.main = main
        self._new_reader = new_reader
        self._inside: dict[str, MessageReader] = {}

    def stream_event(self, line: Mapping[str, Any]) -> Facts:
        """A `stream_event` line. Raises `WrongShapeError`."""
        event, parent = need_mapping(line, "event"), parent_of(line)
        told = self._reader(parent).event(event, line)
        nothing = facts.Ignored(f"stream_event/{text(event.get('type'))}", "it says nothing new")
        return inside(parent, told) or (nothing,)

    def assistant(self, line: Mapping[str, Any]) -> Facts:
        """An `assistant` line. Raises `WrongShapeError`."""
        message, parent = need_mapping(line, "message"), parent_of(line)
        told = self._reader(parent).whole_message(message)
        return inside(parent, told) or (facts.Ignored("assistant", "told already by its stream"),)

    def _reader(self, parent: str) -> MessageReader:
        if not parent:
            return self.main
        return self._inside.setdefault(parent, self._new_reader())


def parent_of(line: Mapping[str, Any]) -> str:
    """The call of the sub-agent that the line is of; empty when it is of the main agent."""
    return text(line.get("parent_tool_use_id"))


def inside(parent: str, told: Facts) -> Facts:
    """What a sub-agent did. What is not known is shown in any case."""
    if not parent:
        return told
    return tuple(fact if isinstance(fact, facts.Unknown) else facts.InSubagent(parent, fact) for fact in told)


def without_silence(told: Facts) -> Facts:
    """A line that says something is not ignored."""
    spoken = tuple(fact for fact in told if not isinstance(fact, facts.Ignored))
    return spoken or told


def plain(content: Any) -> str:
    """The text of a message's content: a string, or blocks."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    return "\n".join(text(mapping(block).get("text")) for block in blocks)
