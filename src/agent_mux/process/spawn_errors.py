"""Why a program could not be started, and what to do about it."""

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_ELF = b"\x7fELF"
_BINARIES = (_ELF, b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"MZ")
"""How programs begin: of Linux, macOS (two kinds) and Windows."""
_HEAD = 256  # bytes of a file that are looked at


@dataclass(frozen=True, slots=True)
class SpawnAttempt:
    """What was tried."""

    argv: Sequence[str]
    environ: Mapping[str, str]
    cwd: str

    @property
    def program(self) -> Path:
        """What was to be started."""
        return Path(self.argv[0])


def explain_spawn_failure(error: OSError, attempt: SpawnAttempt) -> str:
    """One sentence: the reason as a person would say it, the system's own words, and what to do next."""
    explain = _EXPLANATIONS.get(error.errno or 0)
    words = f"{error.strerror or error} (errno {error.errno})"
    return words if explain is None else f"{explain(attempt)} [{words}]"


def _missing(attempt: SpawnAttempt) -> str:
    if not Path(attempt.cwd).exists():
        return f"the directory {attempt.cwd} is gone; make it again, or run somewhere else (cwd)"
    if not attempt.program.exists():
        return f"{attempt.program} is gone; install it again"
    head = _head(attempt.program)
    if head.startswith(b"#!"):
        interpreter = head[2:].split(b"\n")[0].decode("utf-8", "replace").strip(" ").partition(" ")[0]
        return (
            f"its first line names the interpreter {interpreter!r}, which is not there; install it, or mend that line"
        )
    return "it needs a loader that is not there: it was made for another system; install the build for this one"


def _forbidden(attempt: SpawnAttempt) -> str:
    if not os.access(attempt.cwd, os.X_OK):
        return f"the directory {attempt.cwd} may not be entered; run somewhere else (cwd), or as somebody who may"
    if not os.access(attempt.program, os.X_OK):
        return f"{attempt.program} may not be executed; try: chmod +x {attempt.program}"
    return "it, or what it needs, may not be executed here; see who may, and whether the disk is mounted noexec"


def _no_program(attempt: SpawnAttempt) -> str:
    if _head(attempt.program).startswith(_BINARIES):
        return "it was made for another kind of machine; install the build for this one"
    return "it is no program, and no script that names its interpreter; begin it with a line like #!/bin/sh"


def _no_directory(attempt: SpawnAttempt) -> str:
    return f"{attempt.cwd} is no directory; run somewhere else (cwd)"


def _too_long(attempt: SpawnAttempt) -> str:
    arguments = [len(os.fsencode(word)) for word in attempt.argv]
    variables = sum(len(os.fsencode(name)) + len(os.fsencode(value)) for name, value in attempt.environ.items())
    sizes = f"{sum(arguments)} bytes of arguments, the longest {max(arguments)}, and {variables} of environment"
    return f"{sizes} are more than the system takes; shorten the system prompt, or what is set in env"


def _too_many_files(_: SpawnAttempt) -> str:
    return (
        "this process has too many files open; raise its limit (ulimit -n), or let fewer runs work at a time "
        "(max_concurrent_runs)"
    )


def _too_many_files_of_all(_: SpawnAttempt) -> str:
    return "this machine has too many files open; end something, or raise its limit (fs.file-max)"


def _too_many_processes(_: SpawnAttempt) -> str:
    return (
        "the system allows no more processes, or terminals; end something, raise the limit (ulimit -u), or let fewer "
        "runs work at a time (max_concurrent_runs)"
    )


def _no_memory(_: SpawnAttempt) -> str:
    return "there is no memory left; end something, or let fewer runs work at a time (max_concurrent_runs)"


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
            return file.read(_HEAD)
    except OSError:
        return b""
