"""The tool `apply_patch`, which changes, creates, moves and deletes several files by one patch: all or nothing.

The new contents are computed before the first file is written, so that a hunk that does not fit changes nothing. If a
write fails (a full disk, a read-only file), the files before it are restored.
"""

import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from agent_loop.errors import ToolError, WorkspaceError
from agent_loop.messages import Text
from agent_loop.tools.builtin.file_call import (
    behavior_of,
    encode_text,
    parse_arguments,
    run_in_thread,
    schema_of,
    workspace_of,
)
from agent_loop.tools.builtin.file_changes import diff_of, mark_changed, require_read
from agent_loop.tools.builtin.patch_hunks import apply_hunks
from agent_loop.tools.effects import FileDeleted, FilePatched, FileWritten, ToolEffect
from agent_loop.tools.patch_format import FileChange, parse_patch
from agent_loop.tools.tool import CallPreview, ToolContext, ToolResult
from agent_loop.workspace import FileContent, Workspace

FORMAT = """\
Change several files with one patch, all or nothing: if a hunk does not fit, no file is changed. The format:
*** Begin Patch
*** Update File: src/a.py
*** Move to: src/b.py      (only to move the file)
@@ class Name              (optional: a line above the hunk that tells equal places apart)
 context line, unchanged
-line to remove
+line to add
*** Add File: docs/new.md
+each line of the new file
*** Delete File: old.py
*** End Patch
Give about three lines of context. The lines of a hunk must occur once in the file. A unified diff, as git prints it, \
is accepted, too."""
Check = Callable[[FileContent], None]


class PatchArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of the tool `apply_patch`."""

    patch: Annotated[str, Meta(description="The whole patch, from '*** Begin Patch' to '*** End Patch'.")]


class StagedFile(msgspec.Struct):
    """A file of a patch with its content before and after; None: no such file."""

    name: str
    before: bytes | None
    after: bytes | None
    moved_from: str | None = None
    differences: tuple[str, ...] = ()

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        return diff_of(self.name, _decoded(self.before), _decoded(self.after))


class ApplyPatchTool:
    """The tool `apply_patch`."""

    name = "apply_patch"
    label = "Apply patch"
    kind = "edit"
    risk = "medium"
    description = FORMAT
    parameters = schema_of(PatchArguments)

    async def execute(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        """Apply a patch. Raises `ToolError` and leaves all files unchanged if a part of it does not apply."""
        parsed = parse_arguments(PatchArguments, arguments)
        encode_text(parsed.patch, "patch")
        return await run_in_thread(lambda: _apply(parsed.patch, context))

    def preview(self, arguments: Mapping[str, Any], workspace: Workspace | None) -> CallPreview:
        """Return the files that a call would change, and the diff. Blocks. Raises `ToolError` if it is no patch.

        A patch that does not apply has no diff, and the files that it names: rules about paths must see them. Without
        a workspace, there is no preview.
        """
        if workspace is None:
            raise ToolError("this agent has no workspace")
        changes = parse_patch(parse_arguments(PatchArguments, arguments).patch)
        try:
            staged = stage(workspace, changes, lambda _: None)
        except ToolError:
            return CallPreview(tuple(path for each in changes for path in (each.path, each.target) if path), "")
        paths = [path for each in staged for path in (each.moved_from, each.name) if path]
        return CallPreview(tuple(dict.fromkeys(paths)), "".join(_preview_diff(each) for each in staged))


def stage(workspace: Workspace, changes: Sequence[FileChange], check: Check) -> list[StagedFile]:
    """Return the files after a patch without writing them. `check` may refuse to change a file that exists.

    Raises `ToolError` for a change that does not apply.
    """
    staged: dict[str, StagedFile] = {}
    for change in changes:
        try:
            _stage_change(workspace, change, staged, check)
        except ToolError as error:
            raise ToolError(f"nothing was changed: {change.path}: {error}") from error
    return [each for each in staged.values() if each.before != each.after or each.moved_from]


def _stage_change(workspace: Workspace, change: FileChange, staged: dict[str, StagedFile], check: Check) -> None:
    name = _name_of(workspace, change.path)
    known = staged.get(name)
    if change.kind == "add":
        if known is not None or workspace.stat(change.path, follow=False) is not None:
            raise ToolError("the file exists already; use '*** Update File:' to change it")
        staged[name] = StagedFile(name, None, change.content.encode())
        return
    if known is None:
        known = _existing(workspace, change, name, check)
    if known.after is None:
        raise ToolError("the patch deleted or moved this file before")
    if change.kind == "delete":
        staged[name] = StagedFile(name, known.before, None)
        return
    text, differences = apply_hunks(_decoded(known.after), change.hunks)
    known.after = text.encode("utf-8", "surrogateescape")
    known.differences += differences
    if change.target is None:
        if known.after == known.before:
            raise ToolError("the patch changes nothing in this file")
        staged[name] = known
        return
    target = _name_of(workspace, change.target)
    if target in staged or workspace.stat(change.target, follow=False) is not None:
        raise ToolError(f"{change.target} exists already, so that the file cannot be moved there")
    if known.moved_from or known.before is None:
        raise ToolError("the patch created or moved this file before; write it at its place at once")
    staged.pop(name, None)
    staged[target] = StagedFile(target, known.before, known.after, name, known.differences)


def _existing(workspace: Workspace, change: FileChange, name: str, check: Check) -> StagedFile:
    entry = workspace.stat(change.path, follow=change.kind == "update" and change.target is None)
    if entry is not None and entry.kind != "file":
        raise ToolError("it is no regular file and cannot be deleted or moved by a patch")
    content = workspace.read_file(change.path)
    check(content)
    return StagedFile(name, content.data, content.data)


def _name_of(workspace: Workspace, path: str) -> str:
    """Return the canonical name of a file; of one in a directory that does not exist yet, the normalized path."""
    if workspace.stat(path) is None:
        return posixpath.normpath(path)
    return workspace.relative(path)


# -- writing


def commit(workspace: Workspace, staged: Sequence[StagedFile]) -> None:
    """Write the staged files, deletions last. Raises `WorkspaceError` and restores all of them if one fails."""
    undo: list[Callable[[], object]] = []
    try:
        for each in sorted(staged, key=lambda file: file.after is None):
            _commit_file(workspace, each, undo)
    except WorkspaceError as error:
        for step in reversed(undo):
            with suppress(WorkspaceError):
                step()
        raise WorkspaceError(f"nothing was changed: {error}") from error


def _commit_file(workspace: Workspace, staged: StagedFile, undo: list[Callable[[], object]]) -> None:
    """Write one file, and add what undoes each step."""
    name, before, source = staged.name, staged.before, staged.moved_from
    if source is not None:
        workspace.move(source, name)
        undo.append(lambda: workspace.move(name, source))
    if staged.after is None:
        workspace.delete(name)
    elif staged.after != before:
        workspace.write_bytes(name, staged.after)
    undo.append(lambda: workspace.delete(name) if before is None else workspace.write_bytes(name, before))


def _apply(patch: str, context: ToolContext) -> ToolResult:
    workspace, changes = workspace_of(context), parse_patch(patch)

    def check(content: FileContent) -> None:
        if behavior_of(context).require_read_before_edit:
            require_read(context, content)

    with workspace.changing:
        staged = stage(workspace, changes, check)
        commit(workspace, staged)
        for each in staged:
            _mark(context, each)
    text = "\n".join(["Applied the patch:", *(_line_of(each) for each in staged)])
    return ToolResult((Text(text),), effects=tuple(effect for each in staged for effect in _effects_of(each)))


def _mark(context: ToolContext, staged: StagedFile) -> None:
    for gone in (staged.moved_from, staged.name if staged.after is None else None):
        if gone is not None:
            context.state.files.pop(gone, None)
            context.state.reads.pop(gone, None)
    if staged.after is not None:
        mark_changed(context, staged.name, staged.after)


def _effects_of(staged: StagedFile) -> Iterator[ToolEffect]:
    if staged.after is None:
        yield FileDeleted(staged.name)
    elif staged.moved_from is not None:
        yield FileDeleted(staged.moved_from)
        yield FileWritten(staged.name, len(staged.after), created=True)
    elif staged.before is None:
        yield FileWritten(staged.name, len(staged.after), created=True)
    else:
        yield FilePatched(staged.name, staged.diff)


def _line_of(staged: StagedFile) -> str:
    note = f" (lines of the patch differed from the file in {'; '.join(staged.differences)})"
    rest = note if staged.differences else ""
    if staged.moved_from is not None:
        return f"R {staged.moved_from} -> {staged.name}{rest}"
    letter = "D" if staged.after is None else "A" if staged.before is None else "M"
    return f"{letter} {staged.name}{rest}"


def _preview_diff(staged: StagedFile) -> str:
    """Return the diff of a file with the names of both sides; of a file that only moves, its two names."""
    old = "/dev/null" if staged.before is None else f"a/{staged.moved_from or staged.name}"
    new = "/dev/null" if staged.after is None else f"b/{staged.name}"
    body = staged.diff.split("\n", 2)[2:]
    return f"--- {old}\n+++ {new}\n{''.join(body)}"


def _decoded(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "surrogateescape")
