"""Messages and the content blocks that they consist of.

Messages are immutable: a history is changed by replacing messages.
"""

from typing import Any, Literal

import msgspec

from agent_loop.usage import Usage

RAW_ARGUMENTS = "_raw"
"""Key under which arguments other than a JSON object are kept as text."""


class Text(msgspec.Struct, frozen=True, tag="text", gc=False):
    """A block of plain text."""

    text: str


class Image(msgspec.Struct, frozen=True, tag="image", gc=False):
    """An inline image with its MIME type."""

    data: str
    """The image, base64-encoded."""
    mime_type: str


class Thinking(msgspec.Struct, frozen=True, tag="thinking", omit_defaults=True, gc=False):
    """Reasoning of the model, which is sent back unchanged to the same provider or omitted."""

    text: str
    signature: str | None = None
    """Signature by which the provider verifies its own reasoning."""
    redacted: str | None = None
    """Reasoning that the provider returns only encrypted; `text` is empty then."""


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call", omit_defaults=True):
    """A tool call that the model requests."""

    id: str
    """The model's id; generated if the model sent none or a duplicate."""
    name: str
    arguments: dict[str, Any] = {}
    """Parsed arguments; `{"_raw": text}` if the model sent anything but a JSON object."""
    raw_arguments: str = ""
    """The JSON text of the model; empty if it equals the encoded `arguments`."""

    @property
    def is_unparsable(self) -> bool:
        """Whether the arguments are not a JSON object."""
        return RAW_ARGUMENTS in self.arguments and len(self.arguments) == 1


Block = Text | Image | Thinking | ToolCall
Shown = Text | Image
"""Content of user messages and tool results."""


Role = Literal["system", "user", "assistant", "tool", "extension"]
"""The four roles that models know, and one for notes of the application."""
StopReason = Literal["stop", "length", "tool_use", "filtered", "error", "aborted"]


class _Message(msgspec.Struct, frozen=True, tag_field="role", omit_defaults=True, kw_only=True):
    timestamp: int = 0
    """Milliseconds since the Unix epoch; 0 if unknown."""


class SystemMessage(_Message, frozen=True, tag="system"):
    """Instructions by the application that runs the agent."""

    content: str

    @property
    def text(self) -> str:
        """The text of the message."""
        return self.content


class UserMessage(_Message, frozen=True, tag="user"):
    """Input of a user, or of the loop on the user's behalf (`origin`)."""

    content: tuple[Shown, ...]
    origin: Literal["user", "steering", "follow_up", "reminder", "budget", "limit", "compaction"] = "user"

    @property
    def text(self) -> str:
        """All text blocks, joined by newlines."""
        return "\n".join(block.text for block in self.content if isinstance(block, Text))


USER_ORIGINS = frozenset({"user", "steering", "follow_up"})
"""Origins of the messages that a user wrote, not the loop on the user's behalf."""


class AssistantMessage(_Message, frozen=True, tag="assistant"):
    """An answer of the model, with its blocks in order."""

    content: tuple[Block, ...]
    stop_reason: StopReason = "stop"
    model: str = ""
    provider: str = ""
    usage: Usage = Usage()
    error: str | None = None
    """The reason if `stop_reason` is "filtered", "error" or "aborted"."""
    native: Any = None
    """The provider's own form as plain data, sent back verbatim to the same provider."""

    @property
    def text(self) -> str:
        """All text blocks, joined by newlines."""
        return "\n".join(block.text for block in self.content if isinstance(block, Text))

    @property
    def thinking(self) -> str:
        """All reasoning blocks, joined by newlines."""
        return "\n".join(block.text for block in self.content if isinstance(block, Thinking) and block.text)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in order."""
        return tuple(block for block in self.content if isinstance(block, ToolCall))


class ToolMessage(_Message, frozen=True, tag="tool"):
    """The result of one tool call."""

    tool_call_id: str
    name: str
    content: tuple[Shown, ...]
    is_error: bool = False
    details: Any = None
    """Plain data that the model does not see, for example the exit code of a command."""

    @property
    def text(self) -> str:
        """All text blocks, joined by newlines."""
        return "\n".join(block.text for block in self.content if isinstance(block, Text))


class ExtensionMessage(_Message, frozen=True, tag="extension"):
    """A note of the application in the history; it is never sent to a model."""

    kind: str
    data: Any = None

    @property
    def text(self) -> str:
        """Always empty, because no model sees the note."""
        return ""


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage | ExtensionMessage
"""Any message of a history."""


def is_user_input(message: Message) -> bool:
    """Return whether a user wrote the message, not the loop on the user's behalf."""
    return isinstance(message, UserMessage) and message.origin in USER_ORIGINS


def user(text: str, **fields: Any) -> UserMessage:
    """Return a user message with this text."""
    return UserMessage(content=(Text(text),), **fields)


def system(text: str, **fields: Any) -> SystemMessage:
    """Return a system message with this text."""
    return SystemMessage(content=text, **fields)


def assistant(text: str, *calls: ToolCall, **fields: Any) -> AssistantMessage:
    """Return an assistant message with this text, if not empty, and these calls."""
    blocks = (Text(text),) if text else ()
    return AssistantMessage(content=(*blocks, *calls), **{"stop_reason": "tool_use" if calls else "stop", **fields})


def tool_message(call_id: str, name: str, text: str, **fields: Any) -> ToolMessage:
    """Return the result of a tool call with this text."""
    return ToolMessage(tool_call_id=call_id, name=name, content=(Text(text),), **fields)


def role_of(message: Message) -> Role:
    """Return the role of a message."""
    role: Role = type(message).__struct_config__.tag  # type: ignore[assignment]  # every Message has a tag
    return role
