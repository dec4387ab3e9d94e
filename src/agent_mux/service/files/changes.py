"""Which files a run changed, and the difference as a patch.

In a git repository git decides, by comparing the working directory as it is now with the commit that was checked out
when the run started; the agent's events add files that git ignores. A file whose inode did not change since the start
is left out, unless the run has a worktree of its own: somebody else changed it before. The copy of a directory without
a repository is compared with its first state. Elsewhere the files are those that events report, without a patch.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.run.changed_files import ChangedFile, is_in_tree
from agent_mux.service.files.opening import checked_path
from agent_mux.service.files.repository import Comparison, OutputTooLargeError, compared
from agent_mux.worktrees.git import ChangeKind, FileDifference
from agent_mux.worktrees.repositories import GitDirectories, find_repository

MAX_FILES = 2000
LARGEST_PATCH = 16 << 20  # bytes
CLOCK_STEP = 100  # milliseconds; file systems take their times from a coarser clock
Reported = Mapping[str, ChangedFile]
"""The files that events report, by path relative to the working directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunWorkspace:
    """The directory in which a run works."""

    directory: Path
    """Without symbolic links."""
    is_own: bool
    """Whether it is in a worktree that only this run uses."""
    roots: Sequence[Path]
    """Directories in which its repository may be."""
    base: str | None
    """The commit that was checked out when the run started, or the tree object of a copied directory; None: none."""
    copied: GitDirectories | None = None
    """For a copy of a directory without a repository: the git directory that compares it with its start, `base`."""
    knows_base: bool = True
    """False for runs of an older release, which did not record the commit."""
    started_at: int
    """Milliseconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """A file that was changed since the start of the run."""

    path: str
    change: ChangeKind
    added: int | None = None
    removed: int | None = None
    is_binary: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changed files of a run."""

    files: Sequence[RunFile]
    is_truncated: bool
    """Whether there are more than `MAX_FILES`."""
    base: str | None
    """The commit that git compared with; None where only events are known."""
    from_git: bool


def changes_of(workspace: RunWorkspace, reported: Reported) -> Changes:
    """Return the changed files of a run. Blocking. Raises `AgentMuxError` if git fails."""
    with _comparison(workspace, reported) as comparison:
        if comparison is None:
            files = [_reported(one) for _, one in sorted(reported.items())]
            return Changes(files=files[:MAX_FILES], is_truncated=len(files) > MAX_FILES, base=None, from_git=False)
        found = {one.path: _change(one) for one in _selected(workspace, comparison, reported)}
        unknown = {path for path in reported.keys() - found.keys() if not path.startswith("../")}
        nested = {path for path in unknown if not is_in_tree(workspace.directory / path, workspace.directory)}
        others = comparison.ignored(unknown - nested) | nested
        found |= {path: _reported(reported[path]) for path in others}
        files = sorted(found.values(), key=lambda one: one.path)
        truncated = len(files) > MAX_FILES
        return Changes(files=files[:MAX_FILES], is_truncated=truncated, base=comparison.base, from_git=True)


def patch_of(workspace: RunWorkspace, reported: Reported, paths: Sequence[str]) -> bytes:
    """Return the unified diff of a run's changes; of some files, if there are `paths`. Blocking.

    Raises:
        AgentMuxError: NOT_FOUND where there is no repository; those of git.
        ValidationError: The patch is too large, or a path leads outside of the directory.
    """
    wanted = {str(checked_path(path)) for path in paths}
    with _comparison(workspace, reported) as comparison:
        if comparison is None:
            reason = "the working directory of the run is in no git repository that has the commit of its start"
            advice = "the `file_patch` events of the run have what its agent reports"
            raise AgentMuxError("NOT_FOUND", f"{reason}, so there is no patch; {advice}")
        selected = [one.path for one in _selected(workspace, comparison, reported) if not wanted or one.path in wanted]
        try:
            return comparison.patch(selected, LARGEST_PATCH)
        except OutputTooLargeError as error:
            allowed = f"paths whose patch has at most {LARGEST_PATCH} bytes; the list of files has the line counts"
            raise ValidationError([FieldError("path", sorted(wanted), allowed)]) from error


def _repository(workspace: RunWorkspace) -> GitDirectories | None:
    """Return the repository of the directory, unless it is one that the agent only refers to."""
    if workspace.copied is not None:
        return workspace.copied
    found = find_repository(workspace.directory)
    if found is None or not workspace.knows_base:
        return None
    common = found.common.resolve()
    if workspace.base is None and (common / "reftable").is_dir():
        return None  # the commit of the start is unknown
    is_above = workspace.directory.is_relative_to(common.parent) and common.name == ".git"
    is_allowed = any(common.is_relative_to(root) for root in workspace.roots)
    return found if is_above or is_allowed or _is_repository_of_roots(common, workspace.roots) else None


def _is_repository_of_roots(common: Path, roots: Sequence[Path]) -> bool:
    """Return whether one of the roots is in the repository, as for the worktree of a run."""
    return any((found := find_repository(root)) is not None and found.common.resolve() == common for root in roots)


@contextmanager
def _comparison(workspace: RunWorkspace, reported: Reported) -> Iterator[Comparison | None]:
    """Compare the directory with the commit of the start; None where that is not possible."""
    repository = _repository(workspace)
    if repository is None:
        yield None
        return
    with compared(workspace.directory, repository, workspace.base) as comparison:
        if not comparison.has_base():
            yield None
            return
        new = (path for path in comparison.untracked() if not path.endswith("/"))  # repositories inside end with it
        comparison.include(path for path in new if _is_new(workspace, path, reported))
        yield comparison


def _selected(workspace: RunWorkspace, comparison: Comparison, reported: Reported) -> Iterator[FileDifference]:
    for one in comparison.differences():
        if one.change == "deleted" or _is_new(workspace, one.path, reported):
            yield one


def _is_new(workspace: RunWorkspace, path: str, reported: Reported) -> bool:
    """Return whether a file changed since the run started, as far as its inode shows."""
    if workspace.is_own or path in reported:
        return True
    try:
        changed_at = (workspace.directory / path).lstat().st_ctime_ns // 1_000_000
    except OSError:
        return True
    return changed_at >= workspace.started_at - CLOCK_STEP


def _change(one: FileDifference) -> RunFile:
    return RunFile(
        path=one.path,
        change=one.change,
        added=one.added,
        removed=one.removed,
        is_binary=one.added is None,
    )


def _reported(one: ChangedFile) -> RunFile:
    return RunFile(path=one.path, change=one.change, added=one.added, removed=one.removed)
