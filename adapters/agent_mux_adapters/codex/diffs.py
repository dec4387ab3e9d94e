"""What a patch did to files. The app-server tells each change with its content or its hunks; `exec` only the paths."""

from pathlib import PurePosixPath

import msgspec

from agent_mux.facts import FileDeleted, FileEffect, FilePatched, FileWritten


class ChangeKind(msgspec.Struct, frozen=True, gc=False):
    """How a file changed."""

    type: str
    """add, update or delete."""
    move_path: str | None = None
    """Its new path, when the update also moved it. Yes, snake_case on this wire too."""


class Change(msgspec.Struct, frozen=True, gc=False):
    """One changed file as the app-server tells it."""

    path: str
    kind: ChangeKind
    diff: str = ""
    """add: the new content; delete: the old content; update: the hunks, without file headers."""


def effects_of(change: Change, cwd: str, written: set[str]) -> tuple[FileEffect, ...]:
    """What happened on disk. `written` remembers the files this run made: adding one of those again overwrites it."""
    path, moved = change.path, change.kind.move_path
    match change.kind.type:
        case "add":
            created = path not in written
            written.add(path)
            return (FileWritten(path, len(change.diff.encode(errors="replace")), created),)
        case "delete":
            written.discard(path)
            return (FileDeleted(path),)
        case "update" if moved:
            written.discard(path)
            written.add(moved)
            return FileDeleted(path), FilePatched(moved, unified(change, cwd))
        case "update":
            written.add(path)
            return (FilePatched(path, unified(change, cwd)),)
    return ()


def unified(change: Change, cwd: str) -> str:
    """The change as a unified diff with its file headers."""
    old = _shown(change.path, cwd)
    new = _shown(change.kind.move_path, cwd) if change.kind.move_path else old
    match change.kind.type:
        case "add":
            return f"--- /dev/null\n+++ b/{new}\n{_whole(change.diff, '+')}"
        case "delete":
            return f"--- a/{old}\n+++ /dev/null\n{_whole(change.diff, '-')}"
    hunks = change.diff
    if change.kind.move_path:
        # Codex says it in words, too: "\n\nMoved to: <path>" after the hunks.
        hunks = hunks.removesuffix(f"\n\nMoved to: {change.kind.move_path}")
    return f"--- a/{old}\n+++ b/{new}\n{hunks}"


def _shown(path: str, cwd: str) -> str:
    pure = PurePosixPath(path)
    return str(pure.relative_to(cwd)) if cwd and pure.is_relative_to(cwd) else path.lstrip("/")


def _whole(content: str, sign: str) -> str:
    lines = content.split("\n")
    complete = lines[-1] == ""
    if complete:
        lines.pop()
    if not lines:
        return ""
    span = f"1,{len(lines)}" if len(lines) > 1 else "1"
    header = f"@@ -0,0 +{span} @@\n" if sign == "+" else f"@@ -{span} +0,0 @@\n"
    body = "".join(f"{sign}{line}\n" for line in lines)
    return header + body + ("" if complete else "\\ No newline at end of file\n")
