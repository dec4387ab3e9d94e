"""Operations on tool results: validate results of tools and hooks, build errors, measure sizes, replace images."""

from collections.abc import Iterable
from typing import Any

import msgspec

from agent_loop.errors import ToolError
from agent_loop.messages import Image, Shown, Text
from agent_loop.messages.formatting import encode_json
from agent_loop.tools.tool import Output, ToolResult, result_of

NO_DETAILS = "(details that cannot be stored)"


def failure(text: str) -> ToolResult:
    """Return an error result with this text for the model."""
    return ToolResult((Text(text),), is_error=True)


def valid_result(given: Output) -> ToolResult:
    """Return the result of a tool, hook or wrapper in a form that can be stored, read again and sent.

    Details are converted to plain data. Raises `ToolError` if the value, or a part of it, is not a valid result.
    """
    result = result_of(given)
    try:
        msgspec.convert(msgspec.to_builtins(msgspec.structs.replace(result, details=None)), ToolResult)
    except (msgspec.ValidationError, TypeError, RecursionError) as error:
        raise ToolError(f"the tool returned an invalid result: {error}") from None
    if result.details is None and isinstance(result.content, tuple):
        return result
    return msgspec.structs.replace(result, content=tuple(result.content), details=_to_plain(result.details))


def result_or_failure(given: Output) -> ToolResult:
    """Return the result as `valid_result` does; an invalid one becomes an error result for the model."""
    try:
        return valid_result(given)
    except ToolError as error:
        return failure(f"Error: {error}")


def output_bytes(content: str | Iterable[Shown]) -> int:
    """Return the size of a tool's output: UTF-8 bytes of text plus base64 characters of images, not tokens."""
    if isinstance(content, str):
        return _text_bytes(content)
    return sum(len(block.data) if isinstance(block, Image) else _text_bytes(block.text) for block in content)


def without_images(result: ToolResult) -> ToolResult:
    """Return the result with a line of text in place of each image, for models that take no images.

    A result without images is returned unchanged.
    """
    if not any(isinstance(block, Image) for block in result.content):
        return result
    return msgspec.structs.replace(result, content=tuple(as_text(block) for block in result.content))


def as_text(block: Shown) -> Shown:
    """Return a text block unchanged and an image as a line of text about it."""
    if isinstance(block, Text):
        return block
    return Text(
        f"[image omitted: {block.mime_type}, {len(block.data)} base64 characters; this model accepts no images]"
    )


def _text_bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))  # JSON allows unpaired surrogates; each counts as three bytes


def _to_plain(details: Any) -> Any:
    try:
        return msgspec.json.decode(encode_json(details))
    except Exception:  # noqa: BLE001  # objects of tools may raise anything while they are encoded
        return NO_DETAILS
