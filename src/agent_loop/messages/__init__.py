"""The conversation: typed blocks, the four roles, and the chain of them."""

from agent_loop.messages.content import RAW_ARGUMENTS, Block, Image, Shown, Text, Thinking, ToolCall
from agent_loop.messages.message import (
    AssistantMessage,
    ExtensionMessage,
    Message,
    Role,
    StopReason,
    SystemMessage,
    ToolMessage,
    UserMessage,
    user,
)

__all__ = [
    "RAW_ARGUMENTS",
    "AssistantMessage",
    "Block",
    "ExtensionMessage",
    "Image",
    "Message",
    "Role",
    "Shown",
    "StopReason",
    "SystemMessage",
    "Text",
    "Thinking",
    "ToolCall",
    "ToolMessage",
    "UserMessage",
    "user",
]
