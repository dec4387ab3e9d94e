"""What the editor sends as a prompt, as a text and attachments. Pure.

Files that a person mentions arrive as links, or with their text. Agents read text: a link stays one, and the text of a
file stands behind the prompt, with where it is from.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from acp.schema import (
    AudioContentBlock,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from agent_mux.errors import FieldError, ValidationError
from agent_mux.options import Attachment


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt."""

    text: str
    attachments: tuple[Attachment, ...] = ()


def prompt_of(blocks: Sequence[Any]) -> Prompt:
    """Read the blocks. Raises `ValidationError` for what agents cannot take, and where nothing is asked."""
    words: list[str] = []
    behind: list[str] = []
    attachments: list[Attachment] = []
    for block in blocks:
        match block:
            case TextContentBlock():
                words.append(block.text)
            case ResourceContentBlock():
                words.append(_link(block.name, block.uri))
            case EmbeddedResourceContentBlock(resource=TextResourceContents() as resource):
                words.append(_link("", resource.uri))
                behind.append(_context(resource))
            case ImageContentBlock():
                attachments.append(Attachment(base64=block.data, mime_type=block.mime_type))
            case AudioContentBlock():
                raise _cannot_take("audio")
            case _:
                raise _cannot_take("a file that is no text")
    text = "\n\n".join(("".join(words), *behind)) if behind else "".join(words)
    if not text.strip() and not attachments:
        raise ValidationError([FieldError("prompt", text, "a text that says something")])
    return Prompt(text or "See the image.", tuple(attachments))


def _link(name: str, uri: str) -> str:
    """As people mention files: by their path, where it is one on this machine."""
    parts = urlsplit(uri)
    if parts.scheme == "file":
        return f"@{unquote(parts.path)}" + (f"#{parts.fragment}" if parts.fragment else "")
    return f"[{name}]({uri})" if name else uri


def _context(resource: TextResourceContents) -> str:
    return f'<context ref="{resource.uri}">\n{resource.text}\n</context>'


def _cannot_take(what: str) -> ValidationError:
    return ValidationError([FieldError("prompt", what, "text, links, files with text, and images")])
