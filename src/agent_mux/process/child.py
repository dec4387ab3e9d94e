"""A child process with pipes that we read ourselves: as it comes, at full speed, on asyncio and trio alike."""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import anyio
from anyio import to_thread

from agent_mux.process.marker import ProcessIdentity, identify, kill_processes_of, mark, processes_of
from agent_mux.process.pump import pump

PIPE_SIZE = 1 << 20  # ask for more, so that a busy reader does not stop the agent
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ of Linux; not in the fcntl module before Python 3.10 on every platform


_NOT_INHERITED = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP, signal.SIGCHLD)
"""Signals that an agent must hear, even when this process was told to ignore them (`nohup`, a shell's `&`)."""


class SpawnedProcess(Protocol):
    """A started program, as `subprocess` or a library for terminals has it."""

    pid: int

    def poll(self) -> int | None:
        """Exit code, minus the signal number when killed, None while it runs."""
        ...

    def wait(self) -> int:
        """As above, when it has ended."""
        ...


class Child:
    """A started process, leader of a session and a process group of its own.

    It is reaped when it is closed and not before: until then its number, which is that of its group and its session,
    is nobody else's.
    """

    def __init__(
        self, started: SpawnedProcess, run_id: str, stdin: int | None, stdout: int | None, stderr: int | None
    ) -> None:
        self._started = started
        self._run_id = run_id
        self._stdin = stdin
        self._stdout = stdout
        self._stderr = stderr
        self._code: int | None = None
        self.pid = started.pid
        self.process: ProcessIdentity | None = identify(started.pid)
        """For telling it from whoever has its number later; None on systems without /proc."""
        mark(started.pid, run_id)

    @property
    def returncode(self) -> int | None:
        """Exit code, minus the signal number when killed, None while it runs."""
        if self._code is None:
            self._code = self._look()
        return self._code

    def _look(self) -> int | None:
        if not hasattr(os, "waitid"):  # macOS, before Python 3.13: looking at it reaps it
            return self._started.poll()
        try:
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:  # somebody else in this program waits for all children
            return self._started.poll()
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    @property
    def is_stdin_open(self) -> bool:
        """More can be written."""
        return self._stdin is not None

    async def read_stdout(self, take: Callable[[bytes], None]) -> None:
        """Give every chunk to `take` as it comes, until the end of the stream."""
        if self._stdout is not None:
            await pump(self._stdout, take)

    async def read_stderr(self, take: Callable[[bytes], None]) -> None:
        """Give every chunk to `take` as it comes, until the end of the stream."""
        if self._stderr is not None:
            await pump(self._stderr, take)

    async def write(self, data: bytes) -> None:
        """Write everything, however slowly the child reads. Raises `BrokenPipeError` when it reads no more."""
        rest = memoryview(data)
        while rest and self._stdin is not None:
            try:
                rest = rest[os.write(self._stdin, rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self._stdin)

    def close_stdin(self) -> None:
        """The child sees the end of its input."""
        descriptor, self._stdin = self._stdin, None
        if descriptor is not None:
            _release(descriptor)

    async def wait(self) -> int:
        """Wait for the process itself to end, not for the end of its pipes: a grandchild can hold those for ever."""
        while (code := self.returncode) is None:
            try:
                descriptor = os.pidfd_open(self.pid)
            except (AttributeError, OSError):  # not Linux, an old one, or too many files
                return await to_thread.run_sync(self._started.wait, abandon_on_cancel=True)
            try:
                await anyio.wait_readable(descriptor)
            finally:
                anyio.notify_closing(descriptor)
                os.close(descriptor)
        return code

    def signal_group(self, number: int) -> None:
        """Send a signal to the whole process group. Nothing happens when the group is gone."""
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return

    def signal_all(self, number: int) -> None:
        """A signal to the group, and to everything of the run that left it; SIGKILL until nothing is left."""
        self.signal_group(number)
        kill_processes_of(self._run_id, number, self.process)

    def has_survivors(self) -> bool:
        """Something of the run lives: the process, or what it started."""
        return bool(processes_of(self._run_id, self.process))

    def close_pipes(self) -> None:
        """Nothing more is to be read or written."""
        self.close_stdin()
        descriptors, self._stdout, self._stderr = (self._stdout, self._stderr), None, None
        for descriptor in descriptors:
            if descriptor is not None:
                _release(descriptor)

    def close(self) -> None:
        """Give the descriptors and the number back. The process must be gone."""
        self.close_pipes()
        self._started.wait()


def spawn_child(argv: Sequence[str], *, run_id: str, env: Mapping[str, str], cwd: str, stdin: bool) -> Child:
    """Start a program. Raises `OSError` when the system cannot; nothing is left open then."""
    opened: list[int] = []
    try:
        pairs = [_pipe(opened) for _ in range(3 if stdin else 2)]
        (out_read, out_write), (err_read, err_write) = pairs[0], pairs[1]
        popen = subprocess.Popen(
            list(argv),
            stdin=pairs[2][0] if stdin else subprocess.DEVNULL,
            stdout=out_write,
            stderr=err_write,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
            restore_signals=True,
            # None as a rule: with a function there, Python starts programs in a slower way.
            preexec_fn=restore_default_signals if ignored_signals() else None,  # noqa: PLW1509  # it takes no lock
        )
    except BaseException:
        for descriptor in opened:
            os.close(descriptor)
        raise
    for descriptor in (out_write, err_write, *([pairs[2][0]] if stdin else [])):
        os.close(descriptor)
    for descriptor in (out_read, err_read, *([pairs[2][1]] if stdin else [])):
        os.set_blocking(descriptor, False)
    _enlarge(out_read)
    return Child(popen, run_id, pairs[2][1] if stdin else None, out_read, err_read)


def ignored_signals() -> list[int]:
    """Signals that a child would ignore from its birth, and should not."""
    return [number for number in _NOT_INHERITED if signal.getsignal(number) is signal.SIG_IGN]


def restore_default_signals() -> None:
    """In a child, before its program begins: signals do what they usually do."""
    for number in _NOT_INHERITED:
        signal.signal(number, signal.SIG_DFL)


def _pipe(opened: list[int]) -> tuple[int, int]:
    pair = os.pipe2(os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
    opened.extend(pair)
    return pair


def _enlarge(descriptor: int) -> None:
    import fcntl  # noqa: PLC0415  # not on every platform

    try:
        fcntl.fcntl(descriptor, _SET_PIPE_SIZE, PIPE_SIZE)
    except OSError:
        return  # not Linux, or over the user's limit: the default works too


def _release(descriptor: int) -> None:
    # A task may still wait for this descriptor: it must wake up instead of waiting for a number that is used again.
    anyio.notify_closing(descriptor)
    os.close(descriptor)
