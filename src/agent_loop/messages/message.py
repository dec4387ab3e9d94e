"""What a message is made of. Source: phi-core, "Content"; hooks seed, section 1.2."""
# DOC: """The four roles, and one that no model sees. Source: hooks seed, section 1.1; phi-core, "Message", "AgentMessage".
#
#      Messages are values: what is in a history is never changed, only replaced.
#      """

from typing import Any, Literal

import msgspec

from agent_loop.usage import Usage

RAW_ARGUMENTS = "_raw"
"""The key that holds arguments which are no JSON object. Source: loop spec, section 4.2."""


class Text(msgspec.Struct, frozen=True, tag="text", gc=False):
    """Plain text."""

    text: str


class Image(msgspec.Struct, frozen=True, tag="image", gc=False):
    """A picture, inline."""

    data: str
    """Base64."""
    mime_type: str


class Thinking(msgspec.Struct, frozen=True, tag="thinking", omit_defaults=True, gc=False):
    """Reasoning of the model. It goes back to the provider that made it as it came, or not at all."""

    text: str
    signature: str | None = None
    """What the provider knows its own reasoning by."""
    redacted: str | None = None
    """Reasoning that the provider shows only encrypted; `text` is empty then."""


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call", omit_defaults=True):
    """The model wants a tool to be used."""

    id: str
    """Given by the model; made by us where it gave none, or one that was there before."""
    name: str
    arguments: dict[str, Any] = {}
    """`{"_raw": text}` where the model wrote something that is no JSON object."""
    raw_arguments: str = ""
    """The JSON as the model wrote it; empty: as `arguments` would be written."""

    @property
    def is_unparsable(self) -> bool:
        """The arguments are no JSON object."""
        return RAW_ARGUMENTS in self.arguments and len(self.arguments) == 1


Block = Text | Image | Thinking | ToolCall
Shown = Text | Image
"""What users and tools can say."""


Role = Literal["system", "user", "assistant", "tool", "extension"]
"""The four roles of the hooks seed, section 1.5, and ours for notes."""
StopReason = Literal["stop", "length", "tool_use", "error", "aborted"]


class _Message(msgspec.Struct, frozen=True, tag_field="role", omit_defaults=True, kw_only=True):
    timestamp: int = 0
    """Milliseconds since the Unix epoch; 0: nobody looked at the clock."""


class SystemMessage(_Message, frozen=True, tag="system"):
    """Instructions of whoever runs the agent."""

    content: str

    @property
    def text(self) -> str:
        """What it says."""
        return self.content


class UserMessage(_Message, frozen=True, tag="user"):
    """What a person says, or what the loop says in their place (`origin`)."""

    content: tuple[Shown, ...]
    origin: Literal["user", "steering", "follow_up", "reminder", "budget", "limit", "compaction"] = "user"

    @property
    def text(self) -> str:
        """All its text."""
        return "\n".join(block.text for block in self.content if isinstance(block, Text))


class AssistantMessage(_Message, frozen=True, tag="assistant"):
    """What the model said, in its order."""

    content: tuple[Block, ...]
    stop_reason: StopReason = "stop"
    model: str = ""
    provider: str = ""
    usage: Usage = Usage()
    error: str | None = None
    """Why it ended, where `stop_reason` is "error" or "aborted"."""
    native: Any = None
    """The provider's own form (plain data): sent back verbatim to the same provider. Source: loop spec, section 2."""

    @property
    def text(self) -> str:
        """All its text."""
        return "\n".join(block.text for block in self.content if isinstance(block, Text))

    @property
    def thinking(self) -> str:
        """All its reasoning."""
        return "\n".join(block.text for block in self.content if isinstance(block, Thinking) and block.text)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tools it wants to be used."""
        return tuple(block for block in self.content if isinstance(block, ToolCall))


class ToolMessage(_Message, frozen=True, tag="tool"):
    """What came of one tool call."""

    tool_call_id: str
    name: str
    content: tuple[Shown, ...]
    is_error: bool = False
    details: Any = None
    """Plain data about the result that the model does not see, for example the exit code of a command."""

    @property
    def text(self) -> str:
        """All its text."""
        return "\n".join(block.text for block in self.content if isinstance(block, Text))


class ExtensionMessage(_Message, frozen=True, tag="extension"):
    """A note of the application in the history; no model ever sees it. Source: phi-core, "ExtensionMessage"."""

    kind: str
    data: Any = None

    @property
    def text(self) -> str:
        """Nothing: models do not see it."""
        return ""


Message = SystemMessage | UserMessage | AssistantMessage | ToolMessage | ExtensionMessage
"""Anything in a history."""


def user(text: str, **fields: Any) -> UserMessage:
    """A user message of this text."""
    return UserMessage(content=(Text(text),), **fields)


def system(text: str, **fields: Any) -> SystemMessage:
    """A system message of this text."""
    return SystemMessage(content=text, **fields)


def assistant(text: str, *calls: ToolCall, **fields: Any) -> AssistantMessage:
    """An assistant message of this text, where there is some, and these calls."""
    blocks = (Text(text),) if text else ()
    return AssistantMessage(content=(*blocks, *calls), **{"stop_reason": "tool_use" if calls else "stop", **fields})


def tool_message(call_id: str, name: str, text: str, **fields: Any) -> ToolMessage:
    """The result of a tool call, of this text. The hooks seed's `ToolMsg`."""
    return ToolMessage(tool_call_id=call_id, name=name, content=(Text(text),), **fields)


def role_of(message: Message) -> Role:
    """Its role."""
    role: Role = type(message).__struct_config__.tag  # type: ignore[assignment]  # one of ours: it is a Message
    return role
