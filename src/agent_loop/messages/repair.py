"""Tool calls without results get some, so that whatever happened leaves a conversation that can go on.

Source: zidane, `synthesizeMissingToolResults`. What pairs up with nothing is not lost: a note takes its place.
"""

from collections.abc import Iterable, Sequence

import msgspec

from agent_loop.messages.message import AssistantMessage, ExtensionMessage, Message, Text, ToolCall, ToolMessage
from agent_loop.messages.validation import has_content

ABORTED = "Aborted: the run ended before this tool was done. It may have done a part of its work."
"""What the model reads where nobody knows what became of a call."""
SKIPPED = "Skipped: the run went on with something else before this tool was begun."
"""What the model reads of a call that was never begun."""
DROPPED = "dropped"
"""Kind of the note in the place of a message that no provider would take; its data is that message."""


def unanswered(messages: Iterable[Message]) -> tuple[ToolCall, ...]:
    """The tool calls that have no result where one would have to be, in order. Linear."""
    repair = HistoryRepair("")
    for message in messages:
        repair.take(message)
    repair.close()
    return tuple(repair.answered)


def answer_unanswered(messages: Iterable[Message], text: str = ABORTED, *, timestamp: int = 0) -> list[Message]:
    """The messages with an error result of this text for each unanswered call, in its place. Linear.

    Results that answer no call, and answers of the model that say nothing (broken off before the first word), become
    notes (`ExtensionMessage`, kind "dropped"). What is whole stays as it is; a second repair changes nothing.
    `timestamp` is that of the results: milliseconds since the Unix epoch.
    """
    repair = HistoryRepair(text, timestamp=timestamp)
    for message in messages:
        repair.take(message)
    repair.close()
    return repair.messages


def answers_to(calls: Sequence[ToolCall], text: str, *, timestamp: int = 0) -> tuple[ToolMessage, ...]:
    """An error result of this text for each of these calls."""
    return tuple(
        ToolMessage(tool_call_id=call.id, name=call.name, content=(Text(text),), is_error=True, timestamp=timestamp)
        for call in calls
    )


class HistoryRepair:
    """The repair, message by message. `messages` is what is there so far; calls at its end may still be answered."""

    def __init__(self, text: str = ABORTED, *, timestamp: int = 0) -> None:
        self.messages: list[Message] = []
        self.answered: list[ToolCall] = []
        """The calls that were given a result of ours."""
        self._text = text
        self._timestamp = timestamp
        self._waiting: dict[str, ToolCall] = {}
        self._answering = False

    def take(self, message: Message) -> None:
        """The next message."""
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
        """Nothing more answers the calls that wait."""
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
