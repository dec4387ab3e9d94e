"""A directory that paths cannot leave. What it promises holds for every path, whoever made it up.

Everything here blocks: in the event loop, call it in a thread.
"""

import os
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agent_loop.errors import WorkspaceError
from agent_loop.workspace.entries import Entry, FileContent, Parts, Written, by_bytes, kind_of_mode, printable
from agent_loop.workspace.expressions import shortened
from agent_loop.workspace.reading import look, look_at, open_file, told, what
from agent_loop.workspace.replacing import replace_file
from agent_loop.workspace.resolving import DIRECTORY, Place, Root, located
from agent_loop.workspace.walking import files_below

MAX_FILE_BYTES = 64 * 1024 * 1024
"""Of a file that is read whole."""
PathLike = str | os.PathLike[str]


class Workspace:
    """The directory `root` and what is below it; `readable` are more directories, which are only ever read.

    Paths are relative to the root, or absolute and inside of one of the directories. All methods raise
    `WorkspaceError`, with a sentence for the model.
    """

    def __init__(self, root: PathLike, readable: Sequence[PathLike] = ()) -> None:
        self._roots = (Root.of(root), *(Root.of(each) for each in readable))
        self.changing = threading.RLock()
        """Held by whoever reads a file in order to change it: tools run side by side."""

    @property
    def root(self) -> Path:
        """Absolute, without links."""
        return self._roots[0].path

    @property
    def readable(self) -> tuple[Path, ...]:
        """The other directories, absolute and without links."""
        return tuple(root.path for root in self._roots[1:])

    def resolve(self, path: PathLike) -> Path:
        """The absolute path, without links. For programs that need one: what it leads to may change at any time."""
        with self._at(path) as place:
            return place.root.path.joinpath(*place.parts)

    def relative(self, path: PathLike) -> str:
        """The one name of a file, however it is written: relative to the root, absolute in a readable directory."""
        with self._at(path) as place:
            return self._name(place.root, place.parts)

    def stat(self, path: PathLike, *, follow: bool = True) -> Entry | None:
        """What is there; None: nothing."""
        try:
            with located(self._roots, path, follow=follow) as place:
                return self._entry(place.root, place.parts, look(place))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise told(path, error) from error

    def read_bytes(self, path: PathLike, max_bytes: int = MAX_FILE_BYTES) -> bytes:
        """The whole file. Raises `WorkspaceError` where it is larger than `max_bytes`, and for all but files."""
        return self.read_file(path, max_bytes).data

    def read_file(self, path: PathLike, max_bytes: int = MAX_FILE_BYTES) -> FileContent:
        """As `read_bytes`, and which file it was."""
        with self._at(path) as place, os.fdopen(open_file(place, path), "rb") as file:
            known, data = os.fstat(file.fileno()), file.read(max_bytes + 1)
            name = self._name(place.root, place.parts)
            if len(data) > max_bytes:
                raise WorkspaceError(f"{name} is larger than {max_bytes:,} bytes; search it with grep instead")
            return FileContent(name, self.inside(place), data, known.st_mtime_ns)

    def write_bytes(self, path: PathLike, data: bytes) -> Written:
        """Write it, whole or not at all; directories on the way are made, the permissions of a file are kept."""
        with self.changing, self._at(path, make_parents=True) as place:
            name = self._writable(place, path)
            before = look_at(place.name, place.directory)
            if before is not None and not stat.S_ISREG(before.st_mode):
                raise WorkspaceError(f"{name} is {what(before)}, and cannot be written as a file; choose another path")
            replace_file(place, data, before)
            return Written(name, created=before is None)

    def delete(self, path: PathLike) -> None:
        """Delete a file, or a link (not what it leads to). Directories stay."""
        with self.changing, self._at(path, follow=False) as place:
            name = self._writable(place, path)
            if stat.S_ISDIR(look(place).st_mode):
                raise WorkspaceError(f"{name} is a directory; only files are deleted")
            os.unlink(place.name, dir_fd=place.directory)

    def list(self, path: PathLike = ".") -> tuple[Entry, ...]:
        """What is in a directory, by name. Links are told as links."""
        with self.open_directory(path) as (directory, place), os.scandir(directory) as entries:
            found = [entry.name for entry in entries]
            looked = ((name, look_at(name, directory)) for name in sorted(found, key=by_bytes))
            return tuple(
                self._entry(place.root, (*place.parts, name), known) for name, known in looked if known is not None
            )

    def walk(self, path: PathLike = ".", check: Callable[[], None] = lambda: None) -> Iterator[Entry]:
        """All files below, by name, but for what .gitignore leaves out and `.git` itself. Links are not followed.

        `check` is called at each directory, and may raise in order to stop. Raises `WorkspaceError` after
        `MAX_VISITED` entries, too.
        """
        return files_below(self, path, check)

    @contextmanager
    def open_directory(self, path: PathLike = ".") -> Iterator[tuple[int, Place]]:
        """A descriptor of a directory, open as long as the block."""
        with self._at(path) as place:
            directory = os.open(place.name, DIRECTORY, dir_fd=place.directory)
            try:
                yield directory, place
            finally:
                os.close(directory)

    def inside(self, place: Place) -> Path:
        """The absolute path of a place."""
        return place.root.path.joinpath(*place.parts)

    @contextmanager
    def _at(self, path: PathLike, *, make_parents: bool = False, follow: bool = True) -> Iterator[Place]:
        try:
            with located(self._roots, path, make_parents=make_parents, follow=follow) as place:
                yield place
        except OSError as error:
            raise told(path, error) from error

    def _writable(self, place: Place, path: PathLike) -> str:
        if place.root is not self._roots[0]:
            raise WorkspaceError(f"{shortened(os.fspath(path))} may be read, and not written; write in the workspace")
        return self._name(place.root, place.parts)

    def _name(self, root: Root, parts: Parts) -> str:
        if root is self._roots[0]:
            return printable("/".join(parts)) or "."
        return printable(str(root.path.joinpath(*parts)))

    def _entry(self, root: Root, parts: Parts, known: os.stat_result) -> Entry:
        return Entry(self._name(root, parts), parts, kind_of_mode(known.st_mode), known.st_size, known.st_mtime_ns)
