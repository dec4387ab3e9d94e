"""What a compaction keeps word for word of the messages that it omits: the open todos, and the decisions.

Both come from calls of `write_todos`, and from the stand-in messages of earlier compactions. A summary by a model may
leave something out; these lines do not depend on it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from agent_loop.messages import AssistantMessage, Message, ToolMessage, UserMessage

TODO_TOOL = "write_todos"
REQUEST = "\n\n[The latest request of the user was:]\n"
"""The beginning of the quoted request in a stand-in message, behind the notes."""
NOTES = "\n\n[Kept from the earlier messages, word for word:]"
TODOS, DECISIONS = "\nOpen todos (the list of write_todos without those that are done):", "\nDecisions:"
_ITEM = "\n- "


class KeptNotes(NamedTuple):
    """Notes that outlive the messages that contain them."""

    todos: tuple[str, ...] = ()
    """The open todos, one line each."""
    decisions: tuple[str, ...] = ()

    def render(self) -> str:
        """Return the section of a stand-in message, empty without notes."""
        parts = [(title, items) for title, items in ((TODOS, self.todos), (DECISIONS, self.decisions)) if items]
        text = "".join(title + "".join(f"{_ITEM}{item}" for item in items) for title, items in parts)
        return NOTES + text if text else ""


def parse_notes(text: str) -> tuple[str, KeptNotes]:
    """Split a text at the section that `KeptNotes.render` made; return what is before it, and the notes."""
    before, _, section = text.partition(NOTES)
    todos, _, decisions = section.partition(DECISIONS)
    return before, KeptNotes(_items(todos.removeprefix(TODOS)), _items(decisions))


def notes_in(omitted: Sequence[Message], kept: Sequence[Message]) -> KeptNotes:
    """Return the notes of omitted messages. Todos that a call in the later, kept messages replaced are left out."""
    failed = {each.tool_call_id for each in (*omitted, *kept) if isinstance(each, ToolMessage) and each.is_error}
    todos: tuple[str, ...] = ()
    decisions: list[str] = []
    for message in omitted:
        if isinstance(message, UserMessage) and message.origin == "compaction":
            earlier = parse_notes(message.text.partition(REQUEST)[0])[1]
            todos = earlier.todos
            decisions += earlier.decisions
        for arguments in _todo_calls((message,), failed):
            todos = _open_todos(arguments)
            decisions += _decisions(arguments)
    if any(True for _ in _todo_calls(kept, failed)):
        todos = ()
    return KeptNotes(todos, tuple(dict.fromkeys(decisions)))


def _todo_calls(messages: Iterable[Message], failed: set[str]) -> Iterable[Mapping[str, Any]]:
    for message in messages:
        if isinstance(message, AssistantMessage):
            yield from (
                call.arguments for call in message.tool_calls if call.name == TODO_TOOL and call.id not in failed
            )


def _open_todos(arguments: Mapping[str, Any]) -> tuple[str, ...]:
    todos = arguments.get("todos")
    found = [each for each in todos if isinstance(each, Mapping)] if isinstance(todos, list) else []
    return tuple(
        _line(f"{each.get('id')} ({each.get('status', 'pending')}): {each.get('title')}")
        for each in found
        if each.get("status") != "done"
    )


def _decisions(arguments: Mapping[str, Any]) -> list[str]:
    decisions = arguments.get("decisions")
    return [_line(each) for each in decisions if isinstance(each, str)] if isinstance(decisions, list) else []


def _items(text: str) -> tuple[str, ...]:
    return tuple(filter(None, text.split(_ITEM)))


def _line(text: str) -> str:
    return " ".join(text.split())
