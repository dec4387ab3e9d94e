"""Copying a definition into an agent's folder: whole or not at all, and nothing from outside of it."""

import os
import shutil
import tempfile
from pathlib import Path

from agent_mux.errors import AgentMuxError, FieldError, ValidationError
from agent_mux.storage import make_directory

MOST_FILES = 2000
MOST_BYTES = 100 << 20


def files_of(source: Path) -> list[Path]:
    """The files of a definition, relative to it; a single file is the empty way.

    Raises VALIDATION_ERROR for links that lead out of it, for what is neither file nor folder, and for too much.
    """
    if source.is_file():
        return [Path()]
    found, size = [], 0
    root = source.resolve()
    for directory, folders, names in os.walk(source):
        for name in (*folders, *names):
            path = Path(directory, name)
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                raise _refused(source, f"a folder whose links stay inside of it ({path} leads out)")
            if name in names and not path.is_file():
                raise _refused(source, f"a folder of files ({path} is none)")
        found += [Path(directory, name).relative_to(source) for name in names]
        size += sum(Path(directory, name).stat().st_size for name in names)
        if len(found) > MOST_FILES or size > MOST_BYTES:
            raise _refused(source, f"a folder of at most {MOST_FILES} files and {MOST_BYTES >> 20} MiB")
    return sorted(found)


def check_inside(target: Path, folder: Path) -> None:
    """A definition stays in its folder, whatever its name and whatever links are there. Raises VALIDATION_ERROR."""
    if target.parent != folder or target.name in {"", ".", ".."} or target.is_symlink():
        allowed = f"a place of its own in {folder} (no link to somewhere else)"
        raise ValidationError([FieldError("name", target.name, allowed)])


def copy_into(source: Path, target: Path, *, private: bool) -> None:
    """Put a definition in its place, instead of what is there. Raises CONFIG_ERROR; then what was there still is."""
    try:
        make_directory(target.parent, private=private)
        staging = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            _exchange(source, target, staging)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        raise AgentMuxError("CONFIG_ERROR", f"cannot write {target}: {error.strerror or error}") from error


def remove(target: Path) -> None:
    """Remove a definition. Raises CONFIG_ERROR."""
    try:
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)
        else:
            target.unlink()
    except OSError as error:
        raise AgentMuxError("CONFIG_ERROR", f"cannot remove {target}: {error.strerror or error}") from error


def _exchange(source: Path, target: Path, staging: Path) -> None:
    fresh, old = staging / "new", staging / "old"
    if source.is_dir():
        shutil.copytree(source, fresh)
    else:
        shutil.copyfile(source, fresh)
    if target.exists():
        target.rename(old)
    try:
        fresh.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise


def _refused(source: Path, allowed: str) -> ValidationError:
    return ValidationError([FieldError("source", str(source), allowed)])
