"""The private git directory of a comparison: the files of the start and of the results as tree objects.

Its git never reads the repository of a workspace, which an agent may change or remove. No attribute applies: objects
are the bytes of the files, without a conversion of line endings and without filters.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from agent_mux.compare.index_file import IndexFile, adapt_index
from agent_mux.compare.relocation import files_with_path, relocate
from agent_mux.errors import AgentMuxError
from agent_mux.worktrees.git import (
    RAW_ATTRIBUTES,
    FileDifference,
    difference_words,
    git_error,
    patch_words,
    quoted_path,
    read_differences,
    run_git,
)

TREE_TIMEOUT = 300.0  # seconds for a call of git that may read all files
_START_INDEX = "start.index"
_IGNORED = "ignored"
_RELOCATED = "relocated"
IsWanted = Callable[[], bool]


def always() -> bool:
    """Return that the work is still wanted."""
    return True


class TreeStore:
    """Reads working trees into tree objects, and writes tree objects to working trees. All methods block."""

    def __init__(self, git: str, folder: Path, environ: Mapping[str, str]) -> None:
        """Use a store.

        Args:
            git: Path of the git executable.
            folder: The git directory.
            environ: Environment of git.
        """
        self._git = git
        self._folder = folder
        self._environ = environ
        self._unchanged: set[str] = set()  # indexes that are still those of the start

    def create(self, object_format: str, alternate: Path | None, excludes: bytes) -> None:
        """Create the store.

        Args:
            object_format: `sha1` or `sha256`.
            alternate: Directory of objects that need not be stored again.
            excludes: Patterns of ignored files, as in `.git/info/exclude`.
        """
        words = ("init", "--quiet", "--bare", "--template=", f"--object-format={object_format}", str(self._folder))
        self._run_git(str(self._folder.parent), words, {})
        information = self._folder / "info"
        information.mkdir(exist_ok=True)
        (information / "attributes").write_text(RAW_ATTRIBUTES)
        (information / "exclude").write_bytes(excludes)
        for name in (_IGNORED, _RELOCATED):
            (self._folder / name).touch()
        (self._folder / "indexes").mkdir()
        if alternate is not None:
            (self._folder / "objects" / "info" / "alternates").write_text(
                quoted_path(str(alternate)) + "\n", "utf-8", "surrogateescape"
            )

    def take_start(self, start: Path, is_wanted: IsWanted = always) -> str:
        """Return the tree object of the start, which later snapshots are compared with. Raises `AgentMuxError`."""
        index = start / ".git" / "index"
        if index.exists():
            (self._folder / _START_INDEX).write_bytes(IndexFile(index.read_bytes()).for_snapshots())
        self._write_ignored(start, is_wanted)
        return self._take(start, _START_INDEX, is_wanted)

    def _write_ignored(self, start: Path, is_wanted: IsWanted) -> None:
        """Store the ignored files of the start: they stay ignored, whatever an agent writes into `.gitignore`."""
        words = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
        (self._folder / _IGNORED).write_bytes(_nul_list(self._names(start, _START_INDEX, words, is_wanted)))

    @property
    def ignored(self) -> list[str]:
        """The ignored files and directories of the start; directories end with `/`."""
        return _names_in(self._folder / _IGNORED)

    @property
    def relocated(self) -> list[str]:
        """The ignored files that contain the path of the start."""
        return _names_in(self._folder / _RELOCATED)

    def find_relocated(self, start: Path) -> None:
        """Find and store the files that contain the path of the start."""
        (self._folder / _RELOCATED).write_bytes(_nul_list(files_with_path(start, self.ignored)))

    def add_workspace(self, name: str, start: Path, top: Path) -> None:
        """Prepare snapshots of a workspace that is a copy of the start. Raises `OSError`."""
        relocate(start, top, self.relocated)
        index = self._folder / _START_INDEX
        adapt_index(index, self._folder / self._index_of(name), start, top)
        self._unchanged.add(self._index_of(name))

    def remove_workspace(self, name: str) -> None:
        """Remove the index of a workspace that was deleted."""
        self._unchanged.discard(self._index_of(name))
        (self._folder / self._index_of(name)).unlink(missing_ok=True)

    def take(self, name: str, top: Path, start: str, is_wanted: IsWanted = always) -> str:
        """Return the id of a tree object with the present files of a workspace, whose start has the id `start`.

        Without changes this is one call of git. Raises `AgentMuxError`.
        """
        index = self._index_of(name)
        if index in self._unchanged and not self._has_changes(top, index, is_wanted):
            return start
        self._unchanged.discard(index)
        return self._take(top, index, is_wanted)

    def _has_changes(self, top: Path, index: str, is_wanted: IsWanted) -> bool:
        words = ("ls-files", "--others", "--modified", "--deleted", "--exclude-standard", "-z")
        ignored = self.ignored
        directories = tuple(path for path in ignored if path.endswith("/"))
        found = self._names(top, index, words, is_wanted)
        return any(path not in ignored and not path.startswith(directories) for path in found)

    def _take(self, top: Path, index: str, is_wanted: IsWanted) -> str:
        # A file that cannot be read is left as it was, and git exits with 1.
        self._run(top, index, ("add", "--update", "--ignore-errors", "."), is_wanted, accepted=(0, 1))
        ignored = self.ignored
        files = {path for path in ignored if not path.endswith("/")}
        directories = tuple(path for path in ignored if path.endswith("/"))
        untracked = [
            path
            for path in self._untracked(top, index, is_wanted)
            if path not in files and not path.startswith(directories) and _is_readable(top / path)
        ]
        if untracked:
            words = ("update-index", "--add", "--replace", "-z", "--stdin")
            self._run(top, index, words, is_wanted, stdin=_nul_list(untracked))
        return self._run(top, index, ("write-tree", "--missing-ok"), is_wanted).strip()

    def _untracked(self, top: Path, index: str, is_wanted: IsWanted) -> list[str]:
        """Return the files that are not ignored, also those of repositories inside of the working tree."""
        words = ("ls-files", "--others", "--exclude-standard", "-z")
        found: list[str] = []
        for path in self._names(top, index, words, is_wanted):
            if not path.endswith("/"):
                found.append(path)
            elif (top / path / ".git").exists():
                inner = self._untracked(top / path, "indexes/none", is_wanted)
                found += [path + one for one in inner]
        return found

    def differences(self, before: str, after: str) -> list[FileDifference]:
        """Return the files that differ between two tree objects. Raises `AgentMuxError`."""
        return read_differences(self._run(self._folder, _START_INDEX, difference_words(before, after)))

    def write_patch(self, before: str, after: str, path: Path) -> None:
        """Write the difference of two tree objects into a private file, as a patch. Raises `AgentMuxError`."""
        path.unlink(missing_ok=True)
        path.touch(0o600, exist_ok=False)
        self._run(self._folder, _START_INDEX, patch_words(before, after, path))

    def files(self, tree: str, paths: Sequence[str]) -> list[str]:
        """Return those files of a tree object that are among the paths, or in directories that are."""
        words = ("ls-tree", "-r", "-z", "--name-only", "--full-tree", tree, "--", *paths)
        return self._run(self._folder, _START_INDEX, words).split("\0")[:-1]

    def write_files(self, name: str, top: Path, tree: str, paths: Iterable[str], is_wanted: IsWanted = always) -> None:
        """Write files of a tree object into a workspace. Raises `AgentMuxError`."""
        index = f"{self._index_of(name)}.written"
        try:
            self._run(top, index, ("read-tree", tree), is_wanted)
            words = ("checkout-index", "--force", "--quiet", "-z", "--stdin")
            self._run(top, index, words, is_wanted, stdin=_nul_list(paths))
        finally:
            (self._folder / index).unlink(missing_ok=True)

    def require_patch(self, top: Path, patch: Path) -> None:
        """Raise `AgentMuxError` unless a patch applies to these files; they stay as they are."""
        self._run(top, _START_INDEX, ("apply", "--check", str(patch)))

    def apply(self, top: Path, patch: Path) -> None:
        """Apply a patch to a workspace. Raises `AgentMuxError`."""
        self._run(top, _START_INDEX, ("apply", "--whitespace=nowarn", str(patch)))

    @staticmethod
    def _index_of(name: str) -> str:
        return f"indexes/{name}"

    def _names(self, top: Path, index: str, words: tuple[str, ...], is_wanted: IsWanted) -> list[str]:
        return self._run(top, index, words, is_wanted).split("\0")[:-1]

    def _run(  # noqa: PLR0913  # all but three have a default
        self,
        top: Path,
        index: str,
        words: tuple[str, ...],
        is_wanted: IsWanted = always,
        *,
        stdin: bytes = b"",
        accepted: tuple[int, ...] = (0,),
    ) -> str:
        added = {
            "GIT_DIR": str(self._folder),
            "GIT_WORK_TREE": str(top),
            "GIT_INDEX_FILE": str(self._folder / index),
            "GIT_LITERAL_PATHSPECS": "1",
        }
        return self._run_git(str(top), words, added, is_wanted, stdin=stdin, accepted=accepted)

    def _run_git(  # noqa: PLR0913  # all but three have a default
        self,
        directory: str,
        words: tuple[str, ...],
        added: Mapping[str, str],
        is_wanted: IsWanted = always,
        *,
        stdin: bytes = b"",
        accepted: tuple[int, ...] = (0,),
    ) -> str:
        answer = run_git(
            self._git,
            directory,
            words,
            environ=self._environ,
            timeout=TREE_TIMEOUT,
            added=added,
            stdin=stdin,
            is_wanted=is_wanted,
            errors="surrogateescape",
        )
        if answer.exit_code not in accepted:
            raise AgentMuxError("INTERNAL", f"git {words[0]} in {directory}: {git_error(answer)}")
        return answer.stdout


def _names_in(path: Path) -> list[str]:
    return os.fsdecode(path.read_bytes()).split("\0")[:-1]


def _nul_list(paths: Iterable[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _is_readable(path: Path) -> bool:
    return path.is_symlink() or os.access(path, os.R_OK)
