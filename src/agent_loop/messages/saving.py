"""Conversations as JSON and back. Source: phi-core, `save_messages`, `restore_messages`.

The JSON is an array of messages, each with its `role`. Fields that we do not know are passed over.
"""

from collections.abc import Sequence

import msgspec

from agent_loop.errors import MessageError
from agent_loop.messages.chain import Messages
from agent_loop.messages.encoding import encode_json
from agent_loop.messages.message import Message

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
