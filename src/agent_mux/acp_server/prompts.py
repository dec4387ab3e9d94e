"""Convert a prompt of the editor to a text and attachments.

Files that a user mentions arrive as links or with their contents. A link becomes a path in the text; contents are
appended to the prompt with their origin.
"""

import base64
import binascii
import mimetypes
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
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
from agent_mux.sdk.options import Attachment


@dataclass(frozen=True, slots=True)
class EditorPrompt:
    """The text and attachments of one prompt."""

    text: str
    attachments: tuple[Attachment, ...] = ()


def read_prompt(blocks: Sequence[Any]) -> EditorPrompt:
    """Convert content blocks. Raise `ValidationError` for unsupported blocks and for an empty prompt."""
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
                raise _unsupported("audio")
            case _:
                raise _unsupported("a file that is not text")
    text = "\n\n".join(("".join(words), *behind)) if behind else "".join(words)
    if not text.strip() and not attachments:
        raise ValidationError([FieldError("prompt", text, "a non-empty text")])
    return EditorPrompt(text or "See the image.", tuple(attachments))


def _link(name: str, uri: str) -> str:
    """Return a link as users write it: `@path` for a local file, else a Markdown link."""
    parts = urlsplit(uri)
    if parts.scheme == "file":
        return f"@{unquote(parts.path)}" + (f"#{parts.fragment}" if parts.fragment else "")
    return f"[{name}]({uri})" if name else uri


def _context(resource: TextResourceContents) -> str:
    return f'<context ref="{resource.uri}">\n{resource.text}\n</context>'


def _unsupported(what: str) -> ValidationError:
    return ValidationError([FieldError("prompt", what, "text, links, files with text, and images")])


class ImageStore:
    """The images of one connection, as files in a temporary directory: all agents accept image files."""

    def __init__(self) -> None:
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._count = 0

    def store_images(self, prompt: EditorPrompt) -> EditorPrompt:
        """Return the prompt with its images as files. Raise `ValidationError` for invalid base64, and `OSError`."""
        if not prompt.attachments:
            return prompt
        return replace(prompt, attachments=tuple(self._file(one) for one in prompt.attachments))

    def close(self) -> None:
        """Delete all files of this connection."""
        if self._directory is not None:
            self._directory.cleanup()

    def _file(self, image: Attachment) -> Attachment:
        try:
            data = base64.b64decode(image.base64 or "", validate=True)
        except binascii.Error as error:
            raise ValidationError([FieldError("prompt", f"an image ({error})", "base64")]) from error
        if self._directory is None:
            self._directory = tempfile.TemporaryDirectory(prefix="agent-mux-acp-")
        self._count += 1
        suffix = mimetypes.guess_extension(image.mime_type or "") or ""
        path = Path(self._directory.name) / f"image-{self._count}{suffix}"
        path.write_bytes(data)
        return Attachment(file_path=str(path), mime_type=image.mime_type)
