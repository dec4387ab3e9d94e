"""Images of prompts, as files: every agent that takes images takes them so."""

import base64
import binascii
import mimetypes
import tempfile
from dataclasses import replace
from pathlib import Path

from agent_mux.acp_agent.prompts import Prompt
from agent_mux.errors import FieldError, ValidationError
from agent_mux.options import Attachment


class Pictures:
    """The images of one connection, in a directory of its own that goes with it."""

    def __init__(self) -> None:
        self._directory: tempfile.TemporaryDirectory[str] | None = None
        self._count = 0

    def stored(self, prompt: Prompt) -> Prompt:
        """The prompt with its images in files. Raises `ValidationError` for what is no base64; `OSError`."""
        if not prompt.attachments:
            return prompt
        return replace(prompt, attachments=tuple(self._file(one) for one in prompt.attachments))

    def close(self) -> None:
        """Remove them."""
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
