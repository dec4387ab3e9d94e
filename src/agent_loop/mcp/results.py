"""Results of MCP tools as tool results: text, images, resources and structured content, bounded in size."""

from typing import Any

from agent_loop.messages import Image, Shown, Text
from agent_loop.messages.formatting import encode_json
from agent_loop.tools.tool import ToolResult

MAX_TEXT = 100_000
"""Characters of text in one result that the model gets."""
MAX_IMAGE = 8_000_000
"""Base64 characters of one image that the model gets."""


def to_tool_result(result: Any) -> ToolResult:
    """Return a `CallToolResult` of the SDK as a tool result. Details have the structured content."""
    blocks = [_to_block(block) for block in result.content]
    structured = result.structured_content
    if structured is not None and not blocks:
        blocks = [Text(encode_json(structured).decode())]
    if not blocks:
        blocks = [Text("the tool failed without a message" if result.is_error else "(no output)")]
    details = None if structured is None else {"structured": structured}
    return ToolResult(_bounded(blocks), is_error=bool(result.is_error), details=details)


def _to_block(block: Any) -> Shown:
    match block.type:
        case "text":
            return Text(block.text)
        case "image":
            return _image(block.data, block.mime_type)
        case "resource":
            return _resource(block.resource)
        case "resource_link":
            return Text(f"[resource: {block.name}, {block.uri}]")
        case "audio":
            return Text(f"[audio omitted: {block.mime_type}, {len(block.data)} base64 characters]")
    return Text(f"[content of an unknown type omitted: {block.type}]")


def _resource(resource: Any) -> Shown:
    text = getattr(resource, "text", None)
    if text is not None:
        return Text(f"[resource: {resource.uri}]\n{text}")
    kind = resource.mime_type or "application/octet-stream"
    if kind.startswith("image/"):
        return _image(resource.blob, kind)
    return Text(f"[resource omitted: {resource.uri}, {kind}, {len(resource.blob)} base64 characters]")


def _image(data: str, mime_type: str) -> Shown:
    if len(data) > MAX_IMAGE:
        return Text(f"[image omitted: {mime_type}, {len(data)} base64 characters, more than {MAX_IMAGE}]")
    return Image(data, mime_type)


def _bounded(blocks: list[Shown]) -> tuple[Shown, ...]:
    """Return the blocks with at most `MAX_TEXT` characters of text, and a note about the rest."""
    left, kept, cut = MAX_TEXT, list[Shown](), 0
    for block in blocks:
        if not isinstance(block, Text):
            kept.append(block)
            continue
        if shown := block.text[:left]:
            kept.append(Text(shown))
        left, cut = left - len(shown), cut + len(block.text) - len(shown)
    if cut:
        kept.append(Text(f"[{cut:,} more characters were cut; ask for less at once]"))
    return tuple(kept)
