"""Reading a pipe at full speed, or a file while it grows: each chunk goes to a callback as soon as it is available.

On asyncio the descriptor stays registered with the event loop: registering it for every read, as the portable way does,
costs more than the processing of the chunk.
"""

import asyncio
import errno
import os
import sys
from collections.abc import Callable
from contextvars import copy_context
from typing import Any

import anyio
from anyio import lowlevel

CHUNK = 1 << 16  # bytes: what a Linux pipe holds
MIN_POLL, MAX_POLL = 0.005, 0.04  # seconds between two looks at a growing file, which no event loop can wait for

ChunkHandler = Callable[[bytes], None]


async def pump(descriptor: int, on_chunk: ChunkHandler) -> None:
    """Read a non-blocking descriptor to its end. An exception of `on_chunk` is raised here."""
    if _is_asyncio():
        await _pump_on_asyncio(descriptor, on_chunk)
    else:
        await _pump_portably(descriptor, on_chunk)


async def follow(descriptor: int, on_chunk: ChunkHandler, has_ended: Callable[[], bool]) -> None:
    """Read a file that grows, until its writer `has_ended` and everything was read."""
    pause = MIN_POLL
    while True:
        is_last = has_ended()  # before reading: what is written afterwards is read in the next round
        chunk = os.read(descriptor, CHUNK)
        if chunk:
            on_chunk(chunk)
            pause = MIN_POLL
            await lowlevel.checkpoint()
        elif is_last:
            return
        else:
            await anyio.sleep(pause)
            pause = min(pause * 1.5, MAX_POLL)


def _is_asyncio() -> bool:
    try:
        return asyncio.current_task() is not None
    except RuntimeError:
        return False


async def _pump_portably(descriptor: int, on_chunk: ChunkHandler) -> None:
    while True:
        try:
            chunk = _read(descriptor)
        except BlockingIOError:
            await anyio.wait_readable(descriptor)
            continue
        if not chunk:
            return
        on_chunk(chunk)
        await lowlevel.checkpoint()


async def _pump_on_asyncio(descriptor: int, on_chunk: ChunkHandler) -> None:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def read() -> None:
        try:
            chunk = _read(descriptor)
            if chunk:
                on_chunk(chunk)
                return
        except BlockingIOError:
            return
        except BaseException as error:  # noqa: BLE001  # raised again by `await done`
            _finish(done, error)
        else:
            _finish(done)
        loop.remove_reader(descriptor)

    _register_in_asyncio_context(loop.add_reader, descriptor, read)
    try:
        await done
    finally:
        loop.remove_reader(descriptor)


def _register_in_asyncio_context(register: Callable[..., object], *arguments: Any) -> None:
    """Register a callback that may start tasks.

    Callbacks of asyncio run outside of any task. If sniffio is installed, anyio asks it for the event loop, and sniffio
    looks for a task unless its context variable is set. `anyio.run` sets it; `asyncio.run` does not.
    """
    context = copy_context()
    sniffio = sys.modules.get("sniffio")
    if sniffio is not None:
        context.run(sniffio.current_async_library_cvar.set, "asyncio")
    context.run(register, *arguments)


def _read(descriptor: int) -> bytes:
    """Return the available bytes; empty at the end of the stream."""
    try:
        return os.read(descriptor, CHUNK)
    except OSError as error:
        if error.errno == errno.EIO:  # a terminal whose other end is closed
            return b""
        raise


def _finish(done: "asyncio.Future[None]", error: BaseException | None = None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
