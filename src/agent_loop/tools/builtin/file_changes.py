"""Changing a text file: check that the model read it, write the new text, and describe the change as a unified diff.

`AgentState.reads` holds a mark of the last read of each file, for `dedup_reads` and `require_read_before_edit`.
"""

import io
import re
from collections.abc import Callable, Sequence
from difflib import unified_diff
from hashlib import sha256
from typing import Generic, NamedTuple, TypeVar

from msgspec.structs import replace

from agent_loop.errors import ToolError
from agent_loop.messages import Shown
from agent_loop.messages.formatting import encode_json
from agent_loop.state import ReadMark
from agent_loop.tools.builtin.file_call import behavior_of, replace_surrogates, workspace_of
from agent_loop.tools.effects import FilePatched
from agent_loop.tools.tool import ToolContext
from agent_loop.workspace import FileContent

CONTEXT = 3
"""Lines of context in a diff."""
MAX_COMPARISONS = 4_000_000
"""The most line comparisons of a diff (lines times lines), which bounds its time. Beyond, all lines are replaced."""
_HEADER = re.compile(r"^@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@")
_NO_END = "\n\\ No newline at end of file\n"
Details = TypeVar("Details")


class ChangeOutcome(NamedTuple, Generic[Details]):
    """The outcome of `change_file`, generic in the details that the change returns."""

    name: str
    details: Details
    """The second value that the change returned."""
    effects: tuple[FilePatched, ...]
    """The patch; empty if the text did not change."""


def change_file(
    context: ToolContext, path: str, change: Callable[[str, str], tuple[str, Details]]
) -> ChangeOutcome[Details]:
    """Replace the text of a file by the text that `change(name, text)` returns. Blocks.

    Bytes that are not UTF-8, line endings, a byte order mark and a missing last newline are preserved. No other tool
    changes the file between the read and the write; a change by another program in between is overwritten. Exceptions
    of `change` are passed on and leave the file unchanged. Raises `ToolError` if `require_read_before_edit` is set and
    the model has not read the current content.
    """
    workspace = workspace_of(context)
    with workspace.changing:
        content = workspace.read_file(path)
        if behavior_of(context).require_read_before_edit:
            require_read(context, content)
        before = content.data.decode("utf-8", "surrogateescape")
        after, details = change(content.name, before)
        if after == before:
            return ChangeOutcome(content.name, details, ())
        data = after.encode("utf-8", "surrogateescape")
        workspace.write_bytes(content.path, data)
        mark_changed(context, content.name, data)
    return ChangeOutcome(content.name, details, (FilePatched(content.name, diff_of(content.name, before, after)),))


# -- marks of reads


def read_mark(content: FileContent, offset: int, limit: int, max_bytes: int) -> ReadMark:
    """Return the mark of a read of this content with these arguments."""
    return ReadMark(_hash(content.data), offset, limit, max_bytes, content.modified_ns)


def is_repeated_read(context: ToolContext, name: str, mark: ReadMark) -> bool:
    """Whether the last read of the file returned the same part of the same content, and the model still has it.

    Modification times are ignored.
    """
    last = context.state.reads.get(name)
    if last is None or _content_and_range(last) != _content_and_range(mark):
        return False
    if context.seen is None:
        return True
    sent = context.seen(last.call_id)
    return sent is not None and _shown_hash(sent) == last.shown_hash


def visible_reads(context: ToolContext) -> dict[str, ReadMark]:
    """Return the marks as they are for a call that knows no `seen`, for tools that run in another process.

    A mark whose result the model no longer has is left out. One whose result was shortened has offset 0, so that the
    next read is not a repeated one.
    """
    if context.seen is None:
        return dict(context.state.reads)
    visible = {}
    for name, mark in context.state.reads.items():
        sent = context.seen(mark.call_id)
        if sent is not None:
            is_whole = not mark.shown_hash or _shown_hash(sent) == mark.shown_hash
            visible[name] = mark if is_whole else replace(mark, offset=0, limit=0, max_bytes=0)
    return visible


def mark_read(context: ToolContext, name: str, mark: ReadMark, shown: tuple[Shown, ...]) -> None:
    """Record the read that this call answers with `shown`."""
    context.state.reads[name] = replace(mark, call_id=context.call_id, shown_hash=_shown_hash(shown))


def mark_changed(context: ToolContext, name: str, data: bytes) -> None:
    """Record that the agent wrote this content, so that it may edit the file again without reading it.

    The mark has offset 0, which no read has, so the next read is not a repeated one.
    """
    digest = _hash(data)
    context.state.files[name] = digest
    context.state.reads[name] = ReadMark(digest, offset=0, limit=0, max_bytes=0, call_id=context.call_id)


def require_read(context: ToolContext, content: FileContent) -> None:
    """Raise `ToolError` if the conversation has no read of the file, or the file was changed since."""
    mark = context.state.reads.get(content.name)
    if mark is None or (context.seen is not None and context.seen(mark.call_id) is None):
        raise ToolError(f"{content.name} was not read yet; read it with read_file before you edit it")
    if mark.content_hash != _hash(content.data):
        raise ToolError(f"{content.name} was changed since you read it; read it again before you edit it")


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()


def _shown_hash(content: tuple[Shown, ...]) -> str:
    return _hash(encode_json(content))


def _content_and_range(mark: ReadMark) -> tuple[str, int, int, int]:
    return mark.content_hash, mark.offset, mark.limit, mark.max_bytes


# -- diffs


def diff_of(name: str, before: str, after: str) -> str:
    """Return a unified diff, empty if nothing changed.

    The texts may contain surrogates of the error handler `surrogateescape`; the diff has U+FFFD instead.
    """
    if before == after:
        return ""
    old, new = _split_lines(before), _split_lines(after)
    start, end = _common_lines(old, new)
    first = max(0, start - CONTEXT)
    tail = max(0, end - CONTEXT)
    changed = old[first : len(old) - tail], new[first : len(new) - tail]
    body = _compare(*changed) if len(changed[0]) * len(changed[1]) <= MAX_COMPARISONS else _replace_all(*changed)
    lines = [f"--- a/{name}\n", f"+++ b/{name}\n", *(_shift_header(line, first) for line in body)]
    return replace_surrogates("".join(lines))


def _split_lines(text: str) -> list[str]:
    """Split a text at line feeds only, and keep the line endings."""
    return [line if line.endswith("\n") else line + _NO_END for line in io.StringIO(text, newline="\n")]


def _common_lines(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """Return the number of equal lines at the beginning and at the end."""
    shorter = min(len(old), len(new))
    start = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    rest = shorter - start
    end = next((at for at in range(rest) if old[-1 - at] != new[-1 - at]), rest)
    return start, end


def _compare(old: Sequence[str], new: Sequence[str]) -> list[str]:
    return list(unified_diff(old, new, n=CONTEXT))[2:]


def _replace_all(old: Sequence[str], new: Sequence[str]) -> list[str]:
    start, end = _common_lines(old, new)
    removed, added = old[start : len(old) - end], new[start : len(new) - end]
    header = f"@@ -1,{len(old)} +1,{len(new)} @@\n"
    middle = [*(f"-{line}" for line in removed), *(f"+{line}" for line in added)]
    return [header, *(f" {line}" for line in old[:start]), *middle, *(f" {line}" for line in old[len(old) - end :])]


def _shift_header(line: str, first: int) -> str:
    """Add `first` to the line numbers of a hunk header; other lines are returned unchanged."""
    match = _HEADER.match(line)
    if match is None:
        return line
    old, old_size, new, new_size = match.groups(default="")
    return f"@@ -{int(old) + first}{old_size} +{int(new) + first}{new_size} @@\n"
