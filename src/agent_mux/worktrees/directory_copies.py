"""Copy a directory that is in no git repository, without secrets and without the git directories in it."""

import fnmatch
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from agent_mux.errors import AgentMuxError
from agent_mux.worktrees.carrying import Carried
from agent_mux.worktrees.copying import FileCopier
from agent_mux.worktrees.includes import INCLUDE_FILE, IncludePatterns, include_patterns

MAX_FILES = 50_000
MAX_BYTES = 2 << 30
SECRET_NAMES = (
    ".env", ".env.*", ".envrc", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "id_rsa*",
    "id_dsa*", "id_ecdsa*", "id_ed25519*", ".netrc", ".npmrc", ".pypirc", ".git-credentials", "credentials.json",
    ".aws", ".ssh", ".gnupg", ".kube",
)  # fmt: skip
"""Names of files and directories that usually contain secrets."""
_EXAMPLES = (".env.example", ".env.sample", ".env.template", "*.pub")


@dataclass(slots=True)
class DirectoryCopy:
    """What was copied of a directory, and what was not."""

    included: list[str] = field(default_factory=list)
    """Files that look like secrets and that `.worktreeinclude` names."""
    unmatched: list[str] = field(default_factory=list)
    """Entries of `.worktreeinclude` that name nothing."""
    secrets: list[str] = field(default_factory=list)
    """Files and directories that were not copied because they look like secrets."""
    repositories: list[str] = field(default_factory=list)
    """Git directories that were not copied; the files beside them are files like others."""
    shared: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    @property
    def carried(self) -> Carried:
        """What the copy has beside plain files."""
        return Carried(included=self.included, unmatched=self.unmatched, shared=self.shared, skipped=self.skipped)


def copy_directory(
    source: Path, target: Path, is_wanted: Callable[[], bool], excluded: tuple[Path, ...] = ()
) -> DirectoryCopy:
    """Copy a directory, except those in it that are `excluded`. The target may exist.

    Raises `AgentMuxError` if it is too large, and `OSError`.
    """
    result = DirectoryCopy()
    top = os.path.realpath(source).rstrip(os.sep) + os.sep
    excluded = tuple(path for path in excluded if os.path.realpath(path).startswith(top))
    patterns = include_patterns(source)
    plan = _Listing(source, excluded, patterns, result)
    plan.add("")
    result.unmatched = [] if patterns is None else patterns.unmatched
    target.mkdir(mode=0o700, exist_ok=True)
    copier = FileCopier(source, target, is_wanted, excluded)
    for path in plan.directories:
        (target / path).mkdir(exist_ok=True)
    for path in plan.files:
        copier.copy(path)
    result.shared, result.skipped = copier.shared, copier.skipped
    return result


class _Listing:
    """The entries to copy, counted before anything is written."""

    def __init__(
        self,
        source: Path,
        excluded: tuple[Path, ...],
        patterns: IncludePatterns | None,
        result: DirectoryCopy,
    ) -> None:
        self._source = source
        self._excluded = {os.path.realpath(path) for path in excluded}
        self._patterns = patterns
        self._result = result
        self._bytes = 0
        self.directories: list[str] = []
        self.files: list[str] = []

    def add(self, directory: str) -> None:
        """Add the content of a directory."""
        with os.scandir(self._source / directory) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
        for entry in found:
            self._add_entry(entry, f"{directory}{entry.name}")

    def _add_entry(self, entry: os.DirEntry[str], path: str) -> None:
        is_directory = entry.is_dir(follow_symlinks=False)
        if entry.name == ".git":
            self._result.repositories.append(path)
            return
        is_named = self._patterns is not None and self._patterns.match(f"{path}/" if is_directory else path)
        if _is_secret(entry.name):
            if not is_named:
                self._result.secrets.append(path)
                return
            self._result.included.append(path)
        if is_directory:
            if os.path.realpath(entry.path) not in self._excluded:
                self.directories.append(path)
                self.add(f"{path}/")
            return
        self.files.append(path)
        state = entry.stat(follow_symlinks=False)
        self._bytes += state.st_size if stat.S_ISREG(state.st_mode) else 0
        if len(self.files) > MAX_FILES or self._bytes > MAX_BYTES:
            limit = f"{MAX_FILES:,} files or {MAX_BYTES >> 30} GiB"
            way_out = "use a smaller directory, or make it a git repository with a .gitignore (`git init`)"
            raise AgentMuxError("VALIDATION_ERROR", f"{self._source} has more than {limit} to copy: {way_out}")


def _is_secret(name: str) -> bool:
    if any(fnmatch.fnmatchcase(name, pattern) for pattern in _EXAMPLES):
        return False
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in SECRET_NAMES)


def notes_of(result: DirectoryCopy) -> list[str]:
    """Return sentences for a person about what was not copied."""
    notes = []
    if result.secrets:
        notes.append(
            f"not copied because their names are those of secrets: {', '.join(result.secrets)}; "
            f"to copy some of them, name them in {INCLUDE_FILE}"
        )
    if result.repositories:
        notes.append(f"git directories are not copied: {', '.join(result.repositories)}")
    return notes
