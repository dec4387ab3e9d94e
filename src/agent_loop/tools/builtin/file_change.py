"""Read a file, make another text of it, write it: what `edit` and `multi_edit` share.

Bytes that are no UTF-8 survive: they are carried through as `surrogateescape` does it. Line ends, a byte order mark and
a missing last newline stay as they are, since only what matched is replaced. Between the read and the write no other
tool changes the file; another program might, and the write wins.
"""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from agent_loop.tools.builtin.file_context import behavior_of, workspace_of
from agent_loop.tools.builtin.file_diff import diff_of
from agent_loop.tools.builtin.read_marks import note_change, require_read
from agent_loop.tools.effects import FilePatched
from agent_loop.tools.tool import ToolContext

Known = TypeVar("Known")


class Changed(NamedTuple, Generic[Known]):
    """What came of it."""

    name: str
    known: Known
    """What the change told besides the text."""
    effects: tuple[FilePatched, ...]
    """None, where the text stayed the same."""


def change_file(context: ToolContext, path: str, change: Callable[[str, str], tuple[str, Known]]) -> Changed[Known]:
    """Let the file hold what `change(name, text)` returns first. Raises what `change` raises, and leaves the file then.

    Blocks. Raises `ToolError` with `require_read_before_edit` where the model has not seen the file as it is.
    """
    workspace = workspace_of(context)
    with workspace.changing:
        content = workspace.read_file(path)
        if behavior_of(context).require_read_before_edit:
            require_read(context.state, content)
        before = content.data.decode("utf-8", "surrogateescape")
        after, known = change(content.name, before)
        if after == before:
            return Changed(content.name, known, ())
        data = after.encode("utf-8", "surrogateescape")
        workspace.write_bytes(content.path, data)
        note_change(context.state, content.name, data)
    return Changed(content.name, known, (FilePatched(content.name, diff_of(content.name, before, after)),))
