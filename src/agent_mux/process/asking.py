"""Running a program to the end for what it prints: the agents' own commands for versions, plugins, models.

Blocking and bounded: in a process group of its own, which is ended when it takes too long. No shell, nothing on
standard input but what is given.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_mux.errors import AgentMuxError
from agent_mux.process.reasons import Attempt, why_not_started

KILL_AFTER = 2.0  # seconds between asking a group to leave and killing it
_STDERR = 2  # the descriptor: whatever Python has made of it
MOST_OUTPUT = 32 << 20  # bytes of one stream that are kept


@dataclass(frozen=True, slots=True)
class Answer:
    """What a program said."""

    argv: tuple[str, ...]
    exit_code: int
    """Negative: the signal that ended it."""
    stdout: str
    stderr: str

    @property
    def complaint(self) -> str:
        """Its last words, for an error: on standard error, else on standard output."""
        said = [line.strip() for line in (self.stderr.strip() or self.stdout.strip()).splitlines() if line.strip()]
        return said[-1] if said else f"it said nothing (exit code {self.exit_code})"


def ask(  # noqa: PLR0913  # all but three have a default
    argv: Sequence[str],
    *,
    environ: Mapping[str, str],
    timeout: float,
    cwd: str | os.PathLike[str] | None = None,
    given: bytes | None = None,
    shows: bool = False,
) -> Answer:
    """Run a program and wait for its end.

    Args:
        argv: Absolute path of the program, and its arguments.
        environ: All of its environment.
        timeout: Seconds.
        cwd: Where it runs; default: here.
        given: On its standard input; None: nothing.
        shows: What it prints goes to our standard error as it comes, and not into the answer.

    Raises:
        AgentMuxError: SPAWN_ERROR when it cannot be started, TIMEOUT when it takes longer.
    """
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
            stdout=_STDERR if shows else subprocess.PIPE,
            stderr=_STDERR if shows else subprocess.PIPE,
            cwd=cwd,
            env=dict(environ),
            start_new_session=True,
        )
    except OSError as error:
        reason = why_not_started(error, Attempt(argv=argv, environ=environ, cwd=str(cwd or Path.cwd())))
        raise AgentMuxError("SPAWN_ERROR", f"{argv[0]} could not be started: {reason}") from error
    try:
        stdout, stderr = process.communicate(given, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        asked = " ".join(argv)
        raise AgentMuxError("TIMEOUT", f"`{asked}` did not end within {timeout:g} s; it was stopped") from error
    finally:
        _end(process)
    return Answer(tuple(argv), process.returncode, _text(stdout or b""), _text(stderr or b""))


def _end(process: subprocess.Popen[bytes]) -> None:
    """Nothing of it lives on, also when it is done and left children behind."""
    for asked in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, asked)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=KILL_AFTER)
            return


def _text(output: bytes) -> str:
    return output[:MOST_OUTPUT].decode("utf-8", "replace")
