"""From a path to an open directory and a name in it, without ever following a link out of the roots.

Each directory is opened relative to the one before it with `O_NOFOLLOW`, and symbolic links are read and followed here,
name by name. So there is no moment between looking and opening at which somebody could put a link in the way: what is
opened is what was looked at, or the opening fails. Needs `dir_fd`, which Linux and macOS have.
"""

import errno
import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from agent_loop.errors import WorkspaceError
from agent_loop.workspace.entries import Parts
from agent_loop.workspace.expressions import Expression, expression_of, shortened

MAX_LINKS = 40
"""Links in one path, as Linux has it; more of them are a circle."""
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Root:
    """A directory that paths may lead into."""

    path: Path
    """Without links."""
    names: tuple[Parts, ...]
    """How absolute paths may begin that mean it: as it was given, and without links."""

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> "Root":
        """Raises `WorkspaceError` where there is no such directory."""
        given = Path(path).absolute()
        resolved = given.resolve()
        if not resolved.is_dir():
            raise WorkspaceError(f"{shortened(str(path))} is no directory; make it first")
        return cls(resolved, (given.parts[1:], resolved.parts[1:]))


@dataclass(frozen=True, slots=True)
class Place:
    """A name in an open directory. The directory is closed when the `with` of `located` ends."""

    root: Root
    directory: int
    parts: Parts
    """From the root, free of links but for the last. Empty: the root."""

    @property
    def name(self) -> str:
        """To be used with `dir_fd=place.directory`."""
        return self.parts[-1] if self.parts else "."


@contextmanager
def located(
    roots: Sequence[Root], path: str | os.PathLike[str], *, make_parents: bool = False, follow: bool = True
) -> Iterator[Place]:
    """Where `path` is; the last name need not exist. `follow`: a link there is followed as well.

    Raises `WorkspaceError` where it leaves the roots, and `OSError` where a directory on the way cannot be opened.
    """
    walker = _Walker(roots, path, make_parents=make_parents)
    try:
        yield walker.go(expression_of(path), follow=follow)
    finally:
        walker.close()


class _Walker:
    """Stands in one open directory of one root."""

    def __init__(self, roots: Sequence[Root], asked: str | os.PathLike[str], *, make_parents: bool) -> None:
        self._roots = roots
        self._asked = shortened(os.fspath(asked))
        self._make_parents = make_parents
        self._root = roots[0]
        self._parts: list[str] = []
        self._directory = -1

    def go(self, expression: Expression, *, follow: bool) -> Place:
        pending = deque(self._begin(expression, self._roots[0]))
        attempts = 0
        while pending:
            part = pending.popleft()
            if part == "..":
                self._up()
                continue
            target = self._link(part) if pending or follow else None
            if target is None and not pending:
                return Place(self._root, self._directory, (*self._parts, part))
            if target is not None:
                pending.extendleft(reversed(self._begin(expression_of(target), None)))
            elif not self._down(part):
                pending.appendleft(part)
            else:
                continue
            attempts += 1
            if attempts > MAX_LINKS:
                raise WorkspaceError(f"{self._asked} leads through more than {MAX_LINKS} links; name the file itself")
        return self._here()

    def close(self) -> None:
        if self._directory >= 0:
            os.close(self._directory)
            self._directory = -1

    def _begin(self, expression: Expression, base: Root | None) -> Parts:
        """Stand where the expression begins, and say what is left of it. `base` None: where we stand."""
        if expression.is_absolute:
            base, rest = self._root_of(expression.parts)
        else:
            rest = expression.parts
        if base is not None:
            self._root, self._parts = base, []
            self._stand(os.open(base.path, DIRECTORY))
        return rest

    def _root_of(self, parts: Parts) -> tuple[Root, Parts]:
        for root in self._roots:
            for names in root.names:
                if parts[: len(names)] == names:
                    return root, parts[len(names) :]
        raise self._leaves()

    def _stand(self, directory: int) -> None:
        self.close()
        self._directory = directory

    def _link(self, part: str) -> str | None:
        """Where the link leads; None: it is no link, or is not there."""
        try:
            return os.readlink(part, dir_fd=self._directory)
        except OSError as error:
            if error.errno in {errno.EINVAL, errno.ENOENT}:
                return None
            raise

    def _down(self, part: str) -> bool:
        """False: there is a link now, where none was a moment ago."""
        if self._make_parents and self._root is self._roots[0]:
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=self._directory)
        try:
            below = os.open(part, DIRECTORY, dir_fd=self._directory)
        except OSError as error:
            # A link is ELOOP on macOS, ENOTDIR on Linux; so is a file.
            if error.errno in {errno.ELOOP, errno.ENOTDIR} and self._link(part) is not None:
                return False
            raise
        self._stand(below)
        self._parts.append(part)
        return True

    def _up(self) -> None:
        """The directory above, opened anew from the root: ".." on the disk may lead elsewhere by now."""
        if not self._parts:
            raise self._leaves()
        above = self._parts[:-1]
        self._begin(Expression(is_absolute=False, parts=()), self._root)
        for part in above:
            self._stand(os.open(part, DIRECTORY, dir_fd=self._directory))
        self._parts = above

    def _here(self) -> Place:
        """The directory we stand in, as a name in itself: nobody can replace that."""
        return Place(self._root, self._directory, tuple(self._parts))

    def _leaves(self) -> WorkspaceError:
        return WorkspaceError(
            f"{self._asked} leads out of the workspace {shortened(str(self._roots[0].path))}; "
            "use a path inside of it, relative to it"
        )
