"""A child process whose pipes are read as data arrives, on asyncio and trio alike."""

import os
import signal
import stat
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import anyio
from anyio import to_thread

from agent_mux.process.marker import ProcessIdentity, command_lines_of, identify, kill_processes_of, mark, processes_of
from agent_mux.process.pump import follow, pump

PIPE_SIZE = 1 << 20  # bytes; larger than the default, so that an agent does not block on a busy reader
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ of Linux; not in the fcntl module before Python 3.10 on every platform


_NOT_INHERITED = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP, signal.SIGCHLD)
"""Signals that an agent handles by default even if this process ignores them (`nohup`, a shell's `&`)."""


class SpawnedProcess(Protocol):
    """The part of `subprocess.Popen` that `Child` uses; terminal libraries offer it, too."""

    pid: int

    def poll(self) -> int | None:
        """Return the exit code, minus the signal number if killed, None while the process runs."""
        ...

    def wait(self) -> int:
        """Wait for the end; return the exit code as `poll` does."""
        ...


class Child:
    """A spawned process that leads its own session and process group.

    The process is reaped in `close` and not earlier, so that until then no other process, group or session can get its
    number.
    """

    def __init__(
        self, popen: SpawnedProcess, run_id: str, stdin: int | None, stdout: int | None, stderr: int | None
    ) -> None:
        self._popen = popen
        self._run_id = run_id
        self._stdin = stdin
        self._stdout = stdout
        self._stderr = stderr
        self._is_stdout_file = stdout is not None and stat.S_ISREG(os.fstat(stdout).st_mode)
        self._code: int | None = None
        self.pid = popen.pid
        self.process: ProcessIdentity | None = identify(popen.pid)
        """Identity that stays unique when the process id is reused; None on systems without /proc."""
        mark(popen.pid, run_id)

    @property
    def returncode(self) -> int | None:
        """Exit code, minus the signal number if killed; None while the process runs."""
        if self._code is None:
            self._code = self._poll()
        return self._code

    def _poll(self) -> int | None:
        if not hasattr(os, "waitid"):  # macOS, before Python 3.13: polling reaps the process
            return self._popen.poll()
        try:
            ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:  # other code in this process waits for all children
            return self._popen.poll()
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status

    @property
    def is_stdin_open(self) -> bool:
        """Whether more input can be written."""
        return self._stdin is not None

    async def read_stdout(self, on_chunk: Callable[[bytes], None]) -> None:
        """Pass each chunk to `on_chunk` as it arrives, until the end of the stream."""
        if self._stdout is None:
            return
        if self._is_stdout_file:
            await follow(self._stdout, on_chunk, lambda: self.returncode is not None)
        else:
            await pump(self._stdout, on_chunk)

    @property
    def has_unread_file(self) -> bool:
        """Whether standard output is a file that was not read to its end."""
        if self._stdout is None or not self._is_stdout_file:
            return False
        return os.lseek(self._stdout, 0, os.SEEK_CUR) < os.fstat(self._stdout).st_size

    async def read_stderr(self, on_chunk: Callable[[bytes], None]) -> None:
        """Pass each chunk to `on_chunk` as it arrives, until the end of the stream."""
        if self._stderr is not None:
            await pump(self._stderr, on_chunk)

    async def write(self, data: bytes) -> None:
        """Write all of `data`, however slowly the child reads.

        Raises `BrokenPipeError` if the child has closed its standard input.
        """
        rest = memoryview(data)
        while rest and self._stdin is not None:
            try:
                rest = rest[os.write(self._stdin, rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self._stdin)

    def close_stdin(self) -> None:
        """Close standard input, so that the child reads the end of file."""
        descriptor, self._stdin = self._stdin, None
        if descriptor is not None:
            _close_descriptor(descriptor)

    async def wait(self) -> int:
        """Wait for the process to end, not for the end of its pipes: a grandchild can hold those open for ever."""
        while (code := self.returncode) is None:
            try:
                descriptor = os.pidfd_open(self.pid)
            except (AttributeError, OSError):  # not Linux, an old kernel, or too many open files
                return await to_thread.run_sync(self._popen.wait, abandon_on_cancel=True)
            try:
                await anyio.wait_readable(descriptor)
            finally:
                anyio.notify_closing(descriptor)
                os.close(descriptor)
        return code

    def signal_group(self, number: int) -> None:
        """Send a signal to the process group; do nothing if the group no longer exists."""
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            return

    def signal_all(self, number: int) -> None:
        """Signal the group and every process of the run that left it; repeat SIGKILL until none is left."""
        self.signal_group(number)
        kill_processes_of(self._run_id, number, self.process)

    def has_survivors(self) -> bool:
        """Return whether the process, or a process that it started, is alive."""
        return bool(processes_of(self._run_id, self.process))

    def survivors(self) -> list[str]:
        """Return the command lines of the living processes that it started, and its own."""
        return command_lines_of(self._run_id, self.process)

    def close_pipes(self) -> None:
        """Close all pipes; nothing can be read or written afterwards."""
        self.close_stdin()
        descriptors, self._stdout, self._stderr = (self._stdout, self._stderr), None, None
        for descriptor in descriptors:
            if descriptor is not None:
                _close_descriptor(descriptor)

    def close(self) -> None:
        """Close the pipes and reap the process, which must have ended."""
        self.close_pipes()
        self._popen.wait()


def spawn_child(  # noqa: PLR0913  # what a process has: arguments, environment, directory and streams
    argv: Sequence[str],
    *,
    run_id: str,
    env: Mapping[str, str],
    cwd: str,
    stdin: bool,
    output_directory: str | None = None,
) -> Child:
    """Spawn a program with pipes. Raises `OSError` if the system refuses, with all descriptors closed.

    `output_directory`: standard output is an unnamed file there instead of a pipe.
    """
    opened: list[int] = []
    try:
        pairs = [
            _pipe(opened) if output_directory is None else _unnamed_file(output_directory, opened),
            *(_pipe(opened) for _ in range(2 if stdin else 1)),
        ]
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
            # Usually None: with a function, Python starts programs in a slower way.
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
    if output_directory is None:
        _enlarge_pipe(out_read)
    return Child(popen, run_id, pairs[2][1] if stdin else None, out_read, err_read)


def ignored_signals() -> list[int]:
    """Return the signals that a child would inherit as ignored although it must handle them."""
    return [number for number in _NOT_INHERITED if signal.getsignal(number) is signal.SIG_IGN]


def restore_default_signals() -> None:
    """Reset signal dispositions to the default. Called in the child before its program is executed."""
    for number in _NOT_INHERITED:
        signal.signal(number, signal.SIG_DFL)


def _pipe(opened: list[int]) -> tuple[int, int]:
    pair = os.pipe2(os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
    opened.extend(pair)
    return pair


def _unnamed_file(directory: str, opened: list[int]) -> tuple[int, int]:
    """Return descriptors for reading and appending. The file has no name, so that nothing is left of it."""
    write, path = tempfile.mkstemp(prefix="stdout-", dir=directory)  # mode 0600, closed in other programs
    opened.append(write)
    try:
        read = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.unlink(path)  # noqa: PTH108  # a text, as mkstemp returns it
    opened.append(read)
    return read, write


def _enlarge_pipe(descriptor: int) -> None:
    import fcntl  # noqa: PLC0415  # not on every platform

    try:
        fcntl.fcntl(descriptor, _SET_PIPE_SIZE, PIPE_SIZE)
    except OSError:
        return  # not Linux, or over the user's limit: the default size works, too


def _close_descriptor(descriptor: int) -> None:
    # A task may still wait for this descriptor: wake it before the number is reused.
    anyio.notify_closing(descriptor)
    os.close(descriptor)
