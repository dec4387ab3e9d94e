"""The frozen start of a comparison: one state of a directory, of which every trial gets its own copy.

    start/     the files, with a repository that has the history of HEAD and nothing else
    objects/   tree objects of the start and of the results (`TreeStore`)

The source is only read. Workspaces share no file with the start or with each other.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from agent_mux._util.files import make_directory, write_text
from agent_mux._util.paths import config_dir
from agent_mux._util.sanitize import replace_surrogates
from agent_mux.compare.index_file import adapt_index
from agent_mux.compare.ledger import START
from agent_mux.compare.records import PatchedFile, StartRecord, StoredPatch
from agent_mux.compare.start_repository import RepositoryCopy, SourceRepository, find_source
from agent_mux.compare.tree_store import IsWanted, TreeStore, always
from agent_mux.errors import AgentMuxError
from agent_mux.worktrees.carrying import Carried
from agent_mux.worktrees.copying import copy_tree
from agent_mux.worktrees.directory_copies import copy_directory, notes_of
from agent_mux.worktrees.git import REPOSITORY_VARIABLES, FileDifference
from agent_mux.worktrees.removal import remove_directory
from agent_mux.worktrees.setup import run_setup


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copied:
    """What the copy of a source consists of."""

    carried: Carried
    excludes: bytes = b""
    notes: Sequence[str] = ()


class FrozenStart:
    """One state of a directory, and copies of it. All methods block; call them in a thread."""

    def __init__(self, folder: Path, record: StartRecord, store: TreeStore) -> None:
        """Initialize from what is stored; call `freeze` or `open` instead."""
        self.folder = folder
        self.record = record
        self.store = store

    @classmethod
    def freeze(  # noqa: PLR0913  # all but three have a default
        cls,
        cwd: Path,
        folder: Path,
        environ: Mapping[str, str],
        *,
        carry_changes: bool = True,
        setup: Sequence[str] = (),
        is_wanted: IsWanted = always,
    ) -> "FrozenStart":
        """Copy the state of a directory into the folder of a comparison, and run the setup command there.

        Args:
            cwd: The directory; of a directory in a repository, the whole repository is copied.
            folder: The folder of the comparison; it is created.
            environ: Environment of git and of the setup command.
            carry_changes: Whether the uncommitted changes of a repository belong to the start.
            setup: A command that prepares the files, for example `npm ci`.
            is_wanted: Polled; the work ends once it returns False.

        Raises:
            AgentMuxError: The directory cannot be frozen, or the setup command failed. Nothing is left in the folder.
        """
        environ = {name: value for name, value in environ.items() if name not in REPOSITORY_VARIABLES}
        git = _find_git(environ)
        cwd = Path(os.path.realpath(cwd))
        if not cwd.is_dir():
            raise AgentMuxError("VALIDATION_ERROR", f"{cwd} is not a directory")
        source = find_source(git, cwd, environ)
        start, objects = folder / "start", folder / "objects"
        try:
            make_directory(folder)
            copied = _copy_source(source, cwd, start, environ, carry_changes=carry_changes, is_wanted=is_wanted)
            inside = "." if source is None else os.path.relpath(cwd, source.top)
            work = _working_directory(start, inside)
            if setup:
                run_setup(tuple(setup), str(work), environ, is_wanted)
            store = TreeStore(git, objects, environ)
            history = None if source is None else start / ".git" / "objects"
            store.create("sha1" if source is None else source.object_format, history, copied.excludes)
            tree = store.take_start(start, is_wanted)
            if setup:
                store.find_relocated(start)
            record = _record(source, cwd, inside, tree, copied, tuple(setup))
            write_text(folder / START, msgspec.json.encode(record).decode())
        except BaseException as error:
            for path in (start, objects):
                remove_directory(path)
            if isinstance(error, OSError):
                why = f"{cwd} cannot be copied: {error.filename or ''}: {error.strerror or error}"
                raise AgentMuxError("SPAWN_ERROR", why) from error
            raise
        return cls(folder, record, store)

    @classmethod
    def open(cls, folder: Path, environ: Mapping[str, str]) -> "FrozenStart":
        """Return the start that is in the folder of a comparison. Raises `AgentMuxError`."""
        try:
            record = msgspec.json.decode((folder / START).read_bytes(), type=StartRecord)
        except (OSError, msgspec.DecodeError) as error:
            raise AgentMuxError("VALIDATION_ERROR", f"{folder} has no complete frozen start: {error}") from error
        return cls(folder, record, TreeStore(_find_git(environ), folder / "objects", environ))

    @property
    def path(self) -> Path:
        """Directory with the frozen files."""
        return self.folder / "start"

    def require_patch(self, patch: Path) -> None:
        """Raise `AgentMuxError` unless a patch applies to the files of the start."""
        self.store.require_patch(self.path, patch)

    def make_workspace(self, path: Path, is_wanted: IsWanted = always) -> "Workspace":
        """Copy the start to a new directory. Raises `AgentMuxError` after removing an incomplete copy."""
        workspace = Workspace(self, path)
        try:
            make_directory(path.parent)
            copy_tree(str(self.path), str(path), is_wanted)
            index = path / ".git" / "index"
            if self.record.is_repository and index.exists():
                adapt_index(self.path / ".git" / "index", index, self.path, path)
            self.store.add_workspace(path.name, self.path, path)
        except BaseException as error:
            if not isinstance(error, FileExistsError):
                workspace.remove()
            if isinstance(error, OSError | ValueError):
                raise AgentMuxError("SPAWN_ERROR", f"the workspace {path} cannot be made: {error}") from error
            raise
        return workspace

    def check_out(self, path: Path, tree: str, is_wanted: IsWanted = always) -> "Workspace":
        """Copy the start to a new directory and give it the files of a result. Raises `AgentMuxError`."""
        workspace = self.make_workspace(path, is_wanted)
        try:
            if tree != self.record.tree:
                changed = [one.path for one in self.differences(self.record.tree, tree)]
                self.restore(workspace, changed, tree, is_wanted)
        except BaseException:
            workspace.remove()
            raise
        return workspace

    def restore(
        self, workspace: "Workspace", paths: Sequence[str], tree: str | None = None, is_wanted: IsWanted = always
    ) -> None:
        """Write files as they are in a tree object, and remove those that are not in it.

        Args:
            workspace: Where to write them.
            paths: Files, or directories with all their files; relative to the top of the workspace, with `/`.
            tree: The tree object; default: that of the start.
            is_wanted: Polled.

        Raises:
            AgentMuxError: A file cannot be written.
        """
        if not paths:
            return
        tree = tree or self.record.tree
        wanted = self.store.files(tree, paths)
        for path in {*paths, *wanted}:
            _remove_file(workspace.path, path)
        if wanted:
            self.store.write_files(workspace.path.name, workspace.path, tree, wanted, is_wanted)

    def differences(self, before: str, after: str) -> list[FileDifference]:
        """Return the files that differ between two tree objects. Bytes of names that are no UTF-8 are surrogates."""
        return self.store.differences(before, after)


class Workspace:
    """A copy of the start, in which one agent works or the checks run. All methods block."""

    def __init__(self, start: FrozenStart, path: Path) -> None:
        """Initialize from an existing copy; call `FrozenStart.make_workspace` instead."""
        self._start = start
        self.path = path
        self.cwd = path / start.record.subdirectory
        """The working directory of the agent."""

    def snapshot(self, is_wanted: IsWanted = always) -> str:
        """Return the id of a tree object with the present files, without ignored ones. Raises `AgentMuxError`."""
        return self._start.store.take(self.path.name, self.path, self._start.record.tree, is_wanted)

    def write_patch(self, target: Path, relative: str, tree: str | None = None) -> StoredPatch:
        """Write the changes since the start as a patch.

        Args:
            target: The file to write; its directory exists.
            relative: Its path in the record.
            tree: The result; default: the present files.

        Raises:
            AgentMuxError: The files cannot be read or the patch cannot be written.
        """
        start, store = self._start.record.tree, self._start.store
        tree = tree or self.snapshot()
        try:
            store.write_patch(start, tree, target)
            size = target.stat().st_size
        except OSError as error:
            raise AgentMuxError("INTERNAL", f"{target} cannot be written: {error.strerror or error}") from error
        files = tuple(
            PatchedFile(path=replace_surrogates(one.path), change=one.change, added=one.added, removed=one.removed)
            for one in store.differences(start, tree)
        )
        return StoredPatch(path=relative, size=size, files=files, start=start, end=tree)

    def apply(self, patch: Path) -> None:
        """Apply a patch that was made for the start. Raises `AgentMuxError`."""
        self._start.store.apply(self.path, patch)

    def remove(self) -> None:
        """Remove the workspace, whatever it contains. Raises `AgentMuxError`."""
        self._start.store.remove_workspace(self.path.name)
        remove_directory(self.path)


def _find_git(environ: Mapping[str, str]) -> str:
    git = shutil.which("git", path=environ.get("PATH", os.defpath))
    if git is None:
        raise AgentMuxError("VALIDATION_ERROR", "comparisons need git, which is not on PATH: install it")
    return git


def _copy_source(  # noqa: PLR0913  # of one caller
    source: SourceRepository | None,
    cwd: Path,
    start: Path,
    environ: Mapping[str, str],
    *,
    carry_changes: bool,
    is_wanted: IsWanted,
) -> _Copied:
    excluded = (config_dir(), start.parent)
    if source is not None:
        copy = RepositoryCopy(source, start, environ, is_wanted)
        carried = copy.create(carry_changes=carry_changes, excluded=excluded)
        return _Copied(carried=carried, excludes=copy.excludes, notes=copy.notes)
    result = copy_directory(cwd, start, is_wanted, excluded)
    return _Copied(carried=result.carried, notes=notes_of(result))


def _working_directory(start: Path, inside: str) -> Path:
    work = start / inside
    if not Path(os.path.realpath(work)).is_relative_to(os.path.realpath(start)):
        raise AgentMuxError("VALIDATION_ERROR", f"{inside} is a link out of the repository: use its destination")
    work.mkdir(parents=True, exist_ok=True)
    return work


def _record(  # noqa: PLR0913, PLR0917  # of one caller
    source: SourceRepository | None, cwd: Path, inside: str, tree: str, copied: _Copied, setup: tuple[str, ...]
) -> StartRecord:
    carried = copied.carried

    def names(paths: Sequence[str]) -> tuple[str, ...]:
        return tuple(map(replace_surrogates, paths))

    described = carried.describe("each workspace")
    return StartRecord(
        source=replace_surrogates(str(cwd if source is None else source.top)),
        subdirectory=inside,
        is_repository=source is not None,
        base_commit=None if source is None else source.head,
        tree=tree,
        changed=names(carried.changed),
        included=names(carried.included),
        shared=names(carried.shared),
        submodules=names(carried.submodules),
        skipped=names(carried.skipped),
        setup=setup,
        notes=names([*([] if described is None else [described]), *copied.notes]),
    )


def _remove_file(top: Path, relative: str) -> None:
    """Remove an entry without following a link; a parent that is not a directory is removed instead of it."""
    place = top
    parts = relative.rstrip("/").split("/")
    for part in parts[:-1]:
        place /= part
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            place.unlink()
            return
    place /= parts[-1]
    if place.is_symlink() or not place.is_dir():
        place.unlink(missing_ok=True)
        _remove_empty(top, place.parent)
    else:
        remove_directory(place)


def _remove_empty(top: Path, directory: Path) -> None:
    while directory != top:
        try:
            directory.rmdir()
        except OSError:
            return
        directory = directory.parent
