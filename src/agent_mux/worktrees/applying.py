"""Apply a patch to a working tree: as it is, or by a three-way merge that changes nothing if it conflicts."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from agent_mux.errors import AgentMuxError
from agent_mux.worktrees.git import git_error, quoted_path, run_git
from agent_mux.worktrees.repositories import find_repository

TIMEOUT = 120.0  # seconds for a call of git


def apply_patch(directory: Path, patch: Path, objects: Path, environ: Mapping[str, str]) -> bool:
    """Apply a patch to a working tree or a directory without a repository. Returns whether it had to be merged.

    Args:
        directory: Top of the working tree.
        patch: The patch.
        objects: Directory with objects of the patch that the repository may lack.
        environ: Environment of git.

    Raises:
        AgentMuxError: INVALID_STATE_TRANSITION with git's reason if the patch conflicts: nothing is changed;
            CONFIG_ERROR without git.
    """
    git = shutil.which("git", path=environ.get("PATH", os.defpath))
    if git is None:
        raise AgentMuxError("CONFIG_ERROR", "git is not on PATH; install it")

    def run(words: tuple[str, ...], added: Mapping[str, str] | None = None) -> str | None:
        answer = run_git(git, str(directory), words, environ=environ, timeout=TIMEOUT, added=added or {})
        return None if answer.exit_code == 0 else git_error(answer)

    refusal = run(("apply", "--whitespace=nowarn", str(patch)))
    if refusal is None:
        return False
    found = find_repository(directory)
    if found is None:
        raise AgentMuxError("INVALID_STATE_TRANSITION", refusal)
    added = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": quoted_path(str(objects))}
    merge = ("apply", "--3way", "--whitespace=nowarn")
    with tempfile.TemporaryDirectory(prefix="agent-mux-merge-") as scratch:
        # First in a copy of the index, because `git apply --3way` leaves conflicts in the files.
        trial = Path(scratch) / "index"
        if (found.own / "index").exists():
            shutil.copy2(found.own / "index", trial)
        own_objects = Path(scratch) / "objects"
        own_objects.mkdir()
        alternates = os.pathsep.join(quoted_path(str(one)) for one in (found.common / "objects", objects))
        variables = {
            "GIT_INDEX_FILE": str(trial),
            "GIT_OBJECT_DIRECTORY": str(own_objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": alternates,
        }
        refusal = run((*merge, "--check", str(patch)), added) or run((*merge, "--cached", str(patch)), variables)
    refusal = refusal or run((*merge, str(patch)), added)
    if refusal is not None:
        raise AgentMuxError("INVALID_STATE_TRANSITION", refusal)
    return True
