"""What people say, as messages."""

from collections.abc import Sequence
from typing import Any

from agent_loop.errors import ConfigurationError
from agent_loop.messages import UserMessage, user
from agent_loop.messages.validation import checked_user

Prompt = str | UserMessage | Sequence[UserMessage]
"""A text, a message, or several."""


def said_by(message: str | UserMessage, origin: Any) -> UserMessage:
    """A message of this origin, where it is a text; else as it is. Raises `MessageError` for what is none."""
    return checked_user(user(message, origin=origin) if isinstance(message, str) else message)


def prompts(prompt: Prompt) -> tuple[UserMessage, ...]:
    """A prompt as messages. Raises `ConfigurationError` for an empty one, `MessageError` for no user message."""
    if isinstance(prompt, str):
        if not prompt.strip():
            raise ConfigurationError("the prompt is empty; say what the agent is to do, or use continue_run()")
        return (user(prompt),)
    return tuple(map(checked_user, (prompt,) if isinstance(prompt, UserMessage) else prompt))
