"""Run one command until it exits, times out or is cancelled, and end all its processes.

Output is read the whole time, and every wait is bounded.
"""

import codecs
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO

import anyio
from anyio import lowlevel, to_thread

from agent_loop.suspension import suspendable
from agent_loop.tools.builtin.output import CapturedOutput
from agent_loop.tools.builtin.processes import StartedCommand, find_processes, signal_processes, stop_processes
from agent_loop.tools.tool import OutputCallback

DRAIN = 0.5
"""Seconds for which output is read after the shell exited, if background processes keep it open."""
POLL_INTERVAL = 0.02
"""Seconds between two checks whether all processes ended."""
MAX_KILLS = 50
"""The most rounds of SIGKILL: a process can fork during a round, so rounds repeat until no process is left."""
CHUNK = 1 << 16
"""Bytes of one read: the capacity of a Linux pipe."""

Child = subprocess.Popen[bytes]
OnText = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellCommand:
    """A command to run, with its limits."""

    argv: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]
    mark: str
    """The name of the environment variable that marks its processes."""
    timeout: float
    """The time limit in seconds."""
    grace: float
    """Seconds between SIGTERM and SIGKILL."""
    keep_background: bool
    """Whether background processes continue after the shell exits."""
    descriptors: tuple[int, ...] = ()
    """File descriptors that the command inherits besides its standard streams."""


@dataclass(frozen=True, slots=True)
class CommandExit:
    """The way a command ended."""

    exit_code: int
    """The exit code; 128 plus the signal number if a signal ended the command, as in shells."""
    timed_out: bool
    ended_processes: int
    """The number of background processes that outlived the shell and were ended."""


async def run_command(command: ShellCommand, captured: CapturedOutput, update: OutputCallback) -> CommandExit:
    """Run a command; capture its output and send updates. On cancellation, all its processes are ended first.

    Raises:
        OSError: The command could not be started.
    """
    child = _start(command)
    started = StartedCommand(child.pid, command.mark)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(captured.send_updates, update)
            result = await _supervise(command, child, started, captured)
            captured.finish()
        return result
    finally:
        if child.returncode is None:  # cancelled, or a task raised
            with anyio.CancelScope(shield=True):
                await _end_processes(started, command.grace)
                child.poll()
        for pipe in (child.stdout, child.stderr):
            _close(pipe)


def _start(command: ShellCommand) -> Child:
    child = subprocess.Popen(
        command.argv,
        cwd=command.cwd,
        env={**command.environment, command.mark: "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
        pass_fds=command.descriptors,
    )
    for pipe in (child.stdout, child.stderr):
        os.set_blocking(_descriptor(pipe), False)
    return child


async def _supervise(
    command: ShellCommand, child: Child, started: StartedCommand, captured: CapturedOutput
) -> CommandExit:
    """Read the pipes until the child exits or times out. It is reaped last, so that its id is not reused before."""
    async with anyio.create_task_group() as tasks:
        both_read = anyio.Event()
        tasks.start_soon(_read_both, child, captured, both_read)
        with anyio.move_on_after(command.timeout) as limit, suspendable(_Running(started, limit)):
            await _wait_exit(child)
        if not limit.cancelled_caught:
            await _wait_drained(both_read)
        ended_processes = 0
        if limit.cancelled_caught or not command.keep_background:
            with anyio.CancelScope(shield=True):
                ended_processes = await _end_processes(started, command.grace)
            await _wait_drained(both_read)
        tasks.cancel_scope.cancel()
    return CommandExit(_exit_code(child), limit.cancelled_caught, ended_processes)


@dataclass(frozen=True, slots=True, eq=False)
class _Running:
    """A command that Ctrl-Z stops and `fg` continues."""

    started: StartedCommand
    limit: anyio.CancelScope

    async def pause(self) -> None:
        await to_thread.run_sync(stop_processes, self.started)

    def add_time(self, seconds: float) -> None:
        self.limit.deadline += seconds

    async def resume(self) -> None:
        await to_thread.run_sync(signal_processes, self.started, signal.SIGCONT)


def _exit_code(child: Child) -> int:
    """Return the exit code as shells do. Never waits: a killed process may hang in the kernel on a disk."""
    code = child.poll()
    if code is None:
        return 128 + signal.SIGKILL
    return 128 - code if code < 0 else code


async def _read_both(child: Child, captured: CapturedOutput, both_read: anyio.Event) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read, child.stdout, captured.on_stdout)
        tasks.start_soon(_read, child.stderr, captured.on_stderr)
    both_read.set()


async def _read(pipe: IO[bytes] | None, on_text: OnText) -> None:
    """Read a pipe to its end. Bytes that are not UTF-8 become U+FFFD."""
    descriptor = _descriptor(pipe)
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    while True:
        try:
            chunk = os.read(descriptor, CHUNK)
        except BlockingIOError:
            await anyio.wait_readable(descriptor)
            continue
        on_text(decoder.decode(chunk, final=not chunk))
        if not chunk:
            return
        await lowlevel.checkpoint()


async def _wait_drained(both_read: anyio.Event) -> None:
    with anyio.move_on_after(DRAIN):
        await both_read.wait()


async def _wait_exit(child: Child) -> None:
    """Wait until the shell exits; its pipes may stay open. It is not reaped if the system allows waiting without."""
    try:
        descriptor = os.pidfd_open(child.pid)
    except (AttributeError, OSError):  # not Linux, an old kernel, or too many open files
        await to_thread.run_sync(partial(_wait_blocking, child), abandon_on_cancel=True)
        return
    try:
        await anyio.wait_readable(descriptor)
    finally:
        anyio.notify_closing(descriptor)
        os.close(descriptor)


def _wait_blocking(child: Child) -> None:
    if hasattr(os, "waitid"):
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    else:  # macOS before Python 3.13
        child.wait()


async def _end_processes(started: StartedCommand, grace: float) -> int:
    """Send SIGTERM to all processes, and SIGKILL to those alive after `grace` seconds. Return how many there were."""
    count = await to_thread.run_sync(signal_processes, started, signal.SIGTERM)
    if not count:
        return 0
    with anyio.move_on_after(grace):
        while await to_thread.run_sync(find_processes, started):  # noqa: ASYNC110  # there is no event for the end of processes that are not our children
            await anyio.sleep(POLL_INTERVAL)
        return count
    for _ in range(MAX_KILLS):
        if not await to_thread.run_sync(signal_processes, started, signal.SIGKILL):
            break
        await anyio.sleep(POLL_INTERVAL)
    return count


def _descriptor(pipe: IO[bytes] | None) -> int:
    if pipe is None:
        raise ValueError("a command was started without pipes")
    return pipe.fileno()


def _close(pipe: IO[bytes] | None) -> None:
    if pipe is not None:
        pipe.close()
