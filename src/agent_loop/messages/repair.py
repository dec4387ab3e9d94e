"""Repair of a history after an interruption: tool calls without results get an error result.

Messages that pair with nothing are not lost: a note replaces them.
"""

from collections.abc import Iterable, Sequence

import msgspec

from agent_loop.messages.message import AssistantMessage, ExtensionMessage, Message, Text, ToolCall, ToolMessage
from agent_loop.messages.validation import has_content

ABORTED = "Aborted: the run ended before this tool was done. It may have done a part of its work."
"""Result text of a call whose outcome is unknown."""
SKIPPED = "Skipped: the run went on with something else before this tool was begun."
"""Result text of a call that never started."""
DROPPED = "dropped"
"""Kind of the note that replaces a message which providers reject; its data is that message."""


def unanswered(messages: Iterable[Message]) -> tuple[ToolCall, ...]:
    """Return the tool calls that lack a result at the required position, in order. Linear time."""
    repair = HistoryRepair("")
    for message in messages:
        repair.take(message)
    repair.close()
    return tuple(repair.answered)


def answer_unanswered(messages: Iterable[Message], text: str = ABORTED, *, timestamp: int = 0) -> list[Message]:
    """Return the messages with an error result of this text for each unanswered call. Linear time.

    Results without a call, and assistant messages without content (interrupted before the first token), become notes
    (`ExtensionMessage`, kind "dropped"). Valid histories stay unchanged, also by a second repair. `timestamp`:
    milliseconds since the Unix epoch, for the added results.
    """
    repair = HistoryRepair(text, timestamp=timestamp)
    for message in messages:
        repair.take(message)
    repair.close()
    return repair.messages


def answers_to(calls: Sequence[ToolCall], text: str, *, timestamp: int = 0) -> tuple[ToolMessage, ...]:
    """Return an error result with this text for each of these calls."""
    return tuple(
        ToolMessage(tool_call_id=call.id, name=call.name, content=(Text(text),), is_error=True, timestamp=timestamp)
        for call in calls
    )


class HistoryRepair:
    """Repairs a history message by message. `messages` is the result; calls at its end may still get results."""

    def __init__(self, text: str = ABORTED, *, timestamp: int = 0) -> None:
        self.messages: list[Message] = []
        self.answered: list[ToolCall] = []
        """The calls that got an added result."""
        self._text = text
        self._timestamp = timestamp
        self._waiting: dict[str, ToolCall] = {}
        self._answering = False

    def take(self, message: Message) -> None:
        """Append the next message, repaired if necessary."""
        match message:
            case ExtensionMessage():
                self.messages.append(message)
            case ToolMessage():
                self._take_result(message)
            case AssistantMessage() if not has_content(message):
                self.messages.append(_note(message))
            case _:
                self._take_message(message)

    def close(self) -> None:
        """Add results for the calls that still have none."""
        calls = tuple(self._waiting.values())
        self.messages += answers_to(calls, self._text, timestamp=self._timestamp)
        self.answered += calls
        self._waiting.clear()
        self._answering = False

    def _take_result(self, message: ToolMessage) -> None:
        if self._waiting.pop(message.tool_call_id, None) is None:
            self.messages.append(_note(message))
            return
        self.messages.append(message)
        self._answering = True

    def _take_message(self, message: Message) -> None:
        if self._answering or not isinstance(message, AssistantMessage):
            self.close()
        self._answering = False
        self.messages.append(message)
        if isinstance(message, AssistantMessage):
            self._waiting |= {call.id: call for call in message.tool_calls}


def _note(message: Message) -> ExtensionMessage:
    return ExtensionMessage(kind=DROPPED, data=msgspec.to_builtins(message, enc_hook=str), timestamp=message.timestamp)
