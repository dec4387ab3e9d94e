"""One program for one call: its input, its answer within bounds, and nothing left of it. Blocking."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent_mux.hooks.failure import HandlerFailedError

LARGEST_OUTPUT = 1 << 20
"""Bytes that a handler may print, on either stream: what is more is no answer."""
_READ = 1 << 16
_LOOK_EVERY = 0.05  # seconds between two looks whether it is gone, where something else holds its pipes


@dataclass(frozen=True, slots=True)
class Printed:
    """How a program ended, and what it said."""

    code: int
    """Negative: minus the signal that ended it."""
    stdout: str
    stderr: str


def run_program(
    words: Sequence[str], *, stdin: bytes, env: Mapping[str, str], cwd: str | None, timeout: float
) -> Printed:
    """Run it to its end, in a process group of its own, of which nothing lives on.

    Raises `HandlerFailedError` when it cannot be started, takes longer than `timeout` seconds, or prints too much.
    """
    try:
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(env), cwd=cwd,
            start_new_session=True,
        )  # fmt: skip
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise HandlerFailedError(f"{words[0]} cannot be started: {reason}") from error
    try:
        stdout, stderr = _talk(process, stdin, time.monotonic() + timeout, timeout)
        return Printed(process.wait(), stdout.decode("utf-8", "replace"), stderr.decode("utf-8", "replace"))
    finally:
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _talk(
    process: "subprocess.Popen[bytes]", stdin: bytes, deadline: float, timeout: float
) -> tuple[bytearray, bytearray]:
    assert process.stdin is not None  # noqa: S101  # all three are pipes
    assert process.stdout is not None  # noqa: S101
    assert process.stderr is not None  # noqa: S101
    said = {process.stdout.fileno(): bytearray(), process.stderr.fileno(): bytearray()}
    with selectors.DefaultSelector() as selector:
        for pipe in (process.stdin, process.stdout, process.stderr):
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_WRITE if pipe is process.stdin else selectors.EVENT_READ)
        rest = memoryview(stdin)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                raise HandlerFailedError(f"it took longer than {timeout:g} s")
            ready = selector.select(min(left, _LOOK_EVERY))
            if not ready and process.poll() is not None:
                break  # its children hold the pipes
            for key, _ in ready:
                if key.fileobj is process.stdin:
                    rest = _write(selector, process.stdin, rest)
                else:
                    _read(selector, key, said[key.fd])
    _wait(process, deadline, timeout)
    return said[process.stdout.fileno()], said[process.stderr.fileno()]


def _wait(process: "subprocess.Popen[bytes]", deadline: float, timeout: float) -> None:
    try:
        process.wait(max(deadline - time.monotonic(), 0))
    except subprocess.TimeoutExpired as error:
        raise HandlerFailedError(f"it took longer than {timeout:g} s") from error


def _write(selector: selectors.BaseSelector, pipe: object, rest: memoryview) -> memoryview:
    try:
        written = os.write(pipe.fileno(), rest[:_READ])  # type: ignore[attr-defined]
    except BlockingIOError:
        return rest
    except OSError:  # it does not want to hear it
        written = len(rest)
    rest = rest[written:]
    if not rest:
        selector.unregister(pipe)  # type: ignore[arg-type]
        pipe.close()  # type: ignore[attr-defined]
    return rest


def _read(selector: selectors.BaseSelector, key: selectors.SelectorKey, said: bytearray) -> None:
    try:
        data = os.read(key.fd, _READ)
    except BlockingIOError:
        return
    if not data:
        selector.unregister(key.fileobj)
    said += data
    if len(said) > LARGEST_OUTPUT:
        raise HandlerFailedError(f"it printed more than {LARGEST_OUTPUT} bytes")
