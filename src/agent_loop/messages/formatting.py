"""Values as JSON that can always be stored: a history is never lost because something in it is odd.

Plain data comes back as it was. What is no plain data is stored as its text, and half of a character (a lone surrogate,
which models do write) as the replacement character: neither can be said in JSON.
"""
# DOC: """Conversations for people to read. Source: hooks seed, section 1.6, "Pretty printing".
#
#      What models, tools and files say is hostile: control characters are shown, never obeyed by the terminal, and no line of
#      a text passes for the heading of a message.
#      """

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from agent_loop.messages.message import (
    Block,
    ExtensionMessage,
    Image,
    Message,
    SystemMessage,
    Text,
    Thinking,
    ToolCall,
    ToolMessage,
    role_of,
)

_SURROGATES = re.compile("[\ud800-\udfff]")
_ENCODER = msgspec.json.Encoder(enc_hook=str)


def encode_json(value: Any) -> bytes:
    """The value as JSON. Raises `ValueError` for what is nested more deeply than Python can follow."""
    try:
        return _encode(value)
    except RecursionError as error:
        raise ValueError("it is nested too deeply to be stored") from error


def _encode(value: Any) -> bytes:
    try:
        return _ENCODER.encode(value)
    except (UnicodeEncodeError, TypeError):
        return _ENCODER.encode(_storable(msgspec.to_builtins(value, enc_hook=str)))


def _storable(value: Any) -> Any:
    match value:
        case str():
            return _SURROGATES.sub("\ufffd", value)
        case Mapping():
            return {_storable(str(name)): _storable(each) for name, each in value.items()}
        case list() | tuple():
            return [_storable(each) for each in value]
        case _:
            return value


_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Controls besides tab and newline, marks that change the direction of writing, and halves of characters."""
_HEADING = re.compile(r"^(?=\[(?:System|User|Assistant|Tool|Extension)\b)", re.MULTILINE)


def pretty(messages: Iterable[Message]) -> str:
    """The conversation, message by message, each with a heading and an empty line behind it but the last."""
    return "\n\n".join("\n".join((_heading(message), *_body(message))) for message in messages)


def escape_controls(text: str) -> str:
    """The text with its control characters written out, as Python would write them."""
    return _UNSAFE.sub(lambda found: _escape(found[0]), text)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _one_line(text: str) -> str:
    return escape_controls(text).replace("\n", "\\n")


def _heading(message: Message) -> str:
    match message:
        case ToolMessage():
            failed = ", error" if message.is_error else ""
            return f"[Tool: {_one_line(message.name)} (call_id={_one_line(message.tool_call_id)}{failed})]"
        case ExtensionMessage():
            return f"[Extension: {_one_line(message.kind)}]"
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
            return f"  (image: {_one_line(block.mime_type)}, {len(block.data)} characters of base64)"
        case ToolCall():
            return f"  → tool_call: {_one_line(block.name)}(id={_one_line(block.id)}, args={_json(block.arguments)})"


def _text(text: str) -> str:
    return _HEADING.sub(r"\\", escape_controls(text))


def _json(data: object) -> str:
    try:
        return _one_line(encode_json(data).decode())
    except ValueError:
        return "(nested too deeply to be shown)"
