"""The files that a run changed: by comparing the git working tree before and after it, and from the agent's events.

Git compares everything that happened in the working tree, including what a shell command, a hook or another program
changed; ignored files are not compared. Events have what the agent reported. In a repository git decides, and events
add the files that git does not compare; elsewhere there are only events.

A snapshot is a tree object that git writes into the run's temporary directory. Nothing is written into the repository.
"""

import os
import posixpath
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_mux._util.frozen_dataclasses import dataclass
from agent_mux._util.pydantic_support import PydanticCompatible
from agent_mux.errors import AgentMuxError
from agent_mux.events import (
    FileCreateEvent,
    FileDeleteEvent,
    FilePatchEvent,
    FileWriteEvent,
)
from agent_mux.sdk.unified_diff import count_lines
from agent_mux.worktrees.git import ChangeKind
from agent_mux.worktrees.repositories import find_repository
from agent_mux.worktrees.snapshots import WorkingTreeSnapshots, WorkingTreeState

SNAPSHOT_TIMEOUT = 5.0  # seconds for one snapshot; a larger working tree is not compared
MAX_CHANGED_FILES = 1000
FILE_CHANGES = (FileCreateEvent, FileWriteEvent, FilePatchEvent, FileDeleteEvent)
"""The events that report a change of a file."""


@dataclass(frozen=True, slots=True)
class ChangedFile(PydanticCompatible):
    """A file that was changed during the run."""

    path: str
    """Path relative to the working directory of the run, with `/`; `../` precedes files outside of it."""
    change: ChangeKind
    """What happened to the file between the start and the end of the run."""
    added: int | None = None
    """Number of lines added; None for binary files, and where only a write without its content was reported."""
    removed: int | None = None
    """Number of lines removed; None as for `added`."""

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "ChangedFile":
        """Return the file for the result of `to_dict`."""
        return cls(plain["path"], plain["change"], plain.get("added"), plain.get("removed"))

    def to_dict(self) -> dict[str, Any]:
        """Return the wire format, without absent fields."""
        lines = {"added": self.added, "removed": self.removed}
        return {
            "path": self.path,
            "change": self.change,
            **{name: n for name, n in lines.items() if n is not None},
        }


class ReportedChanges:
    """The changes that the agent's events report."""

    def __init__(self, cwd: str) -> None:
        """Collect nothing yet. `cwd`: the working directory of the run."""
        self._cwd = cwd
        self._files: dict[str, ChangedFile] = {}

    @property
    def files(self) -> list[ChangedFile]:
        """The changed files by path."""
        return [self._files[path] for path in sorted(self._files)]

    def observe(self, event: FileCreateEvent | FileWriteEvent | FilePatchEvent | FileDeleteEvent) -> None:
        """Add the files that one event names."""
        match event:
            case FileCreateEvent():
                self._add(event.path, "created")
            case FileWriteEvent():
                self._add(event.path, "modified")
            case FilePatchEvent():
                self._add(event.path, "modified", *count_lines(event.diff))
            case FileDeleteEvent():
                self._delete(event.path)

    def _add(self, path: str, change: ChangeKind, added: int | None = None, removed: int | None = None) -> None:
        path = relative_path(path, self._cwd)
        before = self._files.get(path)
        if before is None:
            if len(self._files) < MAX_CHANGED_FILES:
                self._files[path] = ChangedFile(path, change, added, removed)
            return
        kind = "modified" if before.change == "deleted" else before.change
        self._files[path] = ChangedFile(path, kind, _sum(before.added, added), _sum(before.removed, removed))

    def _delete(self, path: str) -> None:
        path = relative_path(path, self._cwd)
        before = self._files.pop(path, None)
        if before is None or before.change != "created":
            self._files[path] = ChangedFile(path, "deleted")


class WorkingTreeChanges:
    """Compares the git working tree that contains a directory at two times. All methods block."""

    def __init__(
        self, cwd: str, environ: Mapping[str, str], scratch: Path, start: WorkingTreeState | None = None
    ) -> None:
        """Prepare the comparison.

        Args:
            cwd: The working directory of the run.
            environ: The environment of the run.
            scratch: A directory to create for the snapshots, outside of the working tree.
            start: The first state, if it was determined already.
        """
        self._cwd = cwd
        self._snapshots = _find_snapshots(cwd, environ, scratch) if start is None else start.snapshots
        self._before = "" if start is None else start.tree
        self.end: str | None = None
        """The last snapshot, once it is taken."""

    @property
    def is_possible(self) -> bool:
        """Whether the directory is in a repository, and git is installed."""
        return self._snapshots is not None

    def begin(self, is_wanted: Callable[[], bool] = lambda: True) -> str | None:
        """Take the first snapshot. Returns a warning if there is a repository that cannot be compared."""
        if self._snapshots is None or self._before:
            return None
        try:
            self._snapshots.prepare()
            self._before = self._snapshots.take(is_wanted)
        except (AgentMuxError, OSError) as error:
            if isinstance(error, AgentMuxError) and error.code == "ABORTED":
                return None
            return f"changed files are known from the agent's reports only: {error}"
        return None

    def finish(self, reported: Sequence[ChangedFile]) -> tuple[list[ChangedFile], str | None]:
        """Return the changed files and a warning, if any. `reported`: those that the agent's events report."""
        if not self._before or self._snapshots is None:
            return list(reported), None
        try:
            changed = self._compare(self._snapshots)
            others = self._not_compared(self._snapshots, reported, {file.path for file in changed})
        except (AgentMuxError, OSError) as error:
            return list(reported), f"changed files are known from the agent's reports only: {error}"
        files = sorted([*changed, *others], key=lambda file: file.path)
        return files[:MAX_CHANGED_FILES], None

    def _compare(self, snapshots: WorkingTreeSnapshots) -> list[ChangedFile]:
        cwd = os.path.realpath(self._cwd)
        self.end = snapshots.take()
        return [
            ChangedFile(relative_path(f"{snapshots.top}/{one.path}", cwd), one.change, one.added, one.removed)
            for one in snapshots.differences(self._before, self.end)
        ]

    def _not_compared(
        self, snapshots: WorkingTreeSnapshots, reported: Sequence[ChangedFile], known: set[str]
    ) -> list[ChangedFile]:
        """Return the reported files that git does not compare: ignored ones, and those outside of the repository."""
        inside, outside = {}, []
        for file in reported:
            absolute = os.path.realpath(os.path.join(self._cwd, file.path))  # noqa: PTH118
            if is_in_tree(Path(absolute), snapshots.top):
                inside[absolute] = file
            elif file.path not in known:
                outside.append(file)
        unknown = {path: file for path, file in inside.items() if file.path not in known}
        if not unknown:
            return outside
        stdin = "\0".join(unknown).encode("utf-8", "surrogateescape")
        answer = snapshots.run(("check-ignore", "-z", "--stdin"), stdin=stdin, accepted=(0, 1))
        return [*outside, *(unknown[path] for path in answer.split("\0") if path in unknown)]


def is_in_tree(path: Path, top: Path) -> bool:
    """Return whether git compares a file, unless it is ignored: it is below `top`, and not in a repository below it."""
    nested = (parent for parent in path.parents if parent != top and parent.is_relative_to(top))
    return path.is_relative_to(top) and not any((parent / ".git").exists() for parent in nested)


def _find_snapshots(cwd: str, environ: Mapping[str, str], scratch: Path) -> WorkingTreeSnapshots | None:
    found = find_repository(Path(os.path.realpath(cwd)))
    git = shutil.which("git", path=environ.get("PATH", os.defpath)) if found else None
    if found is None or git is None:
        return None
    return WorkingTreeSnapshots(git, found, scratch, environ, SNAPSHOT_TIMEOUT)


def relative_path(path: str, directory: str) -> str:
    """Return a path relative to the directory, with `/`."""
    return posixpath.normpath(os.path.relpath(os.path.join(directory, path), directory).replace(os.sep, "/"))  # noqa: PTH118


def _sum(before: int | None, now: int | None) -> int | None:
    return None if before is None or now is None else before + now
