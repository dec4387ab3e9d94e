"""Validation of a conversation by the rules that all providers enforce.

Each message must have content, and the results of the tool calls in an answer must follow it directly, one for each.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from agent_loop.errors import MessageError
from agent_loop.messages.message import (
    AssistantMessage,
    ExtensionMessage,
    Image,
    Message,
    SystemMessage,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
    role_of,
)

ROLES = frozenset({"system", "user", "assistant", "tool"})
"""Roles that can be sent to a model."""
USER_INPUT_ROLES = frozenset({"system", "user"})
"""Roles that are accepted from outside."""


def validate(messages: Sequence[Message]) -> None:
    """Raise `MessageError` for the first invalid message, with its index. Ignores extension messages. Linear time."""
    pairing = _Pairing()
    for index, message in enumerate(messages):
        if isinstance(message, ExtensionMessage):
            continue
        if problem := _problem_of(message):
            raise _error(index, message, problem)
        pairing.take(index, message)
    pairing.end()


def validate_user_input(messages: Sequence[Message]) -> None:
    """Raise `MessageError` unless these are user and system messages with content, at least one."""
    if not messages:
        raise MessageError("no messages; send at least one")
    for index, message in enumerate(messages):
        if not isinstance(message, UserMessage | SystemMessage):
            raise _error(index, message, "may not come from outside; send user and system messages only")
        if problem := _problem_of(message):
            raise _error(index, message, problem)


def validate_user_message(message: object) -> UserMessage:
    """Return the user message if it has content and can be stored. Raises `MessageError`."""
    try:
        validated = msgspec.convert(msgspec.to_builtins(message), UserMessage)
    except (msgspec.ValidationError, TypeError, RecursionError) as error:
        raise MessageError(f"not a user message: {error}; create one with `user(text)`") from None
    validate_user_input([validated])
    return validated


def has_content(message: AssistantMessage) -> bool:
    """Return whether the message has content or tool calls, without which providers reject it."""
    return any(_is_filled(block) for block in message.content)


class _Pairing:
    """The tool calls that still need a result."""

    def __init__(self) -> None:
        self.waiting: dict[str, int] = {}
        """Call id -> index of its message."""
        self.answering = False
        """Whether a result followed the answer: the next assistant message begins another answer."""

    def take(self, index: int, message: Message) -> None:
        if isinstance(message, ToolMessage):
            self._take_result(index, message)
            return
        if self.answering or not isinstance(message, AssistantMessage):
            self.end()
        self.answering = False
        for call in message.tool_calls if isinstance(message, AssistantMessage) else ():
            if call.id in self.waiting:
                raise _error(index, message, f"has a second tool call with the id {call.id!r}")
            self.waiting[call.id] = index

    def _take_result(self, index: int, message: ToolMessage) -> None:
        if self.waiting.pop(message.tool_call_id, None) is None:
            raise _error(index, message, f"answers {message.tool_call_id!r}, but no call with this id is open")
        self.answering = True

    def end(self) -> None:
        """Raise `MessageError` if a call has no result."""
        for call_id, index in self.waiting.items():
            raise MessageError(
                f"message {index} (assistant): the tool call {call_id!r} has no result; `answer_unanswered` gives one",
                index=index,
            )


def _problem_of(message: Message) -> str | None:
    check = _CHECKS.get(type(message))
    return check(message) if check else "has none of the roles system, user, assistant, tool"


def _system_problem(message: SystemMessage) -> str | None:
    return None if message.content.strip() else "is empty"


def _user_problem(message: UserMessage) -> str | None:
    return None if any(_is_filled(block) for block in message.content) else "is empty"


def _assistant_problem(message: AssistantMessage) -> str | None:
    if not all(call.id for call in message.tool_calls):
        return "has a tool call without an id"
    if not all(call.name for call in message.tool_calls):
        return "has a tool call without a name"
    return None if has_content(message) else "has neither content nor tool calls"


def _tool_problem(message: ToolMessage) -> str | None:
    if not message.tool_call_id:
        return "has no tool_call_id"
    return None if message.name else "has no name"


_CHECKS: Mapping[type, Callable[[Any], str | None]] = {
    SystemMessage: _system_problem,
    UserMessage: _user_problem,
    AssistantMessage: _assistant_problem,
    ToolMessage: _tool_problem,
}


def _is_filled(block: object) -> bool:
    match block:
        case Text(text):
            return bool(text.strip())
        case Thinking():
            return bool(block.text or block.redacted)
        case _:
            return isinstance(block, Image | ToolCall)


def _error(index: int, message: Message, problem: str) -> MessageError:
    kind = role_of(message) if isinstance(message, Message) else type(message).__name__
    return MessageError(f"message {index} ({kind}): {problem}", index=index)
