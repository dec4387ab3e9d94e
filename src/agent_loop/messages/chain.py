"""A conversation as a list with builder methods, and its JSON form.

    chain = Messages().system("You are helpful.").user("What is 2+2?")
    chain = chain.assistant("", ToolCall("call_1", "calculate", {"expr": "2+2"})).tool("call_1", "calculate", "4")

The JSON is an array of messages, each with its `role`. Unknown fields are ignored.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from agent_loop.errors import MessageError
from agent_loop.messages.formatting import encode_json, pretty
from agent_loop.messages.message import (
    AssistantMessage,
    Message,
    Role,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
    assistant,
    role_of,
    system,
    tool_message,
    user,
)
from agent_loop.messages.validation import validate, validate_user_input

MessageType = TypeVar("MessageType", SystemMessage, UserMessage, AssistantMessage, ToolMessage)

_DECODER = msgspec.json.Decoder(list[Message])


class Messages(list[Message]):
    """A list of messages. The builder methods return a longer copy; the methods of `list` change it in place."""

    def system(self, text: str, **fields: Any) -> "Messages":
        """Return a copy with a system message appended."""
        return self.with_(system(text, **fields))

    def user(self, text: str, **fields: Any) -> "Messages":
        """Return a copy with a user message appended."""
        return self.with_(user(text, **fields))

    def assistant(self, text: str, *calls: ToolCall, **fields: Any) -> "Messages":
        """Return a copy with an assistant message appended."""
        return self.with_(assistant(text, *calls, **fields))

    def tool(self, call_id: str, name: str, text: str, **fields: Any) -> "Messages":
        """Return a copy with a tool result appended."""
        return self.with_(tool_message(call_id, name, text, **fields))

    def with_(self, *messages: Message) -> "Messages":
        """Return a copy with these messages appended."""
        return Messages((*self, *messages))

    @property
    def system_messages(self) -> list[SystemMessage]:
        """The system messages, in order."""
        return self._of_type(SystemMessage)

    @property
    def user_messages(self) -> list[UserMessage]:
        """The user messages, in order, including those of the loop itself."""
        return self._of_type(UserMessage)

    @property
    def assistant_messages(self) -> list[AssistantMessage]:
        """The assistant messages, in order."""
        return self._of_type(AssistantMessage)

    @property
    def tool_messages(self) -> list[ToolMessage]:
        """The tool results, in order."""
        return self._of_type(ToolMessage)

    def by_role(self, role: Role) -> "Messages":
        """Return the messages of this role."""
        return Messages(message for message in self if role_of(message) == role)

    @property
    def last(self) -> Message | None:
        """The last message; None if the list is empty."""
        return self[-1] if self else None

    @property
    def last_text(self) -> str:
        """Text of the last message; empty if the list is empty."""
        return self[-1].text if self else ""

    def validate(self) -> "Messages":
        """Return the list itself if a provider would accept it. Raises `MessageError`."""
        validate(self)
        return self

    def validate_user_input(self) -> "Messages":
        """Return the list itself if it is valid input from outside. Raises `MessageError`."""
        validate_user_input(self)
        return self

    def pretty(self) -> str:
        """Return the conversation as text for people."""
        return pretty(self)

    def _of_type(self, message_type: type[MessageType]) -> list[MessageType]:
        return [message for message in self if isinstance(message, message_type)]


def save_messages(messages: Sequence[Message]) -> bytes:
    """Return the conversation as UTF-8 JSON. Raises `MessageError` for data that is nested too deeply."""
    try:
        return encode_json(list(messages))
    except ValueError as error:
        raise MessageError(f"the messages cannot be saved: {error}") from error


def restore_messages(data: bytes | str) -> Messages:
    """Return the conversation that `save_messages` wrote. Raises `MessageError` for other data."""
    try:
        return Messages(_DECODER.decode(data))
    except (ValueError, RecursionError) as error:
        raise MessageError(f"not a saved conversation: {error}; pass the output of save_messages") from error
