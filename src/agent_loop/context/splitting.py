"""Positions at which a history can be split without separating calls from results or parts of one answer."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from agent_loop.messages import AssistantMessage, ExtensionMessage, Message, SystemMessage, ToolMessage, UserMessage


def safe_cuts(messages: Sequence[Message]) -> list[int]:
    """Return the valid split positions in ascending order, including 0 and the length."""
    depth, change = 0, _depth_changes(messages)
    cuts = []
    for position in range(len(messages) + 1):
        depth += change[position]
        if depth == 0 and not _within_answer(messages, position):
            cuts.append(position)
    return cuts


def _depth_changes(messages: Sequence[Message]) -> list[int]:
    """Return, for each position, the change in the number of call-result pairs that a split there would separate."""
    change = [0] * (len(messages) + 2)
    called_at: dict[str, int] = {}
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            called_at.update((call.id, index) for call in message.tool_calls)
        elif isinstance(message, ToolMessage) and message.tool_call_id in called_at:
            change[called_at[message.tool_call_id] + 1] += 1
            change[index + 1] -= 1
    return change


def _within_answer(messages: Sequence[Message], position: int) -> bool:
    """Return whether the position is between two messages of one answer."""
    around = messages[max(0, position - 1) : position + 1] if position else ()
    return len(around) == 2 and all(isinstance(each, AssistantMessage) for each in around)


@dataclass(frozen=True, slots=True)
class Split:
    """A history in three parts that can be processed independently."""

    first: tuple[Message, ...]
    middle: tuple[Message, ...]
    recent: tuple[Message, ...]

    @property
    def pinned(self) -> tuple[Message, ...]:
        """System messages in the middle; they are kept even if the middle is dropped."""
        return tuple(each for each in self.middle if isinstance(each, SystemMessage))


def split(messages: Sequence[Message], keep_first: int, keep_recent: int) -> Split:
    """Split the messages; keep at least `keep_first` at the beginning and `keep_recent` at the end."""
    cuts = safe_cuts(messages)
    end = cuts[bisect_right(cuts, max(0, len(messages) - keep_recent)) - 1]
    begin = min(end, cuts[min(bisect_left(cuts, keep_first), len(cuts) - 1)])
    return Split(tuple(messages[:begin]), tuple(messages[begin:end]), tuple(messages[end:]))


def find_pairing_problem(messages: Sequence[Message]) -> str | None:
    """Return a sentence about a structure that providers reject, or None for a valid history."""
    visible = [each for each in messages if not isinstance(each, SystemMessage | ExtensionMessage)]
    if visible and not isinstance(visible[0], UserMessage):
        return f"the conversation begins with a message of role {visible[0].__struct_config__.tag!r} instead of 'user'"
    open_calls: set[str] = set()
    for message in visible:
        if isinstance(message, AssistantMessage):
            open_calls.update(call.id for call in message.tool_calls)
        elif isinstance(message, ToolMessage):
            if message.tool_call_id not in open_calls:
                return f"the tool result {message.tool_call_id!r} answers no call before it"
            open_calls.remove(message.tool_call_id)
    return f"the tool call {min(open_calls)!r} has no result" if open_calls else None
