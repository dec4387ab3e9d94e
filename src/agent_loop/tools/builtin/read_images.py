"""Pictures that models can see, known by their first bytes: names lie. Source: phi-core, "File System"."""

import base64

from agent_loop.messages import Image

MAX_IMAGE_BYTES = 20 * 1024 * 1024
_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


def mime_type_of(data: bytes) -> str | None:
    """None: no picture, or none of a kind that models take."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for beginning, mime in _BEGINNINGS if data.startswith(beginning)), None)


def image_of(data: bytes, mime_type: str) -> Image:
    """The picture as a block."""
    return Image(base64.b64encode(data).decode(), mime_type)
