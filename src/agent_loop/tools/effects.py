"""Effects of a tool call on files and processes, for people, budgets and the event stream; the model does not see them.

A tool lists its effects in `ToolResult.effects`.
"""

from typing import Literal

import msgspec

OutputStream = Literal["stdout", "stderr"]
"""The stream to which a command printed."""


class FileRead(msgspec.Struct, frozen=True, tag="file_read"):
    """The tool read a file."""

    path: str
    """The path, relative to the workspace."""


class FileWritten(msgspec.Struct, frozen=True, tag="file_written"):
    """The tool created a file or replaced its whole content."""

    path: str
    byte_count: int
    created: bool
    """Whether the file did not exist before."""


class FilePatched(msgspec.Struct, frozen=True, tag="file_patched"):
    """The tool changed a part of a file."""

    path: str
    diff: str
    """The change as a unified diff."""


class FileDeleted(msgspec.Struct, frozen=True, tag="file_deleted"):
    """The tool deleted a file."""

    path: str


class CommandRan(msgspec.Struct, frozen=True, tag="command_ran"):
    """The tool ran a command, which ended."""

    exit_code: int
    stdout: str = ""
    stderr: str = ""


ToolEffect = FileRead | FileWritten | FilePatched | FileDeleted | CommandRan
