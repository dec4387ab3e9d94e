"""A conversation as one value, built step by step. Source: hooks seed, section 1.6, "Messages Chain".

chain = Messages().system("You are helpful.").user("What is 2+2?")
chain = chain.assistant("", ToolCall("call_1", "calculate", {"expr": "2+2"})).tool("call_1", "calculate", "4")
"""
# DOC: """Conversations as JSON and back. Source: phi-core, `save_messages`, `restore_messages`.
#
#      The JSON is an array of messages, each with its `role`. Fields that we do not know are passed over.
#      """

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


class Messages(list[Message]):
    """A list of messages. The builders give a longer chain and leave this one; what a list does, it does in place."""

    def system(self, text: str, **fields: Any) -> "Messages":
        """With a system message behind it."""
        return self.with_(system(text, **fields))

    def user(self, text: str, **fields: Any) -> "Messages":
        """With a user message behind it. The hooks seed's `Human`."""
        return self.with_(user(text, **fields))

    def assistant(self, text: str, *calls: ToolCall, **fields: Any) -> "Messages":
        """With an assistant message behind it. The hooks seed's `AI`."""
        return self.with_(assistant(text, *calls, **fields))

    def tool(self, call_id: str, name: str, text: str, **fields: Any) -> "Messages":
        """With the result of a tool call behind it."""
        return self.with_(tool_message(call_id, name, text, **fields))

    def with_(self, *messages: Message) -> "Messages":
        """With these messages behind it."""
        return Messages((*self, *messages))

    @property
    def system_messages(self) -> list[SystemMessage]:
        """Those of whoever runs the agent."""
        return self._of_type(SystemMessage)

    @property
    def user_messages(self) -> list[UserMessage]:
        """Those of the person, and what the loop says in their place."""
        return self._of_type(UserMessage)

    @property
    def assistant_messages(self) -> list[AssistantMessage]:
        """Those of the model."""
        return self._of_type(AssistantMessage)

    @property
    def tool_messages(self) -> list[ToolMessage]:
        """The results of tools."""
        return self._of_type(ToolMessage)

    def by_role(self, role: Role) -> "Messages":
        """Those of this role."""
        return Messages(message for message in self if role_of(message) == role)

    @property
    def last(self) -> Message | None:
        """The last message; None where there is none."""
        return self[-1] if self else None

    @property
    def last_text(self) -> str:
        """Text of the last message. The hooks seed's `LastContent`."""
        return self[-1].text if self else ""

    def validate(self) -> "Messages":
        """Itself, where a provider would take it. Raises `MessageError`."""
        validate(self)
        return self

    def validate_user_input(self) -> "Messages":
        """Itself, where it may come from outside. Raises `MessageError`."""
        validate_user_input(self)
        return self

    def pretty(self) -> str:
        """For people to read."""
        return pretty(self)

    def _of_type(self, message_type: type[MessageType]) -> list[MessageType]:
        return [message for message in self if isinstance(message, message_type)]


_DECODER = msgspec.json.Decoder(list[Message])


def save_messages(messages: Sequence[Message]) -> bytes:
    """The conversation as JSON, UTF-8. Raises `MessageError` for data nested too deeply to be stored."""
    try:
        return encode_json(list(messages))
    except ValueError as error:
        raise MessageError(f"the messages cannot be saved: {error}") from error


def restore_messages(data: bytes | str) -> Messages:
    """The conversation that was saved. Raises `MessageError` for anything that is none."""
    try:
        return Messages(_DECODER.decode(data))
    except (ValueError, RecursionError) as error:
        raise MessageError(f"this is no saved conversation: {error}; give what save_messages wrote") from error
