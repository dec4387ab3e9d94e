"""Images events. Source: agent-events spec, section 16."""

from typing import ClassVar, Literal

from agent_mux.events.base import BaseEvent


class ImageOutputEvent(BaseEvent, frozen=True):
    """The agent or a tool produced an image. Source: agent-events spec, section 16."""

    type: ClassVar[Literal["image_output"]] = "image_output"

    mime_type: str
    """For example `image/png`."""
    base64: str | None = None
    """The image itself."""
    file_path: str | None = None
    """Where it was written."""


class ImageInputAckEvent(BaseEvent, frozen=True):
    """The agent took an input image. Source: agent-events spec, section 16."""

    type: ClassVar[Literal["image_input_ack"]] = "image_input_ack"

    mime_type: str
    """For example `image/png`."""
