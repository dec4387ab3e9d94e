"""Resolve a path to an open directory and a name in it, without following a link out of the workspace.

Each directory is opened relative to the one before it with `O_NOFOLLOW`, and symbolic links are read and followed here,
component by component. So no link can be put in the way between the check and the open: either the checked file is
opened, or opening fails. This needs `dir_fd`, which Linux and macOS have.
"""

import errno
import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from agent_loop.errors import WorkspaceError
from agent_loop.workspace.entries import Parts, printable

MAX_LENGTH = 4096
"""The longest accepted path in characters: PATH_MAX of Linux."""
MAX_LINKS = 40
"""The most links that one path may lead through, as in Linux; more are treated as a loop."""
OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class WorkspaceRoot:
    """A directory that paths may lead into."""

    path: Path
    """The absolute path, with symbolic links resolved."""
    is_writable: bool
    """Whether tools may change what is in it."""
    names: tuple[Parts, ...]
    """The prefixes of absolute paths that denote this root: the path as it was given, and the resolved one."""

    @classmethod
    def of(cls, path: str | os.PathLike[str], *, is_writable: bool = False) -> "WorkspaceRoot":
        """Return the root at `path`. Raises `WorkspaceError` if it is not a directory."""
        given = Path(path).absolute()
        resolved = given.resolve()
        if not resolved.is_dir():
            raise WorkspaceError(f"{shortened(str(path))} is not a directory; create it first")
        return cls(resolved, is_writable, (given.parts[1:], resolved.parts[1:]))


@dataclass(frozen=True, slots=True)
class FileLocation:
    """A name in an open directory. The directory is closed at the end of the `with` block of `open_location`."""

    root: WorkspaceRoot
    directory: int
    """The descriptor of the directory."""
    parts: Parts
    """The components below the root; only the last one may be a link. Empty for the root."""

    @property
    def name(self) -> str:
        """The last component, for use with `dir_fd=location.directory`; "." for the root."""
        return self.parts[-1] if self.parts else "."

    @property
    def path(self) -> Path:
        """The absolute path of the location."""
        return self.root.path.joinpath(*self.parts)


@dataclass(frozen=True, slots=True)
class PathExpression:
    """A path split into components. ".." is kept, because its target depends on the links before it."""

    is_absolute: bool
    parts: Parts


@contextmanager
def open_location(
    roots: Sequence[WorkspaceRoot], path: str | os.PathLike[str], *, make_parents: bool = False, follow: bool = True
) -> Iterator[FileLocation]:
    """Open the directory that contains `path` for the length of the block. The last component need not exist.

    `follow`: follow a link in the last component, too. `make_parents`: create missing directories in writable roots.
    Raises `WorkspaceError` if the path leaves the roots, and `OSError` if a directory on the way cannot be opened.
    """
    resolver = _PathResolver(roots, path, make_parents=make_parents)
    try:
        yield resolver.resolve(parse_path(path), follow=follow)
    finally:
        resolver.close()


def parse_path(path: str | os.PathLike[str]) -> PathExpression:
    """Split a path into components. Raises `WorkspaceError` for text that cannot be a path."""
    text = os.fspath(path)
    if not text:
        raise WorkspaceError('the path is empty; give a path, for example "." for the whole workspace')
    if "\0" in text:
        raise WorkspaceError(f"the path {shortened(text)} contains a NUL character; give a path without it")
    if len(text) > MAX_LENGTH:
        raise WorkspaceError(f"the path {shortened(text)} is {len(text)} characters long; the limit is {MAX_LENGTH}")
    try:
        os.fsencode(text)
    except UnicodeEncodeError as error:
        raise WorkspaceError(
            f"the path {shortened(text)} contains a character that no file name can contain"
        ) from error
    return PathExpression(text.startswith("/"), tuple(part for part in text.split("/") if part not in {"", "."}))


def shortened(text: str) -> str:
    """Return a path for an error message: quoted, printable, and limited to 200 characters."""
    return repr(printable(text if len(text) <= 200 else f"{text[:200]}..."))


class _PathResolver:
    """Follows one path; holds one open directory of one root at a time."""

    def __init__(
        self, roots: Sequence[WorkspaceRoot], requested: str | os.PathLike[str], *, make_parents: bool
    ) -> None:
        self._roots = roots
        self._requested = shortened(os.fspath(requested))
        self._make_parents = make_parents
        self._root = roots[0]
        self._parts: list[str] = []
        self._directory = -1

    def resolve(self, expression: PathExpression, *, follow: bool) -> FileLocation:
        pending = deque(self._begin(expression, self._roots[0]))
        attempts = 0
        while pending:
            part = pending.popleft()
            if part == "..":
                self._up()
                continue
            target = self._link_target(part) if pending or follow else None
            if target is None and not pending:
                return FileLocation(self._root, self._directory, (*self._parts, part))
            if target is not None:
                pending.extendleft(reversed(self._begin(parse_path(target), None)))
            elif not self._down(part):
                pending.appendleft(part)
            else:
                continue
            attempts += 1
            if attempts > MAX_LINKS:
                raise WorkspaceError(
                    f"{self._requested} leads through more than {MAX_LINKS} links; use the path of the file itself"
                )
        return FileLocation(self._root, self._directory, tuple(self._parts))

    def close(self) -> None:
        if self._directory >= 0:
            os.close(self._directory)
            self._directory = -1

    def _begin(self, expression: PathExpression, base: WorkspaceRoot | None) -> Parts:
        """Open the directory where the expression begins and return its remaining components.

        `base` is the root of a relative expression; None: relative to the open directory.
        """
        if expression.is_absolute:
            base, rest = self._root_of(expression.parts)
        else:
            rest = expression.parts
        if base is not None:
            self._root, self._parts = base, []
            self._enter(os.open(base.path, OPEN_DIRECTORY))
        return rest

    def _root_of(self, parts: Parts) -> tuple[WorkspaceRoot, Parts]:
        for root in self._roots:
            for names in root.names:
                if parts[: len(names)] == names:
                    return root, parts[len(names) :]
        raise self._outside()

    def _enter(self, directory: int) -> None:
        self.close()
        self._directory = directory

    def _link_target(self, part: str) -> str | None:
        """Return the target of a link, None if `part` is not a link or does not exist."""
        try:
            return os.readlink(part, dir_fd=self._directory)
        except OSError as error:
            if error.errno in {errno.EINVAL, errno.ENOENT}:
                return None
            raise

    def _down(self, part: str) -> bool:
        """Enter a subdirectory. Return False if it was replaced by a link since it was checked."""
        if self._make_parents and self._root.is_writable:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=self._directory)
        try:
            below = os.open(part, OPEN_DIRECTORY, dir_fd=self._directory)
        except OSError as error:
            # Opening a link gives ELOOP on macOS and ENOTDIR on Linux; opening a file gives ENOTDIR, too.
            if error.errno in {errno.ELOOP, errno.ENOTDIR} and self._link_target(part) is not None:
                return False
            raise
        self._enter(below)
        self._parts.append(part)
        return True

    def _up(self) -> None:
        """Enter the parent directory, opened again from the root: ".." on the disk may have moved in the meantime."""
        if not self._parts:
            raise self._outside()
        above = self._parts[:-1]
        self._begin(PathExpression(is_absolute=False, parts=()), self._root)
        for part in above:
            self._enter(os.open(part, OPEN_DIRECTORY, dir_fd=self._directory))
        self._parts = above

    def _outside(self) -> WorkspaceError:
        return WorkspaceError(
            f"{self._requested} leads out of the workspace {shortened(str(self._roots[0].path))}; "
            "use a path inside it, relative to it"
        )
