"""Files that the command line names, read whole, within bounds."""

import mimetypes
from pathlib import Path
from typing import Any

import msgspec

from agent_loop.cli.fault import Fault
from agent_loop.messages import Image
from agent_loop.tools.builtin.read import MAX_IMAGE_BYTES, image_block, image_type_of

MOST_BYTES = MAX_IMAGE_BYTES


def read_image(path: str) -> Image:
    """A picture. Raises `Fault` for what is none."""
    data = _bytes_of(path)
    kind = image_type_of(data) or mimetypes.guess_type(path)[0] or ""
    if not kind.startswith("image/"):
        raise Fault(f"{path} is no picture that can be told; give a PNG, JPEG, GIF or WebP file")
    return image_block(data, kind)


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
