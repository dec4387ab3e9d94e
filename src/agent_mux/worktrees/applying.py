"""Apply a patch to a working tree: as it is, or by a three-way merge that changes nothing if it conflicts."""

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from agent_mux.errors import AgentMuxError
from agent_mux.process.command import MAX_ERROR_LINE, ProgramResult
from agent_mux.worktrees.git import git_error, patch_words, quoted_path, run_git
from agent_mux.worktrees.repositories import GitDirectories, copy_index, find_repository

TIMEOUT = 120.0  # seconds for a call of git


def apply_patch(directory: Path, patch: Path, objects: Path, environ: Mapping[str, str]) -> bool:
    """Apply a patch to a working tree or a directory without a repository. Returns whether it had to be merged.

    Only files are changed, not the index.

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
    run = partial(run_git, git, str(directory), environ=environ, timeout=TIMEOUT)
    apply = ("apply", "--whitespace=nowarn")
    answer = run((*apply, str(patch)))
    if answer.exit_code == 0:
        return False
    found = find_repository(directory)
    if found is None:
        raise _refusal(answer)
    with tempfile.TemporaryDirectory(prefix="agent-mux-merge-") as name:
        merged = _merge(run, found, patch, objects, Path(name))
        if merged is not None:
            _succeed(run((*apply, str(merged))))
    return True


def _merge(
    run: Callable[..., ProgramResult], found: GitDirectories, patch: Path, objects: Path, scratch: Path
) -> Path | None:
    """Merge a patch with the files of a working tree in a copy of its index. Returns a patch of these files.

    Returns None if the files have the changes already. Raises INVALID_STATE_TRANSITION if it conflicts.
    """
    copy_index(found.own, scratch)
    own_objects = scratch / "objects"
    own_objects.mkdir()
    variables = {
        "GIT_INDEX_FILE": str(scratch / "index"),
        "GIT_OBJECT_DIRECTORY": str(own_objects),
        "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.pathsep.join(
            quoted_path(str(one)) for one in (found.common / "objects", objects)
        ),
    }

    def git(*words: str, stdin: bytes = b"") -> str:
        return _succeed(run(words, added=variables, stdin=stdin, errors="surrogateescape")).stdout

    paths = [line.split("\t", 2)[2] for line in git("apply", "--numstat", "-z", str(patch)).split("\0")[:-1]]
    named = "".join(f"{path}\0" for path in paths)
    git("update-index", "--add", "--remove", "-z", "--stdin", stdin=os.fsencode(named))  # with uncommitted changes
    before = git("write-tree").strip()
    git("apply", "--3way", "--cached", "--whitespace=nowarn", str(patch))
    after = git("write-tree").strip()
    if before == after:
        return None
    merged = scratch / "merged.patch"
    git(*patch_words(before, after, merged))
    return merged


def _succeed(answer: ProgramResult) -> ProgramResult:
    if answer.exit_code != 0:
        raise _refusal(answer)
    return answer


def _refusal(answer: ProgramResult) -> AgentMuxError:
    conflicts = [line.removeprefix("U ") for line in answer.stderr.splitlines() if line.startswith("U ")]
    errors = [line.removeprefix("error: ") for line in answer.stderr.splitlines() if line.startswith("error: ")]
    reason = f"conflicts in {', '.join(conflicts)}" if conflicts else (errors or [git_error(answer)])[0]
    return AgentMuxError("INVALID_STATE_TRANSITION", reason[:MAX_ERROR_LINE])
