"""What models without eyes are sent of a history that has images. Source: zidane, `sanitizeStoredToolResults`.

New results have their markers already. A session may go on with another model than it began with, and users send
images, too.
"""

from collections.abc import Iterable

import msgspec

from agent_loop.messages import Image, Message, ToolMessage, UserMessage
from agent_loop.tools.results import as_text


def without_any_image(messages: Iterable[Message]) -> list[Message]:
    """The messages, with a line of text in the place of each image; those without images are the same objects."""
    return [_flattened(message) for message in messages]


def _flattened(message: Message) -> Message:
    if not isinstance(message, UserMessage | ToolMessage) or not any(isinstance(b, Image) for b in message.content):
        return message
    return msgspec.structs.replace(message, content=tuple(as_text(block) for block in message.content))
