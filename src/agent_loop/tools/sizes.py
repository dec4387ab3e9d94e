"""How large an output is on the wire, and what of it a model without eyes can have. Source: zidane, "outputBytes"."""

from collections.abc import Iterable

import msgspec

from agent_loop.messages import Image, Shown, Text
from agent_loop.tools.tool import ToolResult


def output_bytes(content: str | Iterable[Shown]) -> int:
    """Size of a tool's output: UTF-8 bytes of text, base64 characters of images. No count of tokens."""
    if isinstance(content, str):
        return _text_bytes(content)
    return sum(len(block.data) if isinstance(block, Image) else _text_bytes(block.text) for block in content)


def without_images(result: ToolResult) -> ToolResult:
    """The result for a model that sees no images: a line of text in the place of each. The same one if it has none."""
    if not any(isinstance(block, Image) for block in result.content):
        return result
    return msgspec.structs.replace(result, content=tuple(as_text(block) for block in result.content))


def _text_bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))  # JSON can hold half of a character; it counts as three bytes


def as_text(block: Shown) -> Shown:
    """The block itself, or what takes the place of an image."""
    if isinstance(block, Text):
        return block
    return Text(f"[image left out: {block.mime_type}, {len(block.data)} base64 characters; this model sees no images]")
