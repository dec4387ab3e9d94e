"""Freeze a git repository: its working tree as it is now, and the history of HEAD. Nothing is written in it."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agent_mux.compare.index_file import FileState, IndexEntry, IndexFile, state_of_file, write_index
from agent_mux.errors import AgentMuxError
from agent_mux.process.command import ProgramResult
from agent_mux.worktrees.carrying import (
    CHECKOUT_TIMEOUT,
    Carried,
    WorkingTree,
    carry_files,
    carry_submodules,
    copy_missing,
)
from agent_mux.worktrees.copying import FileCopier
from agent_mux.worktrees.git import NO_REPOSITORY, git_error, no_filters, quoted_path, run_git
from agent_mux.worktrees.includes import carry_included
from agent_mux.worktrees.repositories import copy_index

QUERY_TIMEOUT = 30.0  # seconds
HISTORY_TIMEOUT = 1800.0  # seconds to copy the history
_COPIED_SETTINGS = ("core.autocrlf", "core.eol", "core.safecrlf", "core.ignorecase", "user.", "filter.")
_OWN_SCOPES = ("local", "worktree")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRepository:
    """The repository of a directory that is frozen."""

    git: str
    """Path of the git executable."""
    top: Path
    """Top of the working tree."""
    own: Path
    """The git directory of this working tree."""
    common: Path
    """The directory that all worktrees of the repository share."""
    object_format: str
    head: str | None
    """The commit; None if there is none yet."""
    branch: str | None
    """Full name of the current branch; None if HEAD is detached."""
    is_shallow: bool


def find_source(git: str, cwd: Path, environ: Mapping[str, str]) -> SourceRepository | None:
    """Return the repository of a directory; None if it is in none.

    Raises `AgentMuxError` for a repository without a working tree, and one that git refuses to read.
    """

    def ask(*words: str) -> ProgramResult:
        return run_git(git, str(cwd), words, environ=environ, timeout=QUERY_TIMEOUT, errors="surrogateescape")

    flags = ask("rev-parse", "--is-bare-repository", "--is-inside-git-dir", "--show-object-format",
                "--is-shallow-repository")  # fmt: skip
    if flags.exit_code != 0:
        if NO_REPOSITORY in flags.stderr:
            return None
        raise AgentMuxError("VALIDATION_ERROR", f"git cannot read the repository of {cwd}: {git_error(flags)}")
    bare, inside, object_format, shallow = flags.stdout.split()
    if "true" in {bare, inside}:
        what = "a bare repository" if bare == "true" else "the git directory of a repository"
        way_out = "use a directory with its files, for example a clone (`git clone PATH DIRECTORY`)"
        raise AgentMuxError("VALIDATION_ERROR", f"{cwd} is {what}, without files to work on: {way_out}")
    places = ask("rev-parse", "--show-toplevel", "--absolute-git-dir", "--git-common-dir").stdout.split("\n")
    if len(places) != 4:  # three lines, and what follows the last one
        raise AgentMuxError("VALIDATION_ERROR", f"the path of the repository of {cwd} contains a line feed: move it")
    top, own, common = (Path(os.path.realpath(cwd / place)) for place in places[:3])
    head = ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    branch = ask("symbolic-ref", "--quiet", "HEAD")
    return SourceRepository(
        git=git,
        top=top,
        own=own,
        common=common,
        object_format=object_format,
        head=head.stdout.strip() or None,
        branch=branch.stdout.rstrip("\n") or None,
        is_shallow=shallow == "true",
    )


class RepositoryCopy:
    """A copy of a repository with its working tree and the history of HEAD. All methods block."""

    def __init__(
        self, source: SourceRepository, target: Path, environ: Mapping[str, str], is_wanted: Callable[[], bool]
    ) -> None:
        """Prepare a copy at `target`, which must not exist."""
        self._source = source
        self._target = target
        self._git_dir = target / ".git"
        self._environ = environ
        self._is_wanted = is_wanted
        self.notes: list[str] = []

    @property
    def excludes(self) -> bytes:
        """The patterns of ignored files that belong to the repository and to no commit."""
        return self._information("exclude")

    def create(self, *, carry_changes: bool, excluded: tuple[Path, ...] = ()) -> Carried:
        """Create the copy and return what it has beside the files of its commit.

        Args:
            carry_changes: Whether the copy has the uncommitted changes.
            excluded: Directories that are not copied.

        Raises:
            AgentMuxError: It cannot be created, or is no longer wanted.
            OSError: A file cannot be written.
        """
        self._create_git_directory()
        self._copy_history(with_index=carry_changes)
        return self._copy_working_tree(excluded) if carry_changes else self._check_out(excluded)

    def _create_git_directory(self) -> None:
        source = self._source
        words = ("init", "--quiet", "--template=", f"--object-format={source.object_format}", str(self._target))
        self._run(self._target.parent, words, {"GIT_DEFAULT_REF_FORMAT": "files"})
        (self._git_dir / "info").mkdir()
        for name in ("exclude", "attributes"):
            if content := self._information(name):
                (self._git_dir / "info" / name).write_bytes(content)
        self._copy_settings()
        (self._git_dir / "HEAD").write_text(f"ref: {source.branch}\n" if source.branch else f"{source.head}\n")
        if source.branch and source.head:
            reference = self._git_dir / source.branch
            reference.parent.mkdir(parents=True, exist_ok=True)
            reference.write_text(f"{source.head}\n")
        if source.is_shallow:
            (self._git_dir / "shallow").write_bytes((source.common / "shallow").read_bytes())
            self.notes.append("the history is as short as that of the source, which is a shallow clone")

    def _information(self, name: str) -> bytes:
        try:
            return (self._source.common / "info" / name).read_bytes()
        except OSError:
            return b""

    def _copy_settings(self) -> None:
        """Copy those settings of the repository that decide about files and authors; others name hooks and remotes."""
        listed = self._run(self._source.top, ("config", "--list", "--show-scope", "--includes", "-z")).split("\0")[:-1]
        for scope, setting in zip(listed[::2], listed[1::2], strict=False):
            name, _, value = setting.partition("\n")
            if scope not in _OWN_SCOPES:
                continue
            if name.startswith(_COPIED_SETTINGS):
                self._run(self._target, ("config", "--local", "--add", name, value))
            elif name.endswith(".partialclonefilter"):
                self.notes.append("the source is a partial clone: old versions of files can be missing")

    def _copy_history(self, *, with_index: bool) -> None:
        """Copy the objects that HEAD and the index reach, and no others."""
        packs = self._git_dir / "objects" / "pack"
        packs.mkdir(exist_ok=True)
        revisions = b"" if self._source.head is None else f"{self._source.head}\n".encode()
        index = ("--indexed-objects",) if with_index else ()
        words = ("pack-objects", "--revs", *index, "--missing=allow-any", "--quiet", str(packs / "pack"))
        # Git writes its temporary files into the directory of new objects.
        added = {
            "GIT_OBJECT_DIRECTORY": str(self._git_dir / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted_path(str(self._source.common / "objects")),
            "GIT_NO_LAZY_FETCH": "1",
        }
        self._run(self._source.top, words, added, stdin=revisions, seconds=HISTORY_TIMEOUT)

    def _copy_working_tree(self, excluded: tuple[Path, ...]) -> Carried:
        top, git = self._source.top, self._source.git
        tree = WorkingTree(git, top, self._environ, self._is_wanted)
        copier = FileCopier(top, self._target, self._is_wanted, excluded)
        copy_missing(tree, copier, self._target)
        changed = carry_files(tree, copier, self._target, self._source.head)
        submodules = carry_submodules(
            tree, copier, lambda inner: WorkingTree(git, inner, self._environ, self._is_wanted)
        )
        carried = carry_included(tree, copier, changed=changed, submodules=submodules)
        if copy_index(self._source.own, self._git_dir):
            self._normalize_index()
            self._adapt_index()
        return carried

    def _normalize_index(self) -> None:
        """Write the index in the format that `IndexFile` reads, with the time that it had."""
        index = self._git_dir / "index"
        time = index.stat().st_mtime_ns
        words = ("update-index", "--no-split-index", "--no-untracked-cache", "--no-fsmonitor", "--index-version", "2",
                 "--force-write-index")  # fmt: skip
        self._run(self._target, ("-c", "index.sparse=false", *words))
        for shared in self._git_dir.glob("sharedindex.*"):
            shared.unlink()
        os.utime(index, ns=(time, time))

    def _adapt_index(self) -> None:
        index = self._git_dir / "index"
        old, new = (os.fsencode(top) + b"/" for top in (self._source.top, self._target))

        def state_of(entry: IndexEntry) -> FileState | None:
            return state_of_file(new + entry.path) if state_of_file(old + entry.path) == entry.state else None

        write_index(index, IndexFile(index.read_bytes()).with_states(state_of), index)

    def _check_out(self, excluded: tuple[Path, ...]) -> Carried:
        if self._source.head is not None:
            self._run(self._target, ("read-tree", "HEAD"))
            words = ("checkout-index", "--all", "--force", "-u", "--quiet")
            answer = self._ask(self._target, words, {}, b"", CHECKOUT_TIMEOUT)
            if answer.exit_code != 0:  # a filter whose program is missing
                without = no_filters(self._source.git, self._target, self._environ)
                self._run(self._target, (*without, *words))
                self.notes.append(f"files are as git stores them, without filters: {git_error(answer)}")
        tree = WorkingTree(self._source.git, self._source.top, self._environ, self._is_wanted)
        copier = FileCopier(self._source.top, self._target, self._is_wanted, excluded)
        return carry_included(tree, copier)

    def _run(
        self,
        directory: Path,
        words: tuple[str, ...],
        added: Mapping[str, str] | None = None,
        *,
        stdin: bytes = b"",
        seconds: float = CHECKOUT_TIMEOUT,
    ) -> str:
        answer = self._ask(directory, words, added or {}, stdin, seconds)
        if answer.exit_code != 0:
            what = f"{self._source.top} cannot be copied: git {words[0]}: {git_error(answer)}"
            raise AgentMuxError("SPAWN_ERROR", what)
        return answer.stdout

    def _ask(
        self, directory: Path, words: tuple[str, ...], added: Mapping[str, str], stdin: bytes, seconds: float
    ) -> ProgramResult:
        return run_git(
            self._source.git,
            str(directory),
            words,
            environ=self._environ,
            timeout=seconds,
            added=added,
            stdin=stdin,
            is_wanted=self._is_wanted,
            errors="surrogateescape",
        )
