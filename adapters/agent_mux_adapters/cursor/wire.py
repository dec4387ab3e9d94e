"""The fragments of cursor-agent's stream: the one typed decode of the hot path. All other lines are read as objects."""

import msgspec

FRAGMENT_STARTS = (b'{"type":"thinking","subtype":"delta"', b'{"type":"assistant"')
"""How a line that may be a fragment begins. Whatever begins otherwise is read as an object, fragment or not."""


class Block(msgspec.Struct, gc=False):
    """A content block of a message."""

    type: str
    text: str


class Message(msgspec.Struct, gc=False):
    """A message of the assistant."""

    content: list[Block]


class Fragment(msgspec.Struct, gc=False):
    """A line of text or thinking. Those of a message that is complete have a call id, or no time at all."""

    type: str
    subtype: str = ""
    text: str = ""
    message: Message | None = None
    model_call_id: str | None = None
    timestamp_ms: int | None = None


decode_fragment = msgspec.json.Decoder(Fragment).decode
