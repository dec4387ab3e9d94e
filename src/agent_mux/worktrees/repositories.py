"""The git repository of a directory, and its current commit, without a process.

The files of a repository are read directly, so that this costs microseconds when a run starts. A repository whose
references are not files (`reftable`) has no known commit.
"""

import os
import re
import shutil
from pathlib import Path

import msgspec

LARGEST = 1 << 22  # bytes of `packed-refs`
_COMMIT = r"[0-9a-f]{40}|[0-9a-f]{64}"
MAX_LINKS = 5
"""Symbolic references in a chain."""


class GitDirectories(msgspec.Struct, frozen=True):
    """The directories of a working tree."""

    top: Path
    """Top of the working tree."""
    own: Path
    """What belongs to this working tree: HEAD, index."""
    common: Path
    """What all working trees of the repository share: objects, references."""


def find_repository(directory: Path) -> GitDirectories | None:
    """Return the repository that contains a directory; None without one. Blocking."""
    for top in (directory, *directory.parents):
        entry = top / ".git"
        if os.path.lexists(entry / "HEAD") and (entry / "objects").is_dir():  # as git decides: others are passed over
            return GitDirectories(top, entry, _common_of(entry))
        text = _text(entry)
        if text is not None:
            named = text.strip().removeprefix("gitdir:").strip()
            own = (top / named).resolve()
            return GitDirectories(top, own, _common_of(own)) if named and own.is_dir() else None
    return None


def copy_index(source: Path, target: Path) -> bool:
    """Copy the index of a working tree from its git directory to another directory. Returns False if there is none.

    Its time is copied as well, by which git finds the entries to compare. Raises `OSError`.
    """
    if not (source / "index").exists():
        return False
    for shared in source.glob("sharedindex.*"):  # of a split index
        shutil.copy2(shared, target / shared.name)
    shutil.copy2(source / "index", target / "index")
    return True


def current_commit(directory: Path) -> str | None:
    """Return the commit that HEAD is in the repository of a directory; None if there is none. Blocking."""
    try:
        found = find_repository(directory)
        return None if found is None else _commit_of(found)
    except (OSError, ValueError):
        return None


def _commit_of(found: GitDirectories) -> str | None:
    text = _text(found.own / "HEAD")
    for _ in range(MAX_LINKS):
        value = (text or "").strip()
        if not value.startswith("ref:"):
            return value if re.fullmatch(_COMMIT, value) else None
        name = value.removeprefix("ref:").strip()
        if not name.startswith("refs/") or ".." in name:
            return None
        text = _text(found.own / name) or _text(found.common / name) or _packed(found.common, name)
    return None


def _packed(common: Path, name: str) -> str | None:
    lines = (_text(common / "packed-refs") or "").splitlines()
    return next((line.partition(" ")[0] for line in lines if line.partition(" ")[2] == name), None)


def _common_of(own: Path) -> Path:
    named = (_text(own / "commondir") or "").strip()
    return (own / named).resolve() if named else own


def _text(path: Path) -> str | None:
    """Return the text of a small file; None if there is none."""
    try:
        if not path.is_file() or path.stat().st_size > LARGEST:
            return None
        return path.read_text("utf-8", "surrogateescape")
    except OSError:
        return None
