"""What one session keeps besides its messages: todos, files, what was read. Source: hooks seed, section 3.1."""

from typing import Any, Literal

import msgspec

TodoStatus = Literal["pending", "in_progress", "done"]


class Todo(msgspec.Struct, frozen=True):
    """One task of a list. Source: hooks seed, section 1.4."""

    id: str
    title: str
    status: TodoStatus = "pending"


class ReadMark(msgspec.Struct, frozen=True):
    """What was seen of a file, and what the file was then. Source: zidane, `dedupReads`."""

    content_hash: str
    offset: int
    limit: int
    max_bytes: int
    modified_ns: int = 0


class AgentState(msgspec.Struct, omit_defaults=True):
    """Of one session; saved with it. Tools and middleware read and change it."""

    todos: list[Todo] = []
    """Replaced wholesale by the todo tool."""
    files: dict[str, str] = {}
    """Path -> SHA-256 of each file the agent wrote, relative to the workspace. The content is on the disk."""
    reads: dict[str, ReadMark] = {}
    """Path -> what was last seen of it, relative to the workspace."""
    extra: dict[str, Any] = {}
    """Plain data of middleware, by its name."""
