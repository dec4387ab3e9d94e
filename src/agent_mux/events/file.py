"""File operations events. Source: agent-events spec, section 10."""

from typing import ClassVar, Literal

from agent_mux.events.base import BaseEvent, Bytes


class FileReadEvent(BaseEvent, frozen=True):
    """A tool read a file. Source: agent-events spec, section 10."""

    type: ClassVar[Literal["file_read"]] = "file_read"

    path: str
    """Absolute or workspace-relative."""


class FileWriteEvent(BaseEvent, frozen=True):
    """A tool overwrote a file. Source: agent-events spec, section 10."""

    type: ClassVar[Literal["file_write"]] = "file_write"

    path: str
    """Absolute or workspace-relative."""
    byte_count: Bytes
    """Size of what was written."""


class FileCreateEvent(BaseEvent, frozen=True):
    """A tool made a file that was not there before. Source: agent-events spec, section 10."""

    type: ClassVar[Literal["file_create"]] = "file_create"

    path: str
    """Absolute or workspace-relative."""
    byte_count: Bytes
    """Size of the new file."""


class FileDeleteEvent(BaseEvent, frozen=True):
    """A tool deleted a file. Source: agent-events spec, section 10."""

    type: ClassVar[Literal["file_delete"]] = "file_delete"

    path: str
    """Absolute or workspace-relative."""


class FilePatchEvent(BaseEvent, frozen=True):
    """A tool changed part of a file. Source: agent-events spec, section 10."""

    type: ClassVar[Literal["file_patch"]] = "file_patch"

    path: str
    """Absolute or workspace-relative."""
    diff: str
    """Unified diff (`--- a/...`, `+++ b/...`, `@@` hunks)."""
