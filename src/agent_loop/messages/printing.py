"""Conversations for people to read. Source: hooks seed, section 1.6, "Pretty printing".

What models, tools and files say is hostile: control characters are shown, never obeyed by the terminal, and no line of
a text passes for the heading of a message.
"""

import re
from collections.abc import Iterable, Iterator

from agent_loop.messages.content import Block, Image, Text, Thinking, ToolCall
from agent_loop.messages.encoding import encode_json
from agent_loop.messages.message import ExtensionMessage, Message, SystemMessage, ToolMessage, role_of

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Controls besides tab and newline, marks that change the direction of writing, and halves of characters."""
_HEADING = re.compile(r"^(?=\[(?:System|User|Assistant|Tool|Extension)\b)", re.MULTILINE)


def pretty(messages: Iterable[Message]) -> str:
    """The conversation, message by message, each with a heading and an empty line behind it but the last."""
    return "\n\n".join("\n".join((_heading(message), *_body(message))) for message in messages)


def visible(text: str) -> str:
    """The text with its control characters written out, as Python would write them."""
    return _UNSAFE.sub(lambda found: _escape(found[0]), text)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _line(text: str) -> str:
    return visible(text).replace("\n", "\\n")


def _heading(message: Message) -> str:
    match message:
        case ToolMessage():
            failed = ", error" if message.is_error else ""
            return f"[Tool: {_line(message.name)} (call_id={_line(message.tool_call_id)}{failed})]"
        case ExtensionMessage():
            return f"[Extension: {_line(message.kind)}]"
        case _:
            return f"[{role_of(message).capitalize()}]"


def _body(message: Message) -> Iterator[str]:
    match message:
        case SystemMessage():
            yield _text(message.content)
        case ExtensionMessage():
            yield _json(message.data)
        case _:
            yield from (_block(block) for block in message.content)


def _block(block: Block) -> str:
    match block:
        case Text():
            return _text(block.text)
        case Thinking():
            return "  (thinking) " + _text(block.text or "shown only encrypted").replace("\n", "\n  ")
        case Image():
            return f"  (image: {_line(block.mime_type)}, {len(block.data)} characters of base64)"
        case ToolCall():
            return f"  → tool_call: {_line(block.name)}(id={_line(block.id)}, args={_json(block.arguments)})"


def _text(text: str) -> str:
    return _HEADING.sub(r"\\", visible(text))


def _json(data: object) -> str:
    try:
        return _line(encode_json(data).decode())
    except ValueError:
        return "(nested too deeply to be shown)"
