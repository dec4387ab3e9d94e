"""The conversation: typed blocks, the four roles, and the chain of them."""

from agent_loop.messages.chain import Messages
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
    assistant,
    role_of,
    system,
    tool_message,
    user,
)
from agent_loop.messages.printing import pretty, visible
from agent_loop.messages.repair import ABORTED, SKIPPED, answer_unanswered, answers_to, unanswered
from agent_loop.messages.saving import restore_messages, save_messages
from agent_loop.messages.validation import ROLES, USER_INPUT_ROLES, validate, validate_user_input

__all__ = [
    "ABORTED",
    "RAW_ARGUMENTS",
    "ROLES",
    "SKIPPED",
    "USER_INPUT_ROLES",
    "AssistantMessage",
    "Block",
    "ExtensionMessage",
    "Image",
    "Message",
    "Messages",
    "Role",
    "Shown",
    "StopReason",
    "SystemMessage",
    "Text",
    "Thinking",
    "ToolCall",
    "ToolMessage",
    "UserMessage",
    "answer_unanswered",
    "answers_to",
    "assistant",
    "pretty",
    "restore_messages",
    "role_of",
    "save_messages",
    "system",
    "tool_message",
    "unanswered",
    "user",
    "validate",
    "validate_user_input",
    "visible",
]
