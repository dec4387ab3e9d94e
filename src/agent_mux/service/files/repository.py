"""Comparing a working tree with a commit, although an agent may have configured its repository.

Git runs what the configuration of a repository names: filters, monitors, diff programs. A caller who only reads must
not cause that. Therefore git gets a repository of our own: an empty configuration, a copy of the index, which saves
comparing the content of unchanged files, and the objects of the run's repository. Nothing is written into the latter.
"""

import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from agent_mux.errors import AgentMuxError
from agent_mux.worktrees.git import COMPARED, FileDifference, quoted_path, read_differences
from agent_mux.worktrees.repositories import GitDirectories

TIMEOUT = 60.0  # seconds for one call of git
LARGEST_OUTPUT = 64 << 20  # bytes
EMPTY_TREES = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
"""The empty tree, by the length of object ids: the base where there was no commit."""
COPIED_SETTINGS = ("autocrlf", "eol", "filemode", "ignorecase", "symlinks", "precomposeunicode")
"""Settings of the repository on which the comparison depends; they name no program."""
_DIFF = (
    "diff",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    "--no-renames",
    "--ignore-submodules=dirty",
    "--relative",
)
_ARGUMENTS = 100_000  # bytes of paths in one call


class OutputTooLargeError(Exception):
    """Git printed more than the caller accepts."""


class Comparison:
    """A directory, compared with a commit. All methods block and raise SPAWN_ERROR or TIMEOUT."""

    def __init__(self, git: str, directory: Path, variables: dict[str, str], base: str) -> None:
        self._git = git
        self._directory = directory
        self._variables = variables
        self.base = base

    def has_base(self) -> bool:
        """Return whether the repository has the commit: an agent may have replaced the repository."""
        words = ("cat-file", "-e", f"{self.base}^{{tree}}")
        return _run(self._git, words, self._directory, self._variables, b"", LARGEST_OUTPUT)[0] == 0

    def untracked(self) -> list[str]:
        """Return the files that are neither in the index nor ignored."""
        return _names(self._run(("ls-files", "--others", "--exclude-standard", "-z")))

    def include(self, paths: Iterable[str]) -> None:
        """Compare these untracked files, too."""
        data = b"\0".join(map(os.fsencode, paths))
        if data:
            self._run(("add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul"), data)

    def ignored(self, paths: Iterable[str]) -> set[str]:
        """Return those of the paths that the repository ignores. A path behind a symbolic link is not looked up."""
        data = b"\0".join(os.fsencode(f"./{path}") for path in paths)  # `./`: a leading colon means nothing
        if not data:
            return set()
        variables = {name: value for name, value in self._variables.items() if name != "GIT_LITERAL_PATHSPECS"}
        words = ("check-ignore", "-z", "--stdin")
        _, output, _ = _run(self._git, words, self._directory, variables, data, LARGEST_OUTPUT)
        return {name.removeprefix("./") for name in _names(output)}

    def differences(self) -> list[FileDifference]:
        """Return the files that differ from the base, by path."""
        output = self._run((*_DIFF, *COMPARED, self.base, "--", "."))
        return sorted(read_differences(os.fsdecode(output)), key=lambda one: one.path)

    def patch(self, paths: Sequence[str], limit: int) -> bytes:
        """Return the unified diff of these files. Raises `OutputTooLargeError` for more than `limit` bytes."""
        parts: list[bytes] = []
        for some in _batches(paths):
            part = self._run((*_DIFF, self.base, "--", *some), limit=limit)
            parts.append(part)
            limit -= len(part)
        return b"".join(parts)

    def _run(self, words: Sequence[str], stdin: bytes = b"", *, limit: int = LARGEST_OUTPUT) -> bytes:
        code, output, errors = _run(self._git, words, self._directory, self._variables, stdin, limit)
        if code != 0:
            message = f"git {words[0]} failed in {self._directory}: {errors}; repair the repository"
            raise AgentMuxError("SPAWN_ERROR", message)
        return output


@contextmanager
def compared(directory: Path, found: GitDirectories, base: str | None) -> Iterator[Comparison]:
    """Compare a directory with a commit of its repository, by default with no files at all. Blocking.

    Raises NOT_FOUND if git is not installed.
    """
    git = shutil.which("git")
    if git is None:
        raise AgentMuxError("NOT_FOUND", "git is not installed on the machine of the service; install it there")
    base = base or EMPTY_TREES[40]
    with tempfile.TemporaryDirectory(prefix="amux-git-") as name:
        own = Path(name)
        _make_repository(own, found, base)
        variables = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": name,
            "LC_ALL": "C",
            "GIT_DIR": name,
            "GIT_WORK_TREE": str(found.top),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_ALLOW_PROTOCOL": "none",
        }
        _copy_settings(git, own, found, variables)
        yield Comparison(git, directory, variables, base)


def _make_repository(own: Path, found: GitDirectories, base: str) -> None:
    for part in ("objects/info", "refs", "info"):
        (own / part).mkdir(parents=True)
    is_long = len(base) == 64
    extensions = "[extensions]\n\tobjectFormat = sha256\n" if is_long else ""
    (own / "HEAD").write_text("ref: refs/heads/none\n")
    (own / "config").write_text(f"[core]\n\trepositoryformatversion = {int(is_long)}\n\tbare = false\n{extensions}")
    (own / "objects/info/alternates").write_bytes(os.fsencode(quoted_path(str(found.common / "objects"))) + b"\n")
    _copy(found.own / "index", own / "index")
    for name in ("exclude", "attributes"):
        _copy(found.common / "info" / name, own / "info" / name)
    for shared in found.own.glob("sharedindex.*"):  # parts of a split index
        _copy(shared, own / shared.name)


def _copy(source: Path, target: Path) -> None:
    """Copy a regular file with its time, by which git recognizes entries of the index that may have changed."""
    if source.is_file() and not source.is_symlink():
        shutil.copy2(source, target)


def _copy_settings(git: str, own: Path, found: GitDirectories, variables: dict[str, str]) -> None:
    pattern = rf"^core\.({'|'.join(COPIED_SETTINGS)})$"
    words = ("config", "--file", str(found.common / "config"), "--no-includes", "-z", "--get-regexp", pattern)
    code, output, _ = _run(git, words, own, variables, b"", LARGEST_OUTPUT)
    for entry in _names(output) if code == 0 else ():
        name, _, value = entry.partition("\n")
        _run(git, ("config", "--file", str(own / "config"), name, value or "true"), own, variables, b"", LARGEST_OUTPUT)


def _run(  # noqa: PLR0913, PLR0917  # one call of git
    git: str, words: Sequence[str], directory: Path, variables: dict[str, str], stdin: bytes, limit: int
) -> tuple[int, bytes, str]:
    """Return the exit code, the output and the last line of the errors. Output beyond `limit` ends git."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as errors:
        given.write(stdin)
        given.seek(0)
        process = subprocess.Popen(
            [git, *words], stdin=given, stdout=subprocess.PIPE, stderr=errors, cwd=directory, env=variables
        )
        timer = threading.Timer(TIMEOUT, process.kill)
        timer.start()
        try:
            with process:
                assert process.stdout is not None  # noqa: S101  # it is a pipe
                output = process.stdout.read(limit + 1)
                if len(output) > limit:
                    process.kill()
                    raise OutputTooLargeError
                code = process.wait()
        finally:
            is_late = not timer.is_alive()
            timer.cancel()
        if is_late:
            raise AgentMuxError("TIMEOUT", f"git {words[0]} took longer than {TIMEOUT:g} s in {directory}; try again")
        errors.seek(0)
        lines = errors.read(1 << 16).decode("utf-8", "replace").strip().splitlines()
        return code, output, lines[-1] if lines else f"exit code {code}"


def _batches(paths: Sequence[str]) -> Iterator[list[str]]:
    """Yield the paths in groups that fit into the arguments of a program."""
    some: list[str] = []
    size = 0
    for path in paths:
        if some and size + len(path) > _ARGUMENTS:
            yield some
            some, size = [], 0
        some.append(path)
        size += len(os.fsencode(path)) + 1
    if some:
        yield some


def _names(output: bytes) -> list[str]:
    return [os.fsdecode(name) for name in output.split(b"\0") if name]
