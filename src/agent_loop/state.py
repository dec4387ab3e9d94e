"""Persistent state of a session besides its messages: todos, written files and reads."""

from typing import Any, Literal

import msgspec

TodoStatus = Literal["pending", "in_progress", "done"]


class Todo(msgspec.Struct, frozen=True):
    """One task of the todo list."""

    id: str
    title: str
    status: TodoStatus = "pending"


class ReadMark(msgspec.Struct, frozen=True):
    """The range of a file that the agent read last, with the hash and modification time of the file.

    It counts only as long as requests contain the result of its call: `ToolContext.seen`.
    """

    content_hash: str
    offset: int
    limit: int
    max_bytes: int
    modified_ns: int = 0
    call_id: str = ""
    """The tool call that read or wrote the file."""
    shown_hash: str = ""
    """The hash of the content that the call returned to the model."""


class AgentState(msgspec.Struct, omit_defaults=True):
    """State of one session, saved with it. Tools and middleware read and change it."""

    todos: list[Todo] = []
    """The todo list; the todo tool replaces the whole list."""
    files: dict[str, str] = {}
    """Path relative to the workspace -> SHA-256 of each file that the agent wrote; the content is on disk."""
    reads: dict[str, ReadMark] = {}
    """Path relative to the workspace -> the latest read of the file."""
    extra: dict[str, Any] = {}
    """Plain data of middleware, keyed by middleware name."""
