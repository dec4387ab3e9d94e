"""What a tool did to the world, besides what it tells the model: for people, budgets and the event stream."""

from typing import Literal

import msgspec

OutputStream = Literal["stdout", "stderr"]
"""Of a command: where it printed something."""


class FileRead(msgspec.Struct, frozen=True, tag="file_read"):
    """A file was read."""

    path: str
    """Relative to the workspace."""


class FileWritten(msgspec.Struct, frozen=True, tag="file_written"):
    """A whole file was written."""

    path: str
    byte_count: int
    created: bool
    """It was not there before."""


class FilePatched(msgspec.Struct, frozen=True, tag="file_patched"):
    """Part of a file was changed."""

    path: str
    diff: str
    """Unified diff."""


class FileDeleted(msgspec.Struct, frozen=True, tag="file_deleted"):
    """A file was deleted."""

    path: str


class CommandRan(msgspec.Struct, frozen=True, tag="command_ran"):
    """A command ended."""

    exit_code: int
    stdout: str = ""
    stderr: str = ""


ToolEffect = FileRead | FileWritten | FilePatched | FileDeleted | CommandRan
