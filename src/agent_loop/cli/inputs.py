"""Files that the command line names, read whole, within bounds."""

import base64
import mimetypes
from pathlib import Path
from typing import Any

import msgspec

from agent_loop.cli.fault import Fault
from agent_loop.messages import Image

MOST_BYTES = 20 * 1024 * 1024
_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "image/webp"),
)


def read_image(path: str) -> Image:
    """A picture. Raises `Fault` for what is none."""
    data = _bytes_of(path)
    kind = next((kind for start, kind in _SIGNATURES if data.startswith(start)), None)
    kind = kind or mimetypes.guess_type(path)[0] or ""
    if not kind.startswith("image/"):
        raise Fault(f"{path} is no picture that can be told; give a PNG, JPEG, GIF or WebP file")
    return Image(base64.b64encode(data).decode(), kind)


def read_text(path: str) -> str:
    """A text file. Raises `Fault` where it is none."""
    try:
        return _bytes_of(path).decode()
    except UnicodeDecodeError:
        raise Fault(f"{path} is no UTF-8 text") from None


def read_schema(path: str) -> dict[str, Any]:
    """A JSON Schema. Raises `Fault` where it is none."""
    try:
        value = msgspec.json.decode(_bytes_of(path))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Fault(f"{path} is no JSON: {error}") from None
    if not isinstance(value, dict):
        raise Fault(f"{path} is no JSON Schema: it must be an object")
    return value


def _bytes_of(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Fault(f"{path} cannot be read: {reason}") from None
    if len(data) > MOST_BYTES:
        raise Fault(f"{path} has more than {MOST_BYTES:,} bytes")
    return data
