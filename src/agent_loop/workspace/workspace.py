"""A directory that tools read and write, and that no path can lead out of, whoever chose the path.

All functions block: call them in a worker thread from the event loop.
"""

import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agent_loop.errors import WorkspaceError
from agent_loop.workspace.entries import (
    DirectoryEntry,
    FileContent,
    Parts,
    PathLike,
    WriteResult,
    by_bytes,
    kind_of_mode,
    printable,
)
from agent_loop.workspace.files import (
    describe_type,
    open_file,
    replace_file,
    stat_location,
    stat_name,
    workspace_error,
)
from agent_loop.workspace.gitignore import IgnoreFiles
from agent_loop.workspace.paths import OPEN_DIRECTORY, FileLocation, WorkspaceRoot, open_location, shortened

MAX_FILE_BYTES = 64 * 1024 * 1024
"""The largest file that is read by default."""
MAX_VISITED = 200_000
"""The most entries that one walk visits."""


class Workspace:
    """The directories `root` and `writable` for reading and writing, and the `readable` ones for reading only.

    Paths are relative to the root, or absolute and inside one of the directories. All methods raise `WorkspaceError`
    with a sentence for the model.
    """

    def __init__(self, root: PathLike, readable: Sequence[PathLike] = (), *, writable: Sequence[PathLike] = ()) -> None:
        changeable = (WorkspaceRoot.of(each, is_writable=True) for each in (root, *writable))
        self._roots = (*changeable, *(WorkspaceRoot.of(each) for each in readable))
        self.changing = threading.RLock()
        """The lock that protects reading a file, changing the text and writing it back: tools run in parallel."""

    @property
    def root(self) -> Path:
        """The absolute path of the root, with symbolic links resolved."""
        return self._roots[0].path

    @property
    def readable(self) -> tuple[Path, ...]:
        """The absolute paths of all directories but the root, with symbolic links resolved."""
        return tuple(root.path for root in self._roots[1:])

    def resolve(self, path: PathLike) -> Path:
        """Return the absolute path with links resolved, for programs that need one. It may become stale at any time."""
        with self._open(path) as location:
            return location.path

    def is_writable(self, path: PathLike) -> bool:
        """Return whether the path, with links resolved, is inside of a directory for writing; it need not exist."""
        try:
            resolved = (self.root / path).resolve()
            is_loop = resolved.is_symlink()  # from Python 3.13 on, `resolve` does not raise for it
        except (OSError, RuntimeError, ValueError):  # a loop of links, or a null character
            return False
        if is_loop:
            return False
        return any(root.is_writable and resolved.is_relative_to(root.path) for root in self._roots)

    def relative(self, path: PathLike) -> str:
        """Return the canonical name of a file: relative to the root, or absolute in a read-only directory."""
        with self._open(path) as location:
            return self._name(location.root, location.parts)

    def stat(self, path: PathLike, *, follow: bool = True) -> DirectoryEntry | None:
        """Return the entry at `path`, None if there is none. `follow`: describe the target of a link."""
        try:
            with open_location(self._roots, path, follow=follow) as location:
                return self._entry(location.root, location.parts, stat_location(location))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise workspace_error(path, error) from error

    def read_bytes(self, path: PathLike, max_bytes: int = MAX_FILE_BYTES) -> bytes:
        """Return the content of a regular file. Raises `WorkspaceError` if it is larger than `max_bytes`."""
        return self.read_file(path, max_bytes).data

    def read_file(self, path: PathLike, max_bytes: int = MAX_FILE_BYTES) -> FileContent:
        """Return the content of a regular file with its canonical name and path; limits are those of `read_bytes`."""
        with self._open(path) as location, os.fdopen(open_file(location, path), "rb") as file:
            known, data = os.fstat(file.fileno()), file.read(max_bytes + 1)
            name = self._name(location.root, location.parts)
            if len(data) > max_bytes:
                raise WorkspaceError(f"{name} is larger than {max_bytes:,} bytes; search it with grep instead")
            return FileContent(name, location.path, data, known.st_mtime_ns)

    def write_bytes(self, path: PathLike, data: bytes) -> WriteResult:
        """Write a file atomically. Missing directories are created; the permissions of an existing file are kept."""
        with self.changing, self._open(path, make_parents=True) as location:
            name = self._writable_name(location, path)
            before = stat_name(location.name, location.directory)
            if before is not None and not stat.S_ISREG(before.st_mode):
                raise WorkspaceError(
                    f"{name} is {describe_type(before)} and cannot be written as a file; choose another path"
                )
            replace_file(location, data, before)
            return WriteResult(name, created=before is None)

    def delete(self, path: PathLike) -> None:
        """Delete a file, or a link but not its target. Raises `WorkspaceError` for directories."""
        with self.changing, self._open(path, follow=False) as location:
            name = self._writable_name(location, path)
            if stat.S_ISDIR(stat_location(location).st_mode):
                raise WorkspaceError(f"{name} is a directory; only files are deleted")
            os.unlink(location.name, dir_fd=location.directory)

    def move(self, source: PathLike, target: PathLike) -> None:
        """Rename a file or a link, with its permissions. Missing directories of the target are created.

        Raises `WorkspaceError` if something is at the target.
        """
        with (
            self.changing,
            self._open(source, follow=False) as old,
            self._open(target, make_parents=True, follow=False) as new,
        ):
            self._writable_name(old, source)
            name = self._writable_name(new, target)
            if stat.S_ISDIR(stat_location(old).st_mode):
                raise WorkspaceError(f"{shortened(os.fspath(source))} is a directory; only files are moved")
            if stat_name(new.name, new.directory) is not None:
                raise WorkspaceError(f"{name} exists already; choose another path")
            os.rename(old.name, new.name, src_dir_fd=old.directory, dst_dir_fd=new.directory)

    def list(self, path: PathLike = ".") -> tuple[DirectoryEntry, ...]:
        """Return the entries of a directory, sorted by name. Links are listed as links."""
        with self.open_directory(path) as (directory, location), os.scandir(directory) as entries:
            names = sorted((entry.name for entry in entries), key=by_bytes)
            statuses = ((name, stat_name(name, directory)) for name in names)
            return tuple(
                self._entry(location.root, (*location.parts, name), known)
                for name, known in statuses
                if known is not None
            )

    def walk(self, path: PathLike = ".", check: Callable[[], None] = lambda: None) -> Iterator[DirectoryEntry]:
        """Iterate over all files below `path`, sorted by name; links are not followed.

        Files ignored by .gitignore and the directory `.git` are left out. `check` is called in each directory and may
        raise to stop the walk. Raises `WorkspaceError` after `MAX_VISITED` entries. Each directory is opened again
        from the root, so a link that replaces it stops the descent.
        """
        with self.open_directory(path) as (_, location):
            start, root = location.path, location.root.path
        ignored = IgnoreFiles(self, root)
        pending = [iter(self.list(start))]
        visited = 0
        while pending:
            entry = next(pending[-1], None)
            if entry is None:
                pending.pop()
                continue
            visited += 1
            if visited > MAX_VISITED:
                raise WorkspaceError(f"{path} contains more than {MAX_VISITED:,} entries; use a narrower path")
            if entry.kind not in {"file", "directory"}:
                continue
            if ignored.excludes(entry.parts, is_directory=entry.kind == "directory"):
                continue
            if entry.kind == "file":
                yield entry
                continue
            check()
            pending.append(iter(self._list_or_skip(entry, root.joinpath(*entry.parts))))

    @contextmanager
    def open_directory(self, path: PathLike = ".") -> Iterator[tuple[int, FileLocation]]:
        """Open a directory for the length of the block; yields its descriptor and location."""
        with self._open(path) as location:
            directory = os.open(location.name, OPEN_DIRECTORY, dir_fd=location.directory)
            try:
                yield directory, location
            finally:
                os.close(directory)

    @contextmanager
    def _open(self, path: PathLike, *, make_parents: bool = False, follow: bool = True) -> Iterator[FileLocation]:
        try:
            with open_location(self._roots, path, make_parents=make_parents, follow=follow) as location:
                yield location
        except OSError as error:
            raise workspace_error(path, error) from error

    def _list_or_skip(self, entry: DirectoryEntry, path: Path) -> tuple[DirectoryEntry, ...]:
        """Return the entries of a directory; none if it cannot be opened or was replaced by a link."""
        try:
            found = self.list(path)
        except WorkspaceError:
            return ()
        return tuple(each for each in found if each.parts[:-1] == entry.parts)

    def _writable_name(self, location: FileLocation, path: PathLike) -> str:
        if not location.root.is_writable:
            raise WorkspaceError(f"{shortened(os.fspath(path))} is read-only; write to a path in the workspace")
        return self._name(location.root, location.parts)

    def _name(self, root: WorkspaceRoot, parts: Parts) -> str:
        if root is self._roots[0]:
            return printable("/".join(parts)) or "."
        return printable(str(root.path.joinpath(*parts)))

    def _entry(self, root: WorkspaceRoot, parts: Parts, known: os.stat_result) -> DirectoryEntry:
        return DirectoryEntry(
            self._name(root, parts), parts, kind_of_mode(known.st_mode), known.st_size, known.st_mtime_ns
        )
