"""A child process with pipes that we read ourselves: as it comes, at full speed, on asyncio and trio alike."""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import anyio
from anyio import to_thread

from agent_mux.process.pump import pump

PIPE_SIZE = 1 << 20  # ask for more, so that a busy reader does not stop the agent
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ of Linux; not in the fcntl module before Python 3.10 on every platform


class Process(Protocol):
    """A started program, as `subprocess` or a library for terminals has it."""

    pid: int

    def poll(self) -> int | None:
        """Exit code, minus the signal number when killed, None while it runs."""
        ...

    def wait(self) -> int:
        """As above, when it has ended."""
        ...


class Child:
    """A started process, leader of a session and a process group of its own."""

    def __init__(self, popen: Process, stdin: int | None, stdout: int, stderr: int | None) -> None:
        self._popen = popen
        self._stdin = stdin
        self._stdout = stdout
        self._stderr = stderr
        self.pid = popen.pid

    @property
    def returncode(self) -> int | None:
        """Exit code, minus the signal number when killed, None while it runs."""
        return self._popen.poll()

    @property
    def stdin_open(self) -> bool:
        """More can be written."""
        return self._stdin is not None

    async def read_stdout(self, take: Callable[[bytes], None]) -> None:
        """Give every chunk to `take` as it comes, until the end of the stream."""
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
        if self._popen.poll() is None:
            try:
                descriptor = os.pidfd_open(self.pid)
            except (AttributeError, OSError):  # not Linux, or an old one
                return await to_thread.run_sync(self._popen.wait, abandon_on_cancel=True)
            try:
                await anyio.wait_readable(descriptor)
            finally:
                os.close(descriptor)
        return self._popen.wait()

    def signal_group(self, number: int) -> None:
        """Send a signal to the whole process group. Nothing happens when the group is gone."""
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return

    def close(self) -> None:
        """Give the descriptors back. The process must be gone."""
        self.close_stdin()
        for descriptor in (self._stdout, self._stderr):
            if descriptor is not None:
                _release(descriptor)


def start_child(argv: Sequence[str], *, env: Mapping[str, str], cwd: str, stdin: bool) -> Child:
    """Start a program. Raises `OSError` when the system cannot; nothing is left open then."""
    opened: list[int] = []
    try:
        pairs = [os.pipe2(os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe() for _ in range(3 if stdin else 2)]
        opened = [descriptor for pair in pairs for descriptor in pair]
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
    return Child(popen, pairs[2][1] if stdin else None, out_read, err_read)


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
