"""The one `msgspec` decode of the hot path: only what a streamed fragment needs, everything else is skipped.

All other lines are read as plain objects, see `tolerant`.
"""

import msgspec


class Delta(msgspec.Struct, gc=False):
    """The fragment of a `content_block_delta`."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None


class StreamEvent(msgspec.Struct, gc=False):
    """An event of the model's own stream, as far as fragments go."""

    type: str
    index: int = 0
    delta: Delta | None = None


class Line(msgspec.Struct, gc=False):
    """Any line, as far as fragments go. The keys may come in any order: `type` is often the last."""

    type: str
    event: StreamEvent | None = None
    parent_tool_use_id: str | None = None


decode_line = msgspec.json.Decoder(Line).decode
