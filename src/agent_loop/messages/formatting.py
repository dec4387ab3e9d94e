"""JSON and text forms of messages.

JSON: any value can be stored. Objects other than plain data are stored as their text, and unpaired surrogates, which
models do write, as the replacement character.

Text for people: content of models, tools and files is untrusted. Control characters are escaped, so that a terminal
does not interpret them, and no line of a text can imitate the heading of a message.
"""

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

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters except tab and newline, marks that change the writing direction, and surrogates."""
_HEADING = re.compile(r"^(?=\[(?:System|User|Assistant|Tool|Extension)\b)", re.MULTILINE)


def encode_json(value: Any) -> bytes:
    """Return the value as JSON. Raises `ValueError` for a value that exceeds Python's recursion limit."""
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


def pretty(messages: Iterable[Message]) -> str:
    """Return the conversation as text, each message below a heading, separated by blank lines."""
    return "\n\n".join("\n".join((_heading(message), *_body(message))) for message in messages)


def escape_controls(text: str) -> str:
    """Return the text with control characters escaped as in Python source."""
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
