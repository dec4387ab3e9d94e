"""Calls of git: bounded, without hooks, monitors and prompts, and in the repository of their working directory.

Filters (`filter.*` in the configuration, for example those of Git LFS) run as at any checkout or comparison.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from agent_mux.process.command import MAX_ERROR_LINE, ProgramResult, run_program

REPOSITORY_VARIABLES = frozenset(
    f"GIT_{name}"
    for name in (
        "ALTERNATE_OBJECT_DIRECTORIES", "COMMON_DIR", "DIR", "GRAFT_FILE", "IMPLICIT_WORK_TREE", "INDEX_FILE",
        "INTERNAL_SUPER_PREFIX", "NO_REPLACE_OBJECTS", "OBJECT_DIRECTORY", "PREFIX", "REPLACE_REF_BASE",
        "SHALLOW_FILE", "WORK_TREE",
    )
)  # fmt: skip
"""Variables that select a repository (`git rev-parse --local-env-vars`).

Hooks set them; they would override arguments.
"""
NO_REPOSITORY = "not a git repository"
"""What git prints where a directory is in no repository."""
RAW_ATTRIBUTES = "* -text -eol -filter -ident -working-tree-encoding\n"
"""Content of `info/attributes`, which has precedence over other attributes: objects are the bytes of the files."""
CONFIGURATION_TIMEOUT = 10.0  # seconds to read the configuration
_SAFE = ("core.fsmonitor=false", f"core.hooksPath={os.devnull}", "core.logAllRefUpdates=true")


def run_git(  # noqa: PLR0913  # all but three have a default
    git: str,
    directory: str,
    words: tuple[str, ...],
    *,
    environ: Mapping[str, str],
    timeout: float,
    added: Mapping[str, str] | None = None,
    stdin: bytes = b"",
    is_wanted: Callable[[], bool] = lambda: True,
    errors: Literal["replace", "surrogateescape"] = "replace",
) -> ProgramResult:
    """Run git in a directory.

    Args:
        git: Path of the git executable.
        directory: The working directory.
        words: The command with its arguments.
        environ: Environment of the run; its variables that select a repository are left out.
        timeout: Seconds until git is ended.
        added: Variables to add, also such as select a repository.
        stdin: Bytes for its standard input.
        is_wanted: Polled while git runs; git is ended once it returns False.
        errors: How bytes of its output that are no UTF-8 are decoded; `surrogateescape` for names of files to open.

    Raises:
        AgentMuxError: SPAWN_ERROR, TIMEOUT or ABORTED, as `run_program`.
    """
    own = {name: value for name, value in environ.items() if name not in REPOSITORY_VARIABLES}
    own |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", **(added or {})}
    settings = [word for setting in _SAFE for word in ("-c", setting)]
    return run_program(
        (git, *settings, *words),
        environ=own,
        timeout=timeout,
        cwd=directory,
        stdin=stdin,
        is_wanted=is_wanted,
        errors=errors,
    )


def git_error(answer: ProgramResult) -> str:
    """Return the first error that git printed; advice follows after it."""
    fatal = (line for line in answer.stderr.splitlines() if line.startswith("fatal: "))
    return next(fatal, answer.error_line)[:MAX_ERROR_LINE]


def no_filters(git: str, directory: Path, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return options by which git calls no filter of the configuration, for when its program is missing."""
    words = ("config", "--list", "--name-only", "-z")
    listed = run_git(git, str(directory), words, environ=environ, timeout=CONFIGURATION_TIMEOUT).stdout.split("\0")
    names = {name.rpartition(".")[0] for name in listed if name.startswith("filter.")}
    keys = (("smudge", ""), ("clean", ""), ("process", ""), ("required", "false"))
    return tuple(word for name in sorted(names) for key, value in keys for word in ("-c", f"{name}.{key}={value}"))


ChangeKind = Literal["created", "modified", "deleted"]
COMPARED = ("--raw", "--numstat", "-z", "--no-renames", "--no-ext-diff", "--no-textconv")
"""Options of a comparison whose output `read_differences` reads."""
PATCH_OPTIONS = ("--binary", "--full-index", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
"""Options of a patch that `git apply` reproduces byte for byte, whatever the configuration is."""
_KINDS: Mapping[str, ChangeKind] = {"A": "created", "D": "deleted"}


class FileDifference(msgspec.Struct, frozen=True):
    """A file that differs between two trees."""

    path: str
    change: ChangeKind
    added: int | None
    """Lines; None for a binary file."""
    removed: int | None


def difference_words(before: str, after: str) -> tuple[str, ...]:
    """Return the command that compares two tree objects, for `read_differences`."""
    return ("diff-tree", "-r", *COMPARED, before, after)


def patch_words(before: str, after: str, path: Path) -> tuple[str, ...]:
    """Return the command that writes the difference of two tree objects into an existing file, as a patch."""
    return ("diff-tree", "-r", "-p", *PATCH_OPTIONS, f"--output={path}", before, after)


def read_differences(output: str) -> list[FileDifference]:
    """Return the differences that git printed with the options `COMPARED`, in its order."""
    fields = output.split("\0")[:-1]
    kinds: dict[str, ChangeKind] = {}
    found: list[FileDifference] = []
    position = 0
    while position < len(fields):
        if fields[position].startswith(":"):
            kinds[fields[position + 1]] = _KINDS.get(fields[position][-1], "modified")
            position += 2
            continue
        added, removed, path = fields[position].split("\t", 2)
        found.append(FileDifference(path, kinds.get(path, "modified"), _count(added), _count(removed)))
        position += 1
    return found


def quoted_path(path: str) -> str:
    """Quote a path for a list of object directories, where a C string stands for names with special characters."""
    if not {":", "\n"} & set(path) and not path.startswith(('"', "#")):
        return path
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def _count(digits: str) -> int | None:
    return int(digits) if digits.isdigit() else None
