"""Explaining why a program could not be spawned, and what to do about it."""

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

_ELF = b"\x7fELF"
_BINARY_MAGICS = (_ELF, b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ")
"""First bytes of programs for Linux, macOS (two kinds) and Windows."""
_HEAD_SIZE = 256  # bytes of a file that are read


class SpawnAttempt(msgspec.Struct, frozen=True):
    """The command, environment and directory of a failed spawn."""

    argv: Sequence[str]
    environ: Mapping[str, str]
    cwd: str

    @property
    def program(self) -> Path:
        """Path of the program that could not be started."""
        return Path(self.argv[0])


def explain_spawn_failure(error: OSError, attempt: SpawnAttempt) -> str:
    """Return one sentence: the likely reason, what to do next, and the system's own message."""
    explain = _EXPLANATIONS.get(error.errno or 0)
    system_message = f"{error.strerror or error} (errno {error.errno})"
    return system_message if explain is None else f"{explain(attempt)} [{system_message}]"


def _missing(attempt: SpawnAttempt) -> str:
    if not Path(attempt.cwd).exists():
        return f"the directory {attempt.cwd} does not exist; create it, or run in another directory (cwd)"
    if not attempt.program.exists():
        return f"{attempt.program} does not exist; install it again"
    head = _head(attempt.program)
    if head.startswith(b"#!"):
        interpreter = head[2:].split(b"\n")[0].decode("utf-8", "replace").strip(" ").partition(" ")[0]
        return (
            f"its first line names the interpreter {interpreter!r}, which does not exist; install it, or edit that line"
        )
    return "it needs a loader that does not exist: it was built for another system; install the build for this one"


def _forbidden(attempt: SpawnAttempt) -> str:
    if not os.access(attempt.cwd, os.X_OK):
        return f"the directory {attempt.cwd} cannot be entered; run in another directory (cwd), or as another user"
    if not os.access(attempt.program, os.X_OK):
        return f"{attempt.program} is not executable; try: chmod +x {attempt.program}"
    return "it, or a file that it needs, cannot be executed; check permissions, and whether the disk is mounted noexec"


def _no_program(attempt: SpawnAttempt) -> str:
    if _head(attempt.program).startswith(_BINARY_MAGICS):
        return "it was built for another kind of machine; install the build for this one"
    return "it is neither a program nor a script that names its interpreter; start it with a line like #!/bin/sh"


def _no_directory(attempt: SpawnAttempt) -> str:
    return f"{attempt.cwd} is not a directory; run in another directory (cwd)"


def _too_long(attempt: SpawnAttempt) -> str:
    arguments = [len(os.fsencode(word)) for word in attempt.argv]
    variables = sum(len(os.fsencode(name)) + len(os.fsencode(value)) for name, value in attempt.environ.items())
    sizes = f"{sum(arguments)} bytes of arguments, the longest {max(arguments)}, and {variables} of environment"
    return f"{sizes} exceed the limit of the system; shorten the system prompt, or the variables in env"


def _too_many_files(_: SpawnAttempt) -> str:
    return (
        "this process has too many files open; raise its limit (ulimit -n), or run fewer agents at a time "
        "(max_concurrent_runs)"
    )


def _too_many_files_of_all(_: SpawnAttempt) -> str:
    return "this machine has too many files open; end some programs, or raise its limit (fs.file-max)"


def _too_many_processes(_: SpawnAttempt) -> str:
    return (
        "the system allows no more processes or terminals; end some programs, raise the limit (ulimit -u), or run "
        "fewer agents at a time (max_concurrent_runs)"
    )


def _no_memory(_: SpawnAttempt) -> str:
    return "no memory is left; end some programs, or run fewer agents at a time (max_concurrent_runs)"


_EXPLANATIONS: Mapping[int, Callable[[SpawnAttempt], str]] = {
    errno.ENOENT: _missing,
    errno.EACCES: _forbidden,
    errno.EPERM: _forbidden,
    errno.ENOEXEC: _no_program,
    errno.ENOTDIR: _no_directory,
    errno.E2BIG: _too_long,
    errno.EMFILE: _too_many_files,
    errno.ENFILE: _too_many_files_of_all,
    errno.EAGAIN: _too_many_processes,
    errno.ENOMEM: _no_memory,
}


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEAD_SIZE)
    except OSError:
        return b""
