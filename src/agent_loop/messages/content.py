"""What a message is made of. Source: phi-core, "Content"; hooks seed, section 1.2."""

from typing import Any

import msgspec

RAW_ARGUMENTS = "_raw"
"""The key that holds arguments which are no JSON object. Source: loop spec, section 4.2."""


class Text(msgspec.Struct, frozen=True, tag="text", gc=False):
    """Plain text."""

    text: str


class Image(msgspec.Struct, frozen=True, tag="image", gc=False):
    """A picture, inline."""

    data: str
    """Base64."""
    mime_type: str


class Thinking(msgspec.Struct, frozen=True, tag="thinking", omit_defaults=True, gc=False):
    """Reasoning of the model. It goes back to the provider that made it as it came, or not at all."""

    text: str
    signature: str | None = None
    """What the provider knows its own reasoning by."""
    redacted: str | None = None
    """Reasoning that the provider shows only encrypted; `text` is empty then."""


class ToolCall(msgspec.Struct, frozen=True, tag="tool_call", omit_defaults=True):
    """The model wants a tool to be used."""

    id: str
    """Given by the model; made by us where it gave none, or one that was there before."""
    name: str
    arguments: dict[str, Any] = {}
    """`{"_raw": text}` where the model wrote something that is no JSON object."""
    raw_arguments: str = ""
    """The JSON as the model wrote it; empty: as `arguments` would be written."""

    @property
    def is_unparsable(self) -> bool:
        """The arguments are no JSON object."""
        return RAW_ARGUMENTS in self.arguments and len(self.arguments) == 1


Block = Text | Image | Thinking | ToolCall
Shown = Text | Image
"""What users and tools can say."""
