"""Reading a pipe at full speed: each chunk goes to a callback as soon as the event loop sees it.

On asyncio the descriptor stays registered with the event loop: registering it anew for every read, as the portable way
does, would cost more than all that is done with the chunk.
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

Take = Callable[[bytes], None]


async def pump(descriptor: int, take: Take) -> None:
    """Read a non-blocking descriptor to its end. What `take` raises is raised here."""
    if _on_asyncio():
        await _pump_on_asyncio(descriptor, take)
    else:
        await _pump_anywhere(descriptor, take)


def _on_asyncio() -> bool:
    try:
        return asyncio.current_task() is not None
    except RuntimeError:
        return False


async def _pump_anywhere(descriptor: int, take: Take) -> None:
    while True:
        try:
            chunk = _read(descriptor)
        except BlockingIOError:
            await anyio.wait_readable(descriptor)
            continue
        if not chunk:
            return
        take(chunk)
        await lowlevel.checkpoint()


async def _pump_on_asyncio(descriptor: int, take: Take) -> None:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def read() -> None:
        try:
            chunk = _read(descriptor)
            if chunk:
                take(chunk)
                return
        except BlockingIOError:
            return
        except BaseException as error:  # noqa: BLE001  # raised again where somebody waits for the end
            _finish(done, error)
        else:
            _finish(done)
        loop.remove_reader(descriptor)

    _as_asyncio(loop.add_reader, descriptor, read)
    try:
        await done
    finally:
        loop.remove_reader(descriptor)


def _as_asyncio(register: Callable[..., object], *arguments: Any) -> None:
    """Register a callback that may start tasks.

    No task runs in a callback of asyncio. Where sniffio is installed, anyio asks it which event loop it is, and sniffio
    looks for a task, unless it was told, as `anyio.run` does and `asyncio.run` does not.
    """
    context = copy_context()
    sniffio = sys.modules.get("sniffio")
    if sniffio is not None:
        context.run(sniffio.current_async_library_cvar.set, "asyncio")
    context.run(register, *arguments)


def _read(descriptor: int) -> bytes:
    """What there is; empty at the end."""
    try:
        return os.read(descriptor, CHUNK)
    except OSError as error:
        if error.errno == errno.EIO:  # how a terminal says that nobody is at the other end any more
            return b""
        raise


def _finish(done: "asyncio.Future[None]", error: BaseException | None = None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
