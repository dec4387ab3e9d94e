"""Running one command to its end, or to ours: output drained all the time, every wait bounded, nothing left behind."""

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

from agent_loop.tools.builtin.captured import Captured
from agent_loop.tools.builtin.census import Started, living, signal_all
from agent_loop.tools.tool import Update

DRAIN = 0.5
"""Seconds: how long output is read after the shell has ended, where something in the background still writes."""
LOOK_EVERY = 0.02
"""Seconds between two looks whether the processes are gone."""
KILLS = 50
"""A process can fork while we look: SIGKILL goes out until none is left, or this often."""
CHUNK = 1 << 16
"""Bytes: what a Linux pipe holds."""

Child = subprocess.Popen[bytes]
Take = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What is to be run, and for how long."""

    argv: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]
    mark: str
    """Name of the variable that its processes are known by."""
    timeout: float
    """Seconds."""
    grace: float
    """Seconds between SIGTERM and SIGKILL."""
    keep_background: bool


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended."""

    exit_code: int
    """128 and the number of the signal where one ended it, as shells have it."""
    timed_out: bool
    left: int
    """Processes in the background that lived longer than the shell, and were ended."""


async def run_command(command: Command, captured: Captured, update: Update) -> Ended:
    """Run it; what it says is captured, and told while it runs. On cancellation all its processes are ended first.

    Raises:
        OSError: it could not be started.
    """
    child = _start(command)
    started = Started(child.pid, command.mark)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(captured.tell, update)
            ended = await _attended(command, child, started, captured)
            captured.finish()
        return ended
    finally:
        if child.returncode is None:  # cancelled, or somebody of ours raised
            with anyio.CancelScope(shield=True):
                await _end(started, command.grace)
                child.poll()
        for pipe in (child.stdout, child.stderr):
            _close(pipe)


def _start(command: Command) -> Child:
    child = subprocess.Popen(
        command.argv,
        cwd=command.cwd,
        env={**command.environment, command.mark: "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
    )
    for pipe in (child.stdout, child.stderr):
        os.set_blocking(_number(pipe), False)
    return child


async def _attended(command: Command, child: Child, started: Started, captured: Captured) -> Ended:
    """The child runs, and its pipes are read. It is reaped last: until then its number is nobody else's."""
    async with anyio.create_task_group() as tasks:
        both_read = anyio.Event()
        tasks.start_soon(_read_both, child, captured, both_read)
        with anyio.move_on_after(command.timeout) as limit:
            await _exited(child)
        if not limit.cancelled_caught:
            await _drained(both_read)
        left = 0
        if limit.cancelled_caught or not command.keep_background:
            with anyio.CancelScope(shield=True):
                left = await _end(started, command.grace)
            await _drained(both_read)
        tasks.cancel_scope.cancel()
    return Ended(_exit_code(child), limit.cancelled_caught, left)


def _exit_code(child: Child) -> int:
    """As shells have it. Never waits: the system may hold a killed process for as long as a disk does not answer."""
    code = child.poll()
    if code is None:
        return 128 + signal.SIGKILL
    return 128 - code if code < 0 else code


async def _read_both(child: Child, captured: Captured, both_read: anyio.Event) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read, child.stdout, captured.on_stdout)
        tasks.start_soon(_read, child.stderr, captured.on_stderr)
    both_read.set()


async def _read(pipe: IO[bytes] | None, take: Take) -> None:
    """Read it to its end. What is no UTF-8 becomes U+FFFD."""
    descriptor = _number(pipe)
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    while True:
        try:
            chunk = os.read(descriptor, CHUNK)
        except BlockingIOError:
            await anyio.wait_readable(descriptor)
            continue
        take(decoder.decode(chunk, final=not chunk))
        if not chunk:
            return
        await lowlevel.checkpoint()


async def _drained(both_read: anyio.Event) -> None:
    with anyio.move_on_after(DRAIN):
        await both_read.wait()


async def _exited(child: Child) -> None:
    """Wait for the shell, not for its pipes. It is not reaped where the system lets us look without."""
    try:
        descriptor = os.pidfd_open(child.pid)
    except (AttributeError, OSError):  # not Linux, an old one, or too many files
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


async def _end(started: Started, grace: float) -> int:
    """SIGTERM to all, and SIGKILL to what is there after the grace. Returns how many there were."""
    count = await to_thread.run_sync(signal_all, started, signal.SIGTERM)
    if not count:
        return 0
    with anyio.move_on_after(grace):
        while await to_thread.run_sync(living, started):  # noqa: ASYNC110  # nobody tells when strangers' children end
            await anyio.sleep(LOOK_EVERY)
        return count
    for _ in range(KILLS):
        if not await to_thread.run_sync(signal_all, started, signal.SIGKILL):
            break
        await anyio.sleep(LOOK_EVERY)
    return count


def _number(pipe: IO[bytes] | None) -> int:
    if pipe is None:
        raise ValueError("a command was started without pipes")
    return pipe.fileno()


def _close(pipe: IO[bytes] | None) -> None:
    if pipe is not None:
        pipe.close()
