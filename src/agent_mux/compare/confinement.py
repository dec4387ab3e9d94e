"""Which directories may be compared on for somebody else: by a client of the service, or by another agent."""

import os
from pathlib import Path

from agent_mux.errors import FieldError, ValidationError
from agent_mux.settings.allowed_directories import AllowedDirectories
from agent_mux.worktrees.repositories import find_repository


def require_allowed_source(directory: Path, roots: AllowedDirectories, private: Path) -> None:
    """Check what a comparison on a directory copies: its repository as a whole, or the directory. Blocking.

    Args:
        directory: The working directory.
        roots: The allowed directories.
        private: A directory of our own that must not be copied.

    Raises:
        ValidationError: The repository is not inside of the roots, or contains the private directory.
    """
    repository = find_repository(directory)
    source = directory if repository is None else repository.top
    if not roots.contains(source):
        inside = ", ".join(map(str, roots.directories))
        allowed = f"a directory whose repository ({source}) is inside the roots: {inside}"
        raise ValidationError([FieldError("cwd", str(directory), allowed)])
    if Path(os.path.realpath(private)).is_relative_to(source):
        allowed = f"a directory that does not contain the files of the service ({private}), which trials would copy"
        raise ValidationError([FieldError("cwd", str(directory), allowed)])
